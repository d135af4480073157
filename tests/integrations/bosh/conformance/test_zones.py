"""C14 – C17, D21, D25, D26, I12: instances over AZs, groups that become others, ignored instances, NICs."""

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.verbs import report_vm
from tests.integrations.bosh.conformance.town import Document, Town, app, config, lab, manifest
from tests.integrations.bosh.refused_stories import both, on, zoned

AZS = [{"name": "z1"}, {"name": "z2"}]
STATIC = {"static": ["172.20.5.10-172.20.5.13"]}
OTHER: Document = {"range": "172.20.6.0/28", "gateway": "172.20.6.1", "static": ["172.20.6.10-172.20.6.13"]}


async def zones(town: Town) -> dict[str, str | None]:
    """Return the AZ of each instance of alpha."""
    return {f"{each.group}/{each.index}": each.az for each in await town.instances("alpha")}


async def test_c14_static_ips_of_one_az_put_all_instances_there(town: Town) -> None:
    await town.upload(config(lab(az="z1", **STATIC), {**OTHER, "az": "z2"}, azs=AZS))
    await town.run(manifest("alpha", app(2, azs=["z1", "z2"], static_ips=["172.20.5.10", "172.20.5.11"])))

    assert await zones(town) == {"app/0": "z1", "app/1": "z1"}
    assert await town.tails("alpha") == {"app/0": ".10", "app/1": ".11"}


async def test_c15_new_instances_go_where_there_are_fewest(town: Town) -> None:
    await town.upload(config(lab(azs=["z1", "z2"], **STATIC), azs=AZS))
    await town.run(manifest("alpha", app(2, azs=["z1"], static_ips=["172.20.5.10", "172.20.5.11"])))
    await town.run(manifest("alpha", app(4, azs=["z1", "z2"], static_ips=["172.20.5.10-172.20.5.13"])))

    assert await zones(town) == {"app/0": "z1", "app/1": "z1", "app/2": "z2", "app/3": "z2"}
    assert await town.tails("alpha") == {"app/0": ".10", "app/1": ".11", "app/2": ".12", "app/3": ".13"}


async def test_c16_static_ips_that_cannot_be_spread_evenly_are_refused(town: Town) -> None:
    await town.upload(config(more=[zoned("m", ["z1"], ["z2"]), zoned("n", ["z1"], ["z2"], net=2)], azs=AZS))
    before = await town.ledger.last_change()
    with pytest.raises(Refused) as caught:
        await town.run(both(on("m", "10.1.0.10", "10.1.1.10"), on("n", "10.2.0.10", "10.2.0.11"), instances=2))

    assert caught.value.kind is BoshErrorKind.INSTANCE_GROUP_NETWORK_INSTANCE_IP_MISMATCH
    assert caught.value.message.startswith("Failed to evenly distribute static IPs between zones")
    assert await town.ledger.last_change() == before


async def test_c17_a_static_ip_whose_subnet_leaves_the_instances_az_is_refused_by_name(town: Town) -> None:
    text = manifest("alpha", app(2, azs=["z1", "z2"], static_ips=["172.20.5.10", "172.20.5.11"]))
    await town.upload(config(lab(azs=["z1", "z2"], **STATIC), {**OTHER, "azs": ["z2"]}, azs=AZS))
    await town.run(text)
    await town.upload(config(lab(azs=["z1"], **STATIC), {**OTHER, "azs": ["z2"]}, azs=AZS))
    before = await town.instances("alpha")
    with pytest.raises(Refused) as caught:
        await town.deploy(text)

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ERROR
    assert caught.value.message == ("Existing instance 'app/1' is using IP '172.20.5.11/32' in availability zone 'z2'")
    assert await town.instances("alpha") == before


async def test_d21_a_group_cannot_come_from_another_az_than_its_instances_are_in(town: Town) -> None:
    await town.upload(config(lab(azs=["z1", "z2"]), azs=AZS))
    await town.run(manifest("alpha", app(name="old", azs=["z1"])))
    before = await town.instances("alpha")
    source = [{"name": "old", "az": "z2"}]
    with pytest.raises(Refused) as caught:
        await town.deploy(manifest("alpha", app(name="new", azs=["z1", "z2"], migrated_from=source)))

    assert caught.value.kind is BoshErrorKind.DEPLOYMENT_INVALID_MIGRATED_FROM_JOB
    assert await town.instances("alpha") == before


TWIN = {"name": "b", "subnets": [{"range": "172.20.9.0/28", "gateway": "172.20.9.1"}]}


@pytest.mark.parametrize(
    "changed",
    [
        manifest("alpha", app(static_ips=["172.20.5.11"])),
        manifest("alpha", app()),
        manifest("alpha", app(network="b")),
    ],
    ids=["static", "automatic", "network"],
)
async def test_d25_an_ignored_instances_networks_cannot_be_changed(town: Town, changed: str) -> None:
    await town.upload(config(lab(**STATIC), more=[TWIN]))
    await town.run(manifest("alpha", app(static_ips=["172.20.5.10"])))
    await report_vm.ignore(town.ledger, "alpha", "app/0")
    before = await town.ledger.last_change()
    with pytest.raises(Refused) as caught:
        await town.deploy(changed)

    assert caught.value.kind is BoshErrorKind.DEPLOYMENT_IGNORED_INSTANCES_MODIFICATION
    assert await town.ledger.last_change() == before


async def test_d26_an_ignored_instance_is_deleted_with_neither_its_group_nor_its_deployment(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(), app(name="other")))
    await report_vm.ignore(town.ledger, "alpha", "app/0")
    before = await town.ledger.last_change()
    with pytest.raises(Refused) as with_group:
        await town.deploy(manifest("alpha", app(name="other")))
    with pytest.raises(Refused) as with_deployment:
        await report_vm.delete(town.ledger, "alpha")

    assert [with_group.value.kind, with_deployment.value.kind] == [
        BoshErrorKind.DEPLOYMENT_IGNORED_INSTANCES_DELETION
    ] * 2
    assert await town.ledger.last_change() == before


async def test_i12_an_added_networks_address_is_on_the_subnet_of_its_nic_or_refused(town: Town) -> None:
    networks = [zoned("m", ["z1"], ["z1"]), zoned("n", ["z1"], ["z1"], net=2)]
    await town.upload(config(more=networks, azs=AZS))
    m = on("m", "10.1.0.10", "10.1.1.10", nic_group=1)
    await town.run(both(m, instances=2, azs=["z1"]))
    await town.run(both(m, on("n", "10.2.1.10", "10.2.0.10", nic_group=1), instances=2, azs=["z1"]))
    before = await town.instances("alpha")
    with pytest.raises(Refused) as caught:
        await town.deploy(both(m, on("n", "10.2.0.11", "10.2.0.12", nic_group=1), instances=2, azs=["z1"]))

    assert await town.has("alpha") == {
        "app/0": {"m": "10.1.0.10", "n": "10.2.0.10"},
        "app/1": {"m": "10.1.1.10", "n": "10.2.1.10"},
    }
    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ERROR
    assert "on a matching subnet in nic_group '1'" in caught.value.message
    assert await town.instances("alpha") == before
