"""I14 – I16: managed networks, made in a cloud that only records what it is asked."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tenure.integrations.bosh.cloud_config import managed_networks
from tenure.integrations.bosh.deployments_api import Deployments
from tenure.integrations.bosh.model.bosh_errors import Refused, Rejected
from tenure.integrations.bosh.state.managed_records import CREATING, DELETING, CreatedSubnet, Managed, load_managed
from tenure.integrations.bosh.verbs import report_vm
from tenure.integrations.bosh.verbs.deploy import Deployed
from tenure.kernel.errors import NotFound, StillInUse, StoreUnavailable
from tests.integrations.bosh.conformance.recorder import FIRST, SECOND, Recorder, managed_config
from tests.integrations.bosh.conformance.town import Document, Town, app, config, manifest


async def run(town: Town, cloud: Recorder, *deployments: str, network: str = "made") -> None:
    """Deploy these, each with one instance on the managed network."""
    for name in deployments:
        await town.run(manifest(name, app(network=network)), cloud=cloud)


async def delete(town: Town, deployment: str) -> None:
    for each in await report_vm.delete(town.ledger, deployment):
        await report_vm.lose(town.ledger, deployment, each.name)
    if (await town.ledger.papers("deployments.deployment", prefix=deployment)) != []:
        await report_vm.delete(town.ledger, deployment)


async def made(town: Town) -> Managed:
    """Read the managed network."""
    return (await load_managed(town.ledger))["made"]


async def test_i14_a_network_is_made_once_for_several_deployments(town: Town) -> None:
    cloud = Recorder()
    await town.upload(managed_config(FIRST, SECOND))
    await run(town, cloud, "alpha", "beta")

    assert cloud.asked == ["create s1 10.60.1.0/28", "create s2 10.60.2.0/28"]
    assert (await made(town)).deployments == ("alpha", "beta")
    assert await town.has("beta") == {"app/0": {"made": "10.60.1.3"}}


async def test_i14_it_is_an_orphan_when_the_last_deployment_is_deleted_and_none_when_it_is_used_again(
    town: Town,
) -> None:
    cloud = Recorder()
    await town.upload(managed_config(FIRST))
    await run(town, cloud, "alpha", "beta")
    await delete(town, "alpha")
    used = (await made(town)).orphaned
    await delete(town, "beta")
    orphaned = (await made(town)).orphaned
    await run(town, cloud, "gamma")

    assert (used, orphaned) == (False, True)
    assert (await made(town)).deployments == ("gamma",)
    assert cloud.asked == ["create s1 10.60.1.0/28"]


async def test_i14_a_deployment_that_leaves_a_network_uses_it_until_its_addresses_are_gone(town: Town) -> None:
    cloud = Recorder()
    await town.upload(managed_config(FIRST))
    await run(town, cloud, "alpha")
    await run(town, cloud, "alpha", network="lab")
    leaving = (await made(town)).deployments
    await run(town, cloud, "alpha", network="lab")

    assert leaving == ("alpha",)
    assert (await made(town)).orphaned


async def test_i14_who_does_not_use_it_does_not_make_it_and_a_dry_run_neither(town: Town) -> None:
    cloud = Recorder()
    await town.upload(managed_config(FIRST))
    await run(town, cloud, "alpha", network="lab")
    await town.deploy(manifest("beta", app(network="made")), cloud=cloud, dry=True)

    assert cloud.asked == []


async def test_i14_the_network_to_compile_on_is_made_too(town: Town) -> None:
    cloud = Recorder()
    network = {"name": "made", "type": "manual", "managed": True, "subnets": [FIRST]}
    await town.upload(config(more=[network], compilation={"network": "made"}))
    await run(town, cloud, "alpha", network="lab")

    assert cloud.asked == ["create s1 10.60.1.0/28"]
    assert (await made(town)).deployments == ("alpha",)


async def test_i14_many_at_once_make_it_once(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed_networks, "POLL_S", 0.02)
    cloud = Recorder(takes_s=0.1)
    await town.upload(managed_config(FIRST, SECOND))
    texts = [manifest(name, app(network="made")) for name in ("alpha", "beta", "gamma")]
    deploys: Sequence[Deployed] = await asyncio.gather(*(town.deploy(text, cloud=cloud) for text in texts))

    assert cloud.asked == ["create s1 10.60.1.0/28", "create s2 10.60.2.0/28"]
    assert {each.address for deployed in deploys for each in deployed.granted.values()} == {
        "10.60.1.2",
        "10.60.1.3",
        "10.60.1.4",
    }
    assert (await made(town)).deployments == ("alpha", "beta", "gamma")


async def test_i14_a_subnet_that_is_added_later_is_made_when_it_is_needed(town: Town) -> None:
    cloud = Recorder()
    await town.upload(managed_config(FIRST))
    await run(town, cloud, "alpha")
    await town.upload(managed_config(FIRST, SECOND))
    await run(town, cloud, "beta")

    assert cloud.asked == ["create s1 10.60.1.0/28", "create s2 10.60.2.0/28"]


async def test_i15_if_the_second_subnet_fails_the_first_is_deleted_again_and_nothing_is_left(town: Town) -> None:
    cloud = Recorder(fails=frozenset({"create s2"}))
    await town.upload(managed_config(FIRST, SECOND))
    with pytest.raises(RuntimeError, match="no room for s2"):
        await run(town, cloud, "alpha")
    left = await load_managed(town.ledger)
    holdings = await town.ledger.holdings("made")
    cloud.fails = frozenset()
    await run(town, cloud, "alpha")

    assert cloud.asked[:3] == ["create s1 10.60.1.0/28", "create s2 10.60.2.0/28", "delete cid-s1"]
    assert (left, holdings) == ({}, [])
    assert await town.instances("alpha") != []


async def test_i15_a_subnet_that_fails_to_be_added_leaves_the_network_as_it_was(town: Town) -> None:
    cloud = Recorder(fails=frozenset({"create s2"}))
    await town.upload(managed_config(FIRST))
    await run(town, cloud, "alpha")
    before = await made(town)
    await town.upload(managed_config(FIRST, SECOND))
    with pytest.raises(RuntimeError):
        await run(town, cloud, "beta")
    after = await made(town)

    assert (after.state, after.subnets, after.deployments) == (before.state, before.subnets, before.deployments)
    assert "delete cid-s1" not in cloud.asked


async def test_i15_what_cannot_be_deleted_again_stays_written_down_and_is_used_next_time(town: Town) -> None:
    cloud = Recorder(fails=frozenset({"create s2", "delete cid-s1"}))
    await town.upload(managed_config(FIRST, SECOND))
    with pytest.raises(RuntimeError, match="no room for s2") as caught:
        await run(town, cloud, "alpha")
    left = await made(town)
    cloud.fails = frozenset()
    await run(town, cloud, "alpha")

    assert caught.value.__notes__ == ["subnet 's1' of network 'made' could not be deleted: cid-s1 is stuck"]
    assert (list(left.subnets), left.orphaned) == (["s1"], True)
    assert cloud.asked[3:] == ["create s2 10.60.2.0/28"]


async def test_i15_whoever_is_stopped_on_the_way_leaves_nothing(town: Town) -> None:
    cloud = Recorder(takes_s=5)
    await town.upload(managed_config(FIRST))
    deploying = asyncio.create_task(town.deploy(manifest("alpha", app(network="made")), cloud=cloud))
    await asyncio.wait_for(cloud.begun.wait(), 10)
    deploying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deploying

    assert await load_managed(town.ledger) == {}


async def test_what_somebody_left_half_made_is_finished_by_the_next(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(managed_networks, "POLL_S", 0.01)
    cloud = Recorder()
    await town.upload(managed_config(FIRST, SECOND))
    half = Managed("made", CREATING, "gone", {"s1": CreatedSubnet("cid-old")})
    await town.ledger.apply([half.written()])
    await managed_networks.prepare(town.ledger, cloud, "m.yml", manifest("alpha", app(network="made")), patience_s=0.05)

    assert cloud.asked == ["create s2 10.60.2.0/28"]
    assert {name: each.cid for name, each in (await made(town)).subnets.items()} == {"s1": "cid-old", "s2": "cid-s2"}


@pytest.mark.parametrize(
    ("subnets", "told"),
    [
        ([{"range": "10.60.1.0/28"}], "Required property 'name' was not specified"),
        ([FIRST, {**SECOND, "name": "s1"}], "subnet names within a managed network must be unique"),
    ],
    ids=["unnamed", "alike"],
)
async def test_i16_subnets_need_names_of_their_own(town: Town, subnets: list[Document], told: str) -> None:
    with pytest.raises(Rejected, match=told):
        await town.upload(managed_config(*subnets))


CHOSEN = {"range": "10.61.0.0/28", "gateway": "10.61.0.1", "reserved": ("10.61.0.2-10.61.0.4",)}
OPEN = {"name": "s1", "netmask_bits": 28, "cloud_properties": {"t0": "a"}}


async def test_a_range_that_the_cloud_chooses_is_used_and_remembered(town: Town) -> None:
    cloud = Recorder(chosen={**CHOSEN, "cloud_properties": {"name": "seg-1"}})
    await town.upload(managed_config(OPEN))
    await run(town, cloud, "alpha")
    await town.upload(managed_config(OPEN))
    again = await town.run(manifest("alpha", app(network="made")), cloud=cloud)
    [instance] = await town.instances("alpha")

    assert cloud.asked == ["create s1 28"]
    assert not again.changes
    assert instance.made_with is not None
    assert instance.made_with["made"] == {
        "type": "manual",
        "ip": "10.61.0.5",
        "netmask": "255.255.255.240",
        "prefix": "32",
        "gateway": "10.61.0.1",
        "cloud_properties": {"t0": "a", "name": "seg-1"},
        "default": ["dns", "gateway"],
    }


@pytest.mark.parametrize(
    "chosen", [{}, {"range": "10.61.0.0/28", "gateway": "10.62.0.1"}, {"range": "10.61.0.0"}, {"range": "nowhere"}]
)
async def test_a_cloud_that_chooses_nothing_usable_is_refused_and_leaves_nothing(
    town: Town, chosen: dict[str, Any]
) -> None:
    cloud = Recorder(chosen=chosen)
    await town.upload(managed_config(OPEN))
    with pytest.raises(Refused, match="The cloud made subnet 's1' of network 'made' unusable"):
        await run(town, cloud, "alpha")

    assert cloud.asked == ["create s1 28", "delete cid-s1"]
    assert await load_managed(town.ledger) == {}


async def test_an_unusable_subnet_that_cannot_be_deleted_does_no_harm_and_is_asked_for_again(town: Town) -> None:
    cloud = Recorder(chosen={"range": "nowhere"}, fails=frozenset({"delete cid-s1"}))
    await town.upload(managed_config(OPEN))
    with pytest.raises(Refused):
        await run(town, cloud, "alpha")
    left = await made(town)
    await run(town, cloud, "beta", network="lab")
    cloud.chosen = CHOSEN
    await run(town, cloud, "alpha")

    assert left.subnets == {"s1": CreatedSubnet("cid-s1")}
    assert await town.has("alpha") == {"app/0": {"made": "10.61.0.5"}}


async def test_an_orphan_can_be_deleted_and_made_again(town: Town) -> None:
    cloud = Recorder(chosen=CHOSEN)
    await town.upload(managed_config(OPEN))
    await run(town, cloud, "alpha")
    with pytest.raises(StillInUse):
        await managed_networks.delete_network(town.ledger, cloud, "made")
    await delete(town, "alpha")
    await managed_networks.delete_network(town.ledger, cloud, "made")
    gone = await town.ledger.network("made")
    with pytest.raises(NotFound):
        await managed_networks.delete_network(town.ledger, cloud, "made")
    cloud.chosen = {"range": "10.63.0.0/28", "gateway": "10.63.0.1"}
    await run(town, cloud, "alpha")

    assert gone.subnets == ()
    assert cloud.asked == ["create s1 28", "delete cid-s1", "create s1 28"]
    assert await town.has("alpha") == {"app/0": {"made": "10.63.0.2"}}


async def test_a_network_is_not_deleted_while_an_orphaned_vm_is_in_it(town: Town) -> None:
    cloud = Recorder()
    text = manifest("alpha", app(network="made", update={"vm_strategy": "create-swap-delete"}))
    await town.upload(managed_config(FIRST))
    await town.run(text, cloud=cloud)
    [old] = [each.vm or "" for each in await town.instances("alpha")]
    await town.run(text, cloud=cloud, recreate=True)
    await delete(town, "alpha")
    with pytest.raises(StillInUse, match=f"orphan/{old}"):
        await managed_networks.delete_network(town.ledger, cloud, "made")
    await report_vm.clean_up_orphan(town.ledger, old)
    await managed_networks.delete_network(town.ledger, cloud, "made")

    assert await load_managed(town.ledger) == {}


async def test_an_orphan_that_cannot_be_deleted_stays_with_what_is_left_of_it(town: Town) -> None:
    cloud = Recorder(fails=frozenset({"delete cid-s2"}))
    await town.upload(managed_config(FIRST, SECOND))
    await run(town, cloud, "alpha")
    await delete(town, "alpha")
    with pytest.raises(RuntimeError, match="cid-s2 is stuck"):
        await managed_networks.delete_network(town.ledger, cloud, "made")
    left = await made(town)
    cloud.fails = frozenset()
    await managed_networks.delete_network(town.ledger, cloud, "made")

    assert (list(left.subnets), left.state) == (["s2"], "ready")
    assert await load_managed(town.ledger) == {}


@pytest.mark.parametrize("arrives", [False, True], ids=["not written", "written"])
async def test_a_deletion_whose_writing_fails_reports_that_and_leaves_the_network_to_be_deleted(
    town: Town, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    cloud = Recorder()
    await town.upload(managed_config(FIRST, SECOND))
    await run(town, cloud, "alpha")
    await delete(town, "alpha")
    write = managed_networks._Making._write

    async def losing(self: Any, managed: Managed) -> Managed:
        if managed.state != DELETING or len(managed.subnets) != 1:
            return await write(self, managed)
        if arrives:
            await write(self, managed)
        raise StoreUnavailable("the answer was lost", outcome="unknown")

    monkeypatch.setattr(managed_networks._Making, "_write", losing)
    with pytest.raises(StoreUnavailable, match="the answer was lost"):
        await managed_networks.delete_network(town.ledger, cloud, "made")
    left = await made(town)
    monkeypatch.undo()
    await managed_networks.delete_network(town.ledger, cloud, "made", patience_s=0)

    assert (list(left.subnets), left.state, left.by) == (["s2"], "ready", "")
    assert cloud.asked[2:] == ["delete cid-s1", "delete cid-s2"]
    assert await load_managed(town.ledger) == {}


@pytest.mark.parametrize("state", [CREATING, DELETING])
async def test_what_fails_while_a_network_is_set_right_does_not_hide_the_first_error(
    town: Town, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    cloud = Recorder()
    await town.upload(managed_config(FIRST))
    if state == DELETING:
        await run(town, cloud, "alpha")
        await delete(town, "alpha")
    cloud.fails = frozenset({"create s1", "delete cid-s1"})

    async def away(ledger: object, name: str) -> None:
        raise StoreUnavailable("the ledger is away", outcome="none")

    monkeypatch.setattr(managed_networks._Making, "_is_mine", away)
    working = run(town, cloud, "alpha")
    if state == DELETING:
        working.close()
        working = managed_networks.delete_network(town.ledger, cloud, "made")
    with pytest.raises(RuntimeError) as caught:
        await working

    assert caught.value.__notes__ == [f"network 'made' stays {state}: the ledger is away (nothing was changed)"]


async def test_the_allocators_own_addresses_are_restricted_in_a_range_that_the_cloud_chooses(town: Town) -> None:
    cloud = Recorder(chosen={"range": "10.61.0.0/28", "gateway": "10.61.0.1"})
    network = {"name": "made", "type": "manual", "managed": True, "subnets": [OPEN]}
    await town.upload(config(more=[network], own_addresses=["10.60.255.250-10.61.0.3", "192.0.2.9"]))
    await run(town, cloud, "alpha")

    assert await town.has("alpha") == {"app/0": {"made": "10.61.0.4"}}


async def test_a_plan_does_not_call_a_network_full_that_is_still_to_be_made(town: Town) -> None:
    cloud = Recorder(chosen={"range": "10.61.0.0/29", "gateway": "10.61.0.1"})
    door = Deployments(town.ledger, cloud=cloud)
    await town.upload(managed_config(OPEN))
    with pytest.raises(Refused, match="'made': its range is not known yet"):
        await door.plan(manifest("alpha", app(network="made")))
    await door.apply(manifest("alpha", app(5, network="made")))
    with pytest.raises(Refused, match="'made': no more available"):
        await door.plan(manifest("beta", app(network="made")))

    assert cloud.asked == ["create s1 28"]
