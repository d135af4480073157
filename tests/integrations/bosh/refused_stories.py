"""Stories that end in a refusal, beside what is told then. Each sets the scene, and returns what is to be refused."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from tenure.integrations.bosh.state.vm_settings import settings_of
from tenure.integrations.bosh.verbs import report_vm
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest
from tests.integrations.bosh.documents.configs import accepted

Act = Coroutine[Any, Any, Any]
Story = Callable[[Town], Awaitable[Act]]


class Refusal(NamedTuple):
    """A story, and what is told at its end, with UUID in place of each uuid."""

    told: str
    story: Story


STATIC = config(lab(static=["172.20.5.10-172.20.5.12"]))
AZS = [{"name": "z1"}, {"name": "z2"}]


def zoned(name: str, *azs: Sequence[str], net: int = 1, vlan: int = 1) -> dict[str, Any]:
    """Write a network with a subnet for each list of AZs: 10.1.0.0/24, 10.1.1.0/24, …, static from .10 on."""
    subnets = [
        {
            "range": f"10.{net}.{number}.0/24", "gateway": f"10.{net}.{number}.1", "azs": list(each),
            "static": [f"10.{net}.{number}.10-10.{net}.{number}.99"], "cloud_properties": {"vlan": vlan + number},
        }
        for number, each in enumerate(azs)
    ]  # fmt: skip
    return {"name": name, "subnets": subnets}


def on(name: str, *static_ips: str, default: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """List a network of a group."""
    return {"name": name, "static_ips": list(static_ips), "default": list(default), **more}


def both(*networks: dict[str, Any], instances: int = 1, azs: Sequence[str] = ("z1", "z2")) -> str:
    """Write a manifest with one group on several networks, the first of which is its default."""
    first, *others = networks
    said = [{**first, "default": ["dns", "gateway"]}, *others]
    return manifest("alpha", app(instances, networks=said, azs=list(azs)))


async def too_many(town: Town) -> Act:
    await town.upload(config())
    return town.deploy(manifest("alpha", app(14)))


async def nothing_to_pick(town: Town) -> Act:
    await town.upload(config(lab(static=["172.20.5.2-172.20.5.14"])))
    return town.deploy(manifest("alpha", app()))


async def empty_vip_pool(town: Town) -> Act:
    await town.upload(config(more=[{"name": "pub", "type": "vip", "subnets": [{"static": ["198.51.100.20"]}]}]))
    networks = [{"name": "lab", "default": ["dns", "gateway"]}, {"name": "pub"}]
    return town.deploy(manifest("alpha", app(2, networks=networks)))


async def held_by_another_deployment(town: Town) -> Act:
    await town.upload(STATIC)
    await town.run(manifest("alpha", app(static_ips=["172.20.5.10"])))
    return town.deploy(manifest("beta", app(static_ips=["172.20.5.10"])))


async def held_by_an_orphan(town: Town) -> Act:
    await town.upload(config(lab(reserved=["172.20.5.2-172.20.5.9"])))
    text = manifest("alpha", app(update={"vm_strategy": "create-swap-delete"}))
    await town.run(text)
    await town.run(text, recreate=True)
    await town.upload(STATIC)
    return town.deploy(manifest("beta", app(static_ips=["172.20.5.10"])))


async def held_by_another_door(town: Town) -> Act:
    await town.upload(STATIC)
    await town.ledger.allocate("lab", owner="port/7", address="172.20.5.10")
    return town.deploy(manifest("alpha", app(static_ips=["172.20.5.10"])))


async def reserved_by_hand(town: Town) -> Act:
    await town.upload(STATIC)
    await town.ledger.reserve("lab", "172.20.5.10")
    return town.deploy(manifest("alpha", app(static_ips=["172.20.5.10"])))


BLOCKS = config({"range": "10.10.0.0/24", "gateway": "10.10.0.1", "prefix": 28, "static": ["10.10.0.16"]})


async def block_of_another_deployment(town: Town) -> Act:
    await town.upload(BLOCKS)
    await town.run(manifest("alpha", app(static_ips=["10.10.0.16"])))
    return town.deploy(manifest("beta", app(static_ips=["10.10.0.16"])))


async def block_reserved_by_hand(town: Town) -> Act:
    await town.upload(BLOCKS)
    await town.ledger.reserve("lab", "10.10.0.16-10.10.0.31")
    return town.deploy(manifest("alpha", app(static_ips=["10.10.0.16"])))


async def block_to_be_handed_over(town: Town) -> Act:
    await town.upload(BLOCKS)
    await town.run(manifest("alpha", app(name="a", static_ips=["10.10.0.16"])))
    await town.deploy(manifest("alpha", app(name="b", static_ips=["10.10.0.16"])), hand_over=True)
    return report_vm.commit(town.ledger, "alpha", "b/0", vm="vm-b")


async def subnet_in_another_az(town: Town) -> Act:
    await town.upload(config(*zoned("m", ["z1", "z2"])["subnets"], name="m", azs=AZS))
    text = both(on("m", "10.1.0.10", "10.1.0.11"), instances=2)
    await town.run(text)
    await town.upload(config(*zoned("m", ["z1"], ["z2"])["subnets"], name="m", azs=AZS))
    return town.deploy(text)


async def second_network_elsewhere(town: Town) -> Act:
    networks = [zoned("m", ["z1", "z2"]), zoned("n", ["z1"], ["z2"], net=2)]
    await town.upload(config(more=networks, azs=AZS))
    await town.run(both(on("m", "10.1.0.10")))
    return town.deploy(both(on("m", "10.1.0.10"), on("n", "10.2.1.10")))


async def uneven(town: Town) -> Act:
    networks = [zoned("m", ["z1"], ["z2"]), zoned("n", ["z1"], ["z2"], net=2)]
    await town.upload(config(more=networks, azs=AZS))
    return town.deploy(both(on("m", "10.1.0.10", "10.1.1.10"), on("n", "10.2.0.10", "10.2.0.11"), instances=2))


async def nic_on_two_vlans(town: Town) -> Act:
    networks = [zoned("m", ["z1"]), zoned("n", ["z1"], ["z1"], net=2)]
    await town.upload(config(more=networks, azs=AZS))
    await town.run(both(on("m", "10.1.0.10", nic_group=1), azs=["z1"]))
    return town.deploy(both(on("m", "10.1.0.10", nic_group=1), on("n", "10.2.1.10", nic_group=1), azs=["z1"]))


async def migrated_to_another_az(town: Town) -> Act:
    await town.upload(config(more=[zoned("m", ["z1"], ["z2"])], azs=AZS))
    await town.run(manifest("alpha", app(name="old", network="m", azs=["z1"])))
    source = [{"name": "old", "az": "z2"}]
    return town.deploy(manifest("alpha", app(name="new", network="m", azs=["z1", "z2"], migrated_from=source)))


async def migrated_without_az(town: Town) -> Act:
    await town.upload(config(more=[zoned("m", ["z1"], ["z2"])], azs=AZS))
    await town.run(manifest("alpha", app(name="old")))
    return town.deploy(manifest("alpha", app(name="new", network="m", azs=["z1"], migrated_from=[{"name": "old"}])))


async def _ignored(town: Town, text: str) -> None:
    await town.run(text)
    await report_vm.ignore(town.ledger, "alpha", "app/0")


async def ignored_and_without_its_address(town: Town) -> Act:
    await town.upload(STATIC)
    await _ignored(town, manifest("alpha", app(static_ips=["172.20.5.10"])))
    return town.deploy(manifest("alpha", app(static_ips=["172.20.5.11"])))


async def ignored_and_on_another_network(town: Town) -> Act:
    other = {"name": "other", "subnets": [{"range": "172.20.6.0/28", "gateway": "172.20.6.1"}]}
    await town.upload(config(more=[other]))
    await _ignored(town, manifest("alpha", app()))
    return town.deploy(manifest("alpha", app(network="other")))


async def ignored_and_off_the_range(town: Town) -> Act:
    await town.upload(config())
    await _ignored(town, manifest("alpha", app()))
    await town.upload(config(lab(reserved=["172.20.5.2"])))
    return town.deploy(manifest("alpha", app()))


async def ignored_and_one_too_many(town: Town) -> Act:
    await town.upload(config())
    await _ignored(town, manifest("alpha", app()))
    return town.deploy(manifest("alpha", app(0)))


async def ignored_and_in_no_az(town: Town) -> Act:
    await town.upload(config(more=[zoned("m", ["z1"], ["z2"])], azs=AZS))
    await _ignored(town, manifest("alpha", app(network="m", azs=["z1"])))
    return town.deploy(manifest("alpha", app(network="m", azs=["z2"])))


async def ignored_and_in_no_group(town: Town) -> Act:
    await town.upload(config())
    await _ignored(town, manifest("alpha", app()))
    return town.deploy(manifest("alpha"))


async def ignored_and_deleted(town: Town) -> Act:
    await town.upload(config())
    await _ignored(town, manifest("alpha", app()))
    return report_vm.delete(town.ledger, "alpha")


async def _settings(town: Town, text: str) -> None:
    [instance] = await town.instances("alpha")
    settings_of(instance, accepted(text))


async def settings_of_a_moved_subnet(town: Town) -> Act:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    return _settings(town, config(lab(range="172.20.6.0/28", gateway="172.20.6.1")))


async def settings_of_an_az_that_is_not_reached_any_more(town: Town) -> Act:
    dynamic = {"name": "edge", "type": "dynamic", "subnets": [{"azs": ["z1", "z2"]}]}
    await town.upload(config(more=[dynamic], azs=AZS))
    await town.run(manifest("alpha", app(network="edge", azs=["z2"])))
    return _settings(town, config(more=[{**dynamic, "subnets": [{"azs": ["z1"]}]}], azs=AZS))


async def settings_before_an_errand(town: Town) -> Act:
    await town.upload(config())
    await town.deploy(manifest("alpha", app(lifecycle="errand")))
    return _settings(town, config())


IN_USE = "Failed to reserve IP '172.20.5.10/32' for instance 'app/UUID (0)': already reserved by"
IN_USE_NUMBER = "[NetworkReservationAlreadyInUse 130008]"
FULL_NUMBER = "[NetworkReservationNotEnoughCapacity 130011]"
IGNORED_NUMBER = "[DeploymentIgnoredInstancesModification 190020]"

STORIES: list[Refusal] = [
    Refusal(
        f"Failed to reserve IP for 'app/UUID (13)' for manual network 'lab': no more available {FULL_NUMBER}",
        too_many,
    ),
    Refusal(
        f"Failed to reserve IP for 'app/UUID (0)' for manual network 'lab': no more available {FULL_NUMBER}",
        nothing_to_pick,
    ),
    Refusal(
        f"Failed to reserve IP for 'app/UUID (1)' for vip network 'pub': no more available {FULL_NUMBER}",
        empty_vip_pool,
    ),
    Refusal(f"{IN_USE} instance 'app/UUID' from deployment 'alpha' {IN_USE_NUMBER}", held_by_another_deployment),
    Refusal(f"{IN_USE} orphaned instance {IN_USE_NUMBER}", held_by_an_orphan),
    Refusal(f"{IN_USE} 'port/7' {IN_USE_NUMBER}", held_by_another_door),
    Refusal(
        "Failed to reserve IP '172.20.5.10/32' for network 'lab': IP belongs to reserved range "
        "[NetworkReservationIpReserved 130013]",
        reserved_by_hand,
    ),
    Refusal(
        "Failed to reserve IP '10.10.0.16/28' for instance 'app/UUID (0)': already reserved by instance 'app/UUID' "
        f"from deployment 'alpha' {IN_USE_NUMBER}",
        block_of_another_deployment,
    ),
    Refusal(
        "Failed to reserve IP '10.10.0.16/28' for network 'lab': IP belongs to reserved range "
        "[NetworkReservationIpReserved 130013]",
        block_reserved_by_hand,
    ),
    Refusal(
        "Failed to reserve IP '10.10.0.16/28' for instance 'b/UUID (0)': it waits for 'a/UUID' to hand it over. "
        f"Report that its VM is replaced or gone. {IN_USE_NUMBER}",
        block_to_be_handed_over,
    ),
    Refusal(
        "Existing instance 'app/1' is using IP '10.1.0.11/32' in availability zone 'z2' "
        "[NetworkReservationError 130010]",
        subnet_in_another_az,
    ),
    Refusal(
        "Failed to distribute static IPs to satisfy existing instance reservations [NetworkReservationError 130010]",
        second_network_elsewhere,
    ),
    Refusal(
        "Failed to find a static IP for network 'n' on a matching subnet in nic_group '1' in availability zone 'z1' "
        "[NetworkReservationError 130010]",
        nic_on_two_vlans,
    ),
    Refusal(
        "Failed to evenly distribute static IPs between zones for instance group 'app' "
        "[InstanceGroupNetworkInstanceIpMismatch 150002]",
        uneven,
    ),
    Refusal(
        "Failed to migrate instance group 'old' to 'new', 'old' belongs to availability zone 'z1' and manifest "
        "specifies 'z2' [DeploymentInvalidMigratedFromJob 190018]",
        migrated_to_another_az,
    ),
    Refusal(
        "Failed to migrate instance group 'old' to 'new', availability zone of 'old' is not specified "
        "[DeploymentInvalidMigratedFromJob 190018]",
        migrated_without_az,
    ),
    Refusal(
        "In instance group 'app', an attempt was made to remove a static ip that is used by an ignored instance. "
        f"This operation is not allowed. {IGNORED_NUMBER}",
        ignored_and_without_its_address,
    ),
    Refusal(
        "In instance group 'app', which contains ignored vms, an attempt was made to modify the networks. "
        f"This operation is not allowed. {IGNORED_NUMBER}",
        ignored_and_on_another_network,
    ),
    Refusal(
        "In instance group 'app', an attempt was made to modify the networks of an ignored instance 'app/UUID'. "
        f"Modifying ignored instances is not allowed. {IGNORED_NUMBER}",
        ignored_and_off_the_range,
    ),
    Refusal(
        "Instance Group 'app' has 1 ignored instance(s). 0 instance(s) of that instance group were requested. "
        f"Deleting ignored instances is not allowed. {IGNORED_NUMBER}",
        ignored_and_one_too_many,
    ),
    Refusal(
        f"Instance Group 'app' no longer contains AZs [\"z1\"] where ignored instance(s) exist. {IGNORED_NUMBER}",
        ignored_and_in_no_az,
    ),
    Refusal(
        "You are trying to delete instance group 'app', which contains ignored instance(s). Deleting ignored instances "
        "is not allowed. [DeploymentIgnoredInstancesDeletion 190021]",
        ignored_and_in_no_group,
    ),
    Refusal(
        "You are trying to delete deployment 'alpha', which contains ignored instance(s). Deleting ignored instances "
        "is not allowed. [DeploymentIgnoredInstancesDeletion 190021]",
        ignored_and_deleted,
    ),
    Refusal(
        "Provided IP '172.20.5.2' does not belong to any subnet [NetworkReservationInvalidIp 130001]",
        settings_of_a_moved_subnet,
    ),
    Refusal(
        "Network 'edge' has no matching subnet for availability zone 'z2' "
        "[NetworkSubnetInvalidAvailabilityZone 160009]",
        settings_of_an_az_that_is_not_reached_any_more,
    ),
    Refusal(
        "Can't generate network settings without an IP [NetworkReservationIpMissing 130005]",
        settings_before_an_errand,
    ),
]
