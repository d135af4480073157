"""Moving the addresses of a pool into a ledger and out again: what is planned, what is in the way, what is written."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

import tenure
from tenure.integrations.kubernetes.metal3.explain_address import explain_address
from tenure.integrations.kubernetes.metal3.free_addresses import count_free
from tenure.integrations.kubernetes.metal3.ledger.moving_in import MovePlan, plan_export, plan_import, run_plan
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import id_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.read_pools import ReadPools
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType
from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.errors import Conflict, Invalid, NotFound
from tenure.service.ledger.async_ledger import AsyncLedger

KEY = PoolId("metal", "p")
BOUND: dict[str, Any] = {"ledger": {"network": "machines", "realm": "east", "secretName": "tenure-ledger"}}


@pytest.fixture
async def ledger() -> AsyncIterator[AsyncLedger]:
    """Give a ledger with a network of ten addresses."""
    async with await tenure.open_async("memory:") as opened:
        await opened.add_network("machines", space="site")
        await opened.add_subnet("machines", "192.0.2.0/24", gateway="192.0.2.1")
        await opened.add_pool("machines", "192.0.2.10-192.0.2.19")
        yield opened


def made(kind: ResourceType, name: str, spec: Object) -> Object:
    """Return an object as a server has it."""
    metadata = {"namespace": "metal", "name": name, "uid": f"uid-{kind.kind}-{name}", "creationTimestamp": "2026-01-01"}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def read(*held: tuple[str, str], claims: tuple[str, ...] | None = None, **tenure_fields: object) -> ReadPools:
    """Return a pool whose claims have these addresses; ``claims``: the claims that are there, all by default."""
    entries = [{"start": "192.0.2.10", "end": "192.0.2.19"}]
    fields = {"namePrefix": "p", "pools": entries, "preAllocations": {"chosen": "192.0.2.15"}, "tenure": tenure_fields}
    names = [claim for claim, _ in held] if claims is None else claims
    found = [made(IP_CLAIM, name, {"pool": {"name": "p"}}) for name in names]
    addresses = [
        made(IP_ADDRESS, f"p-{text}-{claim}", {"address": text, "pool": {"name": "p"}, "claim": {"name": claim}})
        for claim, text in held
    ]
    pool = made(IP_POOL, "p", fields)
    return ReadPools({KEY: pool}, addresses, {id_of(claim): claim for claim in found})


async def held_by(ledger: AsyncLedger) -> dict[str, str]:
    """Return who holds what."""
    return {str(each.owner): each.address for each in await ledger.holdings("machines")}


def reasons(plan: MovePlan) -> dict[str, str]:
    """Return what is in the way, by address."""
    return {each.address: each.reason for each in plan.collisions}


async def test_a_pool_moves_in_once_and_out_again(ledger: AsyncLedger) -> None:
    found = read(("a", "192.0.2.10"), ("b", "192.0.2.11"))
    plan = await plan_import(found, KEY, ledger, "machines", "east")
    assert await held_by(ledger) == {}
    await run_plan(ledger, plan)
    again = await plan_import(found, KEY, ledger, "machines", "east")

    assert await held_by(ledger) == {"east:ipclaim/metal/a": "192.0.2.10", "east:ipclaim/metal/b": "192.0.2.11"}
    assert (again.operations, again.collisions, len(again.done)) == ([], [], 2)
    with pytest.raises(Conflict, match="is bound to a ledger still"):
        await run_plan(ledger, await plan_export(read(**BOUND), KEY, ledger, "machines", "east"))
    await ledger.reserve("machines", "192.0.2.10-192.0.2.19")
    await run_plan(ledger, await plan_export(found, KEY, ledger, "machines", "east"))
    assert await held_by(ledger) == {}


async def test_a_holding_without_labels_under_the_name_of_a_claim_gets_them(ledger: AsyncLedger) -> None:
    await ledger.allocate("machines", owner="east:ipclaim/metal/a", address="192.0.2.10")
    await run_plan(ledger, await plan_import(read(("a", "192.0.2.10")), KEY, ledger, "machines", "east"))

    labels = (await ledger.holding("machines", "192.0.2.10")).labels
    assert labels == {"claim-uid": "uid-IPClaim-a", "claim-created": "2026-01-01", "pool-uid": "uid-IPPool-p"}


async def test_whatever_is_in_the_way_is_reported(ledger: AsyncLedger) -> None:
    await ledger.allocate("machines", owner="instance/thief", address="192.0.2.10")
    await ledger.allocate("machines", owner="east:ipclaim/metal/b", address="192.0.2.17")
    another = {"claim-uid": "another"}
    await ledger.allocate("machines", owner="east:ipclaim/metal/c", address="192.0.2.12", labels=another)
    held = [("a", "192.0.2.10"), ("b", "192.0.2.11"), ("c", "192.0.2.12"), ("d", "203.0.113.9"), ("e", "192.0.2.14")]
    found = read(*held, ("x", "192.0.2.19"), ("y", "192.0.2.19"), claims=("a", "b", "c", "d", "x", "y"))
    plan = await plan_import(found, KEY, ledger, "machines", "east")

    assert {address: reason.partition(":")[0] for address, reason in reasons(plan).items()} == {
        "192.0.2.10": "instance/thief holds it in the ledger, held",
        "192.0.2.11": "the ledger has 192.0.2.17 for this claim",
        "192.0.2.12": "the ledger has it for another claim of this name",
        "203.0.113.9": "address 203.0.113.9 lies in no subnet of network 'machines'",
        "192.0.2.14": "its claim is not there; release it, or make the claim again",
        "192.0.2.19": "another object of the pool has it, for east",
    }


async def test_what_another_network_of_the_space_holds_is_in_the_way(ledger: AsyncLedger) -> None:
    await ledger.add_network("vms", space="site")
    await ledger.add_subnet("vms", "192.0.2.0/24")
    await ledger.allocate("vms", owner="east:ipclaim/metal/a", address="192.0.2.10")
    plan = await plan_import(read(("a", "192.0.2.10")), KEY, ledger, "machines", "east")

    assert reasons(plan) == {"192.0.2.10": "east:ipclaim/metal/a holds it in the ledger in network vms, held"}
    shared = await count_free(read(**BOUND), KEY, ledger, 1)
    assert (shared["held_by_others"], shared["next"]) == (1, ["192.0.2.11"])


async def test_what_cools_off_for_the_claim_itself_is_not_there(ledger: AsyncLedger) -> None:
    """The pool was moved out a moment ago, and is moved in again: nobody holds what cools off."""
    found = read(("a", "192.0.2.10"))
    await run_plan(ledger, await plan_import(found, KEY, ledger, "machines", "east"))
    await ledger.release("machines", "192.0.2.10", owner="east:ipclaim/metal/a", lingers_s=60)
    plan = await plan_import(found, KEY, ledger, "machines", "east")

    assert (plan.done, reasons(plan)) == ([], {"192.0.2.10": "east:ipclaim/metal/a holds it in the ledger, cooling"})
    assert (await plan_export(found, KEY, ledger, "machines", "east")).operations == []


async def test_what_no_object_has_is_not_released_on_the_way_out(ledger: AsyncLedger) -> None:
    await run_plan(ledger, await plan_import(read(("a", "192.0.2.10")), KEY, ledger, "machines", "east"))
    plan = await plan_export(read(claims=("a",)), KEY, ledger, "machines", "east")

    assert plan.operations == []
    assert "no IPAddress of the pool has it" in reasons(plan)["192.0.2.10"]


async def test_what_claims_keep_is_not_released_before_nobody_else_is_given_it(ledger: AsyncLedger) -> None:
    """Only the cluster knows who has it afterwards, and the ledger would give it to the next who asks."""
    found = read(("a", "192.0.2.10"), ("b", "192.0.2.11"))
    await run_plan(ledger, await plan_import(found, KEY, ledger, "machines", "east"))
    await ledger.reserve("machines", "192.0.2.10")
    plan = await plan_export(found, KEY, ledger, "machines", "east")
    assert [each.address for each in plan.moved] == ["192.0.2.10"]
    assert "the ledger would give it to others" in reasons(plan)["192.0.2.11"]
    await ledger.modify_network("machines", retired=True)

    assert (await plan_export(found, KEY, ledger, "machines", "east")).collisions == []


async def test_what_is_held_for_a_claim_that_is_gone_is_released_on_the_way_out(ledger: AsyncLedger) -> None:
    """It was deleted after the pool was unbound: no operator has released it in the ledger."""
    await run_plan(ledger, await plan_import(read(("a", "192.0.2.10")), KEY, ledger, "machines", "east"))
    plan = await plan_export(read(), KEY, ledger, "machines", "east")
    await run_plan(ledger, plan)

    assert (plan.collisions, await held_by(ledger)) == ([], {})


async def test_what_others_hold_of_the_range_is_in_the_way_out_until_it_is_drained(ledger: AsyncLedger) -> None:
    """Also while the pool is bound still: afterwards it is too late."""
    await ledger.allocate("machines", owner="instance/web", address="192.0.2.12")
    plan = await plan_export(read(**BOUND), KEY, ledger, "machines", "east")

    assert "the pool would give it, too" in reasons(plan)["192.0.2.12"]
    assert (await plan_export(read(drain=["192.0.2.12"]), KEY, ledger, "machines", "east")).collisions == []


async def test_an_address_that_a_claim_has_and_others_hold_is_in_the_way_out_as_a_conflict_of_both(
    ledger: AsyncLedger,
) -> None:
    """The pool cannot give it while the claim has it, and no drain ends what is there already."""
    await ledger.allocate("machines", owner="instance/printer", address="192.0.2.12")
    plain = await plan_export(read(("im1", "192.0.2.12")), KEY, ledger, "machines", "east")
    drained = await plan_export(read(("im1", "192.0.2.12"), drain=["192.0.2.12"]), KEY, ledger, "machines", "east")

    said = "held in the ledger, while IPClaim metal/im1 has it in the pool: one of the two has to let go"
    assert reasons(plain) == reasons(drained) == {"192.0.2.12": said}
    assert {each.owner for each in plain.collisions} == {"instance/printer"}


async def test_bad_names_are_refused(ledger: AsyncLedger) -> None:
    with pytest.raises(Invalid, match="realm: 'a b' is no realm"):
        await plan_import(read(), KEY, ledger, "machines", "a b")
    with pytest.raises(NotFound, match="no IPPool 'metal/q'"):
        await plan_import(read(), PoolId("metal", "q"), ledger, "machines", "east")
    with pytest.raises(NotFound, match="no network 'other'"):
        await plan_import(read(), KEY, ledger, "other", "east")


async def test_what_is_free_is_counted_with_what_the_ledger_holds(ledger: AsyncLedger) -> None:
    await ledger.allocate("machines", owner="instance/web", address="192.0.2.12")
    found = read(("a", "192.0.2.10"), **BOUND)
    plain = await count_free(read(("a", "192.0.2.10")), KEY, None, 3)
    shared = await count_free(found, KEY, ledger, 3)

    assert (plain["free"], plain["kept"], plain["next"]) == (8, 1, ["192.0.2.11", "192.0.2.12", "192.0.2.13"])
    assert (shared["free"], shared["held_by_others"], shared["next"]) == (
        7,
        1,
        ["192.0.2.11", "192.0.2.13", "192.0.2.14"],
    )
    assert (plain["faults"], shared["faults"]) == ([], [])


async def test_a_pool_that_cannot_be_read_gives_nothing_next_and_says_why() -> None:
    counted = await count_free(read(coolingSeconds=-1), KEY, None, 3)

    assert counted["next"] == []
    assert counted["faults"] == ["spec.tenure.coolingSeconds: must be a number of seconds from 0 to 31536000"]


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("192.0.2.10", "held"), ("192.0.2.11", "orphaned"), ("192.0.2.15", "pre-allocated"), ("192.0.2.16", "free"),
        ("192.0.2.18", "drained"),
    ],
)  # fmt: skip
def test_an_address_is_explained(address: str, status: str) -> None:
    found = read(("a", "192.0.2.10"), ("b", "192.0.2.11"), claims=("a",), drain=["192.0.2.18"])
    (finding,) = explain_address(found, parse_address(address))

    assert (finding.status, finding.pool) == (status, KEY)
    assert explain_address(found, parse_address("198.51.100.1")) == []
