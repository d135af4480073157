"""What comes between any two writes of a pass: other objects, other claims, lost answers. No server is needed."""

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from functools import partial
from typing import cast

import pytest

from tenure.integrations.kubernetes.metal3 import pool_pass, pool_writes
from tenure.integrations.kubernetes.metal3.address_giving import AT_ONCE, BATCH, all_of
from tenure.integrations.kubernetes.metal3.claim_decision import Action, PoolView, decide
from tenure.integrations.kubernetes.metal3.ledger.pool_ledgers import PoolLedgers
from tenure.integrations.kubernetes.metal3.ledger_state import LedgerAway
from tenure.integrations.kubernetes.metal3.objects.address_objects import new_address
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import KINDS_OF_IP_POOLS
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    ADDRESS_FINALIZER,
    BLOCK_MOVE,
    CLAIM_FINALIZER,
    CLUSTER,
    DELETE_FOR_MOVE,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
    MADE_FOR,
    OWN_ADDRESS,
    PAUSED,
    PICKED_FOR,
    WISHED_ADDRESS,
    finalizers_of,
    labels_of,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId, Provider
from tenure.integrations.kubernetes.metal3.objects.pool_spec import read_pool_spec
from tenure.integrations.kubernetes.metal3.pool_book import PICKED
from tenure.integrations.kubernetes.runtime.api_errors import (
    NAMESPACE_GOING,
    ApiUnreachable,
    ObjectExists,
    WriteConflict,
    error_of,
)
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, key_of, uid_of
from tenure.kernel.addressing.addresses import parse_address
from tests.integrations.kubernetes.metal3.claim_specs import claim_spec
from tests.integrations.kubernetes.metal3.pass_stage import POOL, Stage, claim_id, numbered

pytestmark = pytest.mark.usefixtures("skipped_time")


def name_own(stage: Stage, claim: Object, address: str) -> None:
    """Let a claim name an address as its own that was picked for it."""
    marks = {OWN_ADDRESS: address, PICKED_FOR: uid_of(claim)}
    stage.change(IP_CLAIM, key_of(claim)[1], lambda each: each["metadata"].update(annotations=marks))


def make_by_hand(stage: Stage, at: tuple[str, ResourceType], address: str, claim: str) -> None:
    """Let a user make an address at the moment of the operator's first write of a sort; the watch brings it after."""

    def by_hand(method: str, kind: ResourceType, object: Object) -> None:
        if (method, kind) == at:
            stage.before = lambda *write: None
            asyncio.get_running_loop().call_soon(lambda: stage.address("hand", address, claim))

    stage.before = by_hand


@pytest.mark.parametrize("at", [("PATCH", IP_CLAIM), ("PATCH", IP_POOL), ("POST", IP_ADDRESS)])
async def test_an_address_made_by_hand_at_any_moment_of_a_pick_is_respected(at: tuple[str, ResourceType]) -> None:
    """Under a name of its own, so that no name is a lock. If ours was made already, it goes before the claim has it.

    A claim without its finalizer gets that first.
    """
    stage = Stage()
    stage.pool()
    stage.claim("c", finalizers=[])
    make_by_hand(stage, at, "10.0.0.1", "vip")
    await stage.settle()

    assert stage.given() == {"hand": "10.0.0.1", "p-10-0-0-2": "10.0.0.2"}
    assert stage.status("c")["address"]["name"] == "p-10-0-0-2"
    assert stage.caches.records.of(POOL).book.doubled == set()


def shrink_pool(stage: Stage, at: tuple[str, ResourceType], *, is_seen: bool = True) -> None:
    """Let a user take the first addresses out of the pool at the moment of the operator's first write of a sort."""

    def shrink(method: str, kind: ResourceType, object: Object) -> None:
        if (method, kind) == at:
            stage.before = lambda *write: None
            entries = [{"start": "10.0.0.5", "end": "10.0.0.9"}]
            stage.change(IP_POOL, "p", lambda each: each["spec"].update(pools=entries), is_seen=is_seen)

    stage.before = shrink


@pytest.mark.parametrize("is_seen", [True, False])
@pytest.mark.parametrize("at", [("PATCH", IP_CLAIM), ("PATCH", IP_POOL), ("POST", IP_ADDRESS)])
async def test_a_pick_from_a_range_that_goes_meanwhile_is_picked_again(
    at: tuple[str, ResourceType], is_seen: bool
) -> None:
    """A15: at any moment of the pick, also where no webhook is asked about the change."""
    stage = Stage()
    stage.pool()
    for name in ("a", "b"):
        stage.claim(name, finalizers=[])
    shrink_pool(stage, at, is_seen=is_seen)
    with contextlib.suppress(WriteConflict):  # of the status, which is written again when the watch brings the pool
        await stage.settle()
    stage.see(IP_POOL, "p")
    await stage.settle()

    # What the operator could not know of became an address, as if it had been there before; the status says so.
    left = {"10.0.0.1", "10.0.0.2"} if at == ("POST", IP_ADDRESS) and not is_seen else set()
    status = stage.objects["ippools", "p"]["status"]["tenure"]
    assert set(stage.given().values()) == (left or {"10.0.0.5", "10.0.0.6"})
    assert {each["address"] for each in status.get("outside", [])} == left
    counts = status["addresses"]
    assert (counts["used"], counts["outside"], counts["free"]) == ((0, 2, 5) if left else (2, 0, 3))
    assert "reserving" not in status
    assert all(stage.status(name)["address"] for name in ("a", "b"))


async def test_a_claim_that_waits_in_a_pool_that_was_cut_holds_no_reservation() -> None:
    """It was about to get an address that the pool does not have any more, and nothing else is free."""
    stage = Stage()
    stage.pool(last="10.0.0.2")
    stage.claim("c")
    entries = [{"start": "10.0.0.9", "end": "10.0.0.9"}]
    stage.address("hand", "10.0.0.9", "vip")

    def cut(method: str, kind: ResourceType, object: Object) -> None:
        if (method, kind) == ("POST", IP_ADDRESS):
            stage.before = lambda *write: None
            stage.change(IP_POOL, "p", lambda each: each["spec"].update(pools=entries))

    stage.before = cut
    await stage.settle()

    status = stage.objects["ippools", "p"]["status"]["tenure"]
    assert stage.status("c") == {"errorMessage": "Exhausted IP Pools"}
    assert stage.given() == {"hand": "10.0.0.9"}
    assert "reserving" not in status
    counts = {"total": 1, "free": 0, "used": 1, "kept": 0, "usedPercent": 100, "outside": 0, "waiting": 1}
    assert status["addresses"] == counts


@pytest.mark.parametrize("wish", ["10.9.9.9", "10.0.0.2", "no address"])
async def test_a_claim_that_asks_for_another_address_after_a_failure_holds_no_reservation(wish: str) -> None:
    """Its object could not be created; whatever is wrong with its new wish, the address is free for others."""

    def fails(method: str, kind: ResourceType, object: Object) -> None:
        if (method, kind) == ("POST", IP_ADDRESS):
            raise ApiUnreachable("no answer")

    stage = Stage()
    stage.pool(last="10.0.0.2")
    stage.address("hand", "10.0.0.2", "vip")
    stage.claim("asks", asks="10.0.0.1")
    stage.before = fails
    await stage.settle(1)
    stage.before = lambda *write: None
    stage.change(IP_CLAIM, "asks", lambda each: each["metadata"]["annotations"].update({WISHED_ADDRESS: wish}))
    stage.claim("any")
    await stage.settle()

    assert stage.given() == {"hand": "10.0.0.2", "p-10-0-0-1": "10.0.0.1"}
    assert stage.status("any")["address"]["name"] == "p-10-0-0-1"
    assert list(stage.status("asks")) == ["errorMessage"]
    assert "reserving" not in stage.objects["ippools", "p"]["status"]["tenure"]


async def test_an_address_that_a_claim_names_outside_of_the_pool_is_not_counted() -> None:
    """It is nobody's, and the pool has as many addresses as before: what is free, used and kept back is all of it."""
    stage = Stage()
    stage.pool(last="10.0.0.4", gateway="10.0.0.1", preAllocations={"x": "10.0.0.2"})
    stage.claim("moved", own="192.0.2.7")
    stage.claim("c")
    stage.address("hand", "192.0.2.8", "vip")
    await stage.settle()

    status = stage.objects["ippools", "p"]["status"]["tenure"]
    counts = {"total": 4, "free": 1, "used": 1, "kept": 2, "usedPercent": 50, "outside": 1, "waiting": 1}
    assert status["addresses"] == counts
    assert status["outside"] == [{"address": "192.0.2.8", "name": "hand"}]
    assert stage.status("moved")["errorMessage"] == "Address 192.0.2.7 is not one that IPPool p gives"


async def test_pools_of_one_namespace_that_share_addresses_say_so_and_each_gives_them() -> None:
    """Both have a condition and an event; when one of them goes or is changed, neither has any more."""
    stage = Stage()
    stage.pool("10.0.0.1", "10.0.0.9")
    stage.pool("10.0.0.7", "10.0.0.20", name="q", namePrefix="q")
    stage.pool("10.0.1.1", "10.0.1.9", name="apart", namePrefix="apart")
    await stage.settle()

    def shared(pool: str) -> list[str]:
        conditions = stage.objects["ippools", pool]["status"]["tenure"]["conditions"]
        assert conditions[0]["reason"] == "Serving"
        return [each["message"] for each in conditions if each["type"] == "Overlapping"]

    said = "it shares 10.0.0.7-10.0.0.9 with IPPool {}: each may give an address that the other has given"
    assert (shared("p"), shared("q"), shared("apart")) == ([said.format("q")], [said.format("p")], [])
    assert stage.events == ["Overlapping", "Overlapping"]
    stage.claim("c")
    await stage.settle()
    assert stage.events.count("Overlapping") == 2

    entries = [{"start": "10.0.0.10", "end": "10.0.0.20"}]
    stage.change(IP_POOL, "q", lambda each: each["spec"].update(pools=entries))
    await stage.settle()
    assert (shared("p"), shared("q")) == ([], [])


async def test_ks2_an_object_that_was_made_for_the_claim_and_is_seen_late_is_adopted() -> None:
    stage = Stage()
    stage.pool()
    stage.claim("c")
    make_by_hand(stage, ("POST", IP_ADDRESS), "10.0.0.4", "c")
    await stage.settle()

    assert stage.given() == {"hand": "10.0.0.4"}
    assert stage.status("c")["address"]["name"] == "hand"


async def test_an_object_that_names_a_claim_and_is_anothers_makes_no_loop() -> None:
    """It names c, and its owner is d, which lives: it is not adopted for c, and c gets an address of its own."""
    stage = Stage()
    stage.pool()
    owner = stage.claim("d")
    stage.address("odd", "10.0.0.7", "c")
    reference = {"kind": "IPClaim", "name": "d", "uid": uid_of(owner)}
    stage.change(IP_ADDRESS, "odd", lambda each: each["metadata"].update(ownerReferences=[reference]))
    stage.claim("c")
    await stage.settle()

    assert stage.status("c")["address"]["name"] == "p-10-0-0-1"
    assert stage.status("d")["address"]["name"] == "odd"
    assert len([each for each in stage.writes if each[0] == "DELETE"]) == 0


async def test_two_objects_for_one_address_are_reported() -> None:
    stage = Stage()
    stage.pool()
    for name in ("one", "two"):
        stage.address(name, "10.0.0.1", name)
    await stage.settle()

    (ready,) = stage.objects["ippools", "p"]["status"]["tenure"]["conditions"]
    assert (ready["status"], ready["reason"]) == ("False", "AddressDoubled")
    assert "10.0.0.1" in ready["message"]
    assert "AddressDoubled" in stage.events
    stage.remove(IP_ADDRESS, "two")
    await stage.settle()
    assert stage.objects["ippools", "p"]["status"]["tenure"]["conditions"][0]["reason"] == "Serving"


async def test_a_claim_that_waits_for_its_pool_says_so_and_a_forged_status_is_taken_off() -> None:
    stage = Stage()
    stage.claim("c")
    stage.change(IP_CLAIM, "c", lambda each: each.update(status={"address": {"name": "of-another"}}))
    await stage.settle()

    assert stage.status("c") == {"errorMessage": "IPPool p does not exist; the claim is served as soon as it does"}
    assert stage.events == ["NotServed"]
    assert stage.caches.records.of(POOL).without_address == 1
    stage.pool()
    await stage.settle()
    assert stage.status("c")["address"]["name"] == "p-10-0-0-1"
    assert "errorMessage" not in stage.status("c")


async def test_kp9_a_claim_that_waits_for_its_address_does_not_go_on_naming_that_of_another_claim() -> None:
    """Its status was forged, or restored from a backup; two machines would get one address."""
    stage = Stage()
    stage.pool()
    stage.claim("c")
    await stage.settle()
    stage.claim("waits", own="10.9.9.9")
    stage.change(IP_CLAIM, "waits", lambda each: each.update(status={"address": {"name": "p-10-0-0-1"}}))
    await stage.settle()

    assert stage.status("waits") == {"errorMessage": "Address 10.9.9.9 is not one that IPPool p gives"}
    assert stage.status("c")["address"]["name"] == "p-10-0-0-1"


async def test_kd7_what_others_made_beside_a_claims_own_address_stays_when_the_claim_goes() -> None:
    stage = Stage()
    stage.pool()
    stage.claim("c")
    await stage.settle()
    stage.address("hand", "10.0.0.9", "c")
    await stage.settle()
    stage.change(IP_CLAIM, "c", lambda each: each["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    await stage.settle()

    assert stage.given() == {"hand": "10.0.0.9"}


async def test_two_claims_that_name_the_last_address_do_not_wait_for_each_other() -> None:
    """The answer to naming it was lost, so it was picked again for another claim, whose name it has as well."""
    stage = Stage()
    stage.pool("10.0.0.7", "10.0.0.7")
    for name in ("c1", "c2"):
        name_own(stage, stage.claim(name), "10.0.0.7")
    await stage.settle()

    assert stage.given() == {"p-10-0-0-7": "10.0.0.7"}
    assert sorted(bool(stage.status(name).get("address")) for name in ("c1", "c2")) == [False, True]


async def test_a_claim_in_the_line_does_not_block_the_address_it_once_named() -> None:
    stage = Stage()
    stage.pool("10.0.0.7", "10.0.0.7")
    stage.address("hand", "10.0.0.7", "vip")
    name_own(stage, stage.claim("c1"), "10.0.0.7")
    await stage.settle()
    assert stage.status("c1")["errorMessage"] == "Exhausted IP Pools"

    stage.remove(IP_ADDRESS, "hand")
    await stage.settle()
    assert stage.status("c1")["address"]["name"] == "p-10-0-0-7"


async def test_a_claim_in_the_line_gets_what_another_leader_has_reserved_for_it() -> None:
    """The address is not free for others then, so that nothing else would wake the claim."""
    stage = Stage()
    stage.pool("10.0.0.7", "10.0.0.7")
    stage.address("hand", "10.0.0.7", "vip")
    uid = uid_of(stage.claim("c1"))
    await stage.settle()
    assert stage.status("c1")["errorMessage"] == "Exhausted IP Pools"

    reserving = [{"address": "10.0.0.7", "uid": uid, "kind": "IPClaim"}]
    stage.change(IP_POOL, "p", lambda pool: pool["status"]["tenure"].update(reserving=reserving))
    stage.remove(IP_ADDRESS, "hand")
    await stage.settle()
    assert stage.status("c1")["address"]["name"] == "p-10-0-0-7"


async def test_a_claim_whose_pick_was_lost_gets_what_another_leader_has_reserved_for_it() -> None:
    stage = Stage()
    stage.pool("10.0.0.7", "10.0.0.8")
    stage.address("hand", "10.0.0.7", "vip")
    claim = stage.claim("c1")
    name_own(stage, claim, "10.0.0.7")
    reserving = [{"address": "10.0.0.8", "uid": uid_of(claim), "kind": "IPClaim"}]
    stage.change(IP_POOL, "p", lambda pool: pool.update(status={"tenure": {"reserving": reserving}}))
    await stage.settle()

    assert stage.status("c1")["address"]["name"] == "p-10-0-0-8"


async def test_a_leader_that_takes_over_gives_what_is_reserved() -> None:
    """The former one may yet create its object: no other address is picked (KP4)."""
    stage = Stage()
    pool = stage.pool()
    uid = uid_of(stage.claim("c1"))
    reserving = [{"address": "10.0.0.7", "uid": uid, "kind": "IPClaim"}]
    stage.change(IP_POOL, key_of(pool)[1], lambda pool: pool.update(status={"tenure": {"reserving": reserving}}))
    await stage.settle()

    assert stage.given() == {"p-10-0-0-7": "10.0.0.7"}


def forge(stage: Stage, **addresses: str) -> None:
    """Let the status of the pool say that addresses are reserved, by the names of claims, or for uids of none."""
    found = {name: stage.objects.get(("ipclaims", name)) for name in addresses}
    entries = [
        {"address": address, "uid": uid_of(claim) if (claim := found[name]) else name, "kind": "IPClaim"}
        for name, address in addresses.items()
    ]
    stage.change(IP_POOL, "p", lambda pool: pool.update(status={"tenure": {"reserving": entries}}))


@pytest.mark.parametrize(
    ("asks", "forged", "gets"),
    [
        ("10.0.0.7", "10.0.0.8", "10.0.0.7"),
        ("", "10.0.0.9", "10.0.0.1"),
        ("", "10.0.0.5", "10.0.0.1"),
        ("", "8.8.8.8", "10.0.0.1"),
        ("", "10.0.0.4", "10.0.0.4"),
    ],
    ids=["claim asks for another", "gateway", "pre-allocated", "outside", "free"],
)
@pytest.mark.parametrize("was_given", [False, True])
async def test_kp13_a_forged_reservation_chooses_only_among_what_a_claim_may_have(
    asks: str, forged: str, gets: str, was_given: bool
) -> None:
    """Also with a status of the claim that is forged, too, and says that the claim had an address."""
    stage = Stage()
    stage.pool(gateway="10.0.0.9", preAllocations={"another": "10.0.0.5"})
    stage.claim("c", asks=asks)
    if was_given:
        stage.change(IP_CLAIM, "c", lambda claim: claim.update(status={"address": {"name": "forged"}}))
    forge(stage, c=forged)
    await stage.settle()

    assert list(stage.given().values()) == [gets]


async def test_kp13_the_status_shows_what_is_free_when_a_forged_reservation_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The write that ends it was made when it still kept the address back."""
    for module in (pool_pass, pool_writes):
        monkeypatch.setattr(module, "STRANGE_S", 0.1)
    stage = Stage()
    stage.pool("10.0.0.1", "10.0.0.4")
    forge(stage, nobody="10.0.0.4")
    await stage.settle()

    shown = stage.objects["ippools", "p"]["status"]["tenure"]
    assert (shown["addresses"]["free"], shown.get("reserving")) == (4, None)


async def test_kp13_what_is_reserved_for_a_claim_of_another_pool_is_free_again() -> None:
    stage = Stage()
    stage.pool("10.0.0.1", "10.0.0.1")
    stage.pool("10.1.0.1", "10.1.0.9", name="q")
    stage.claim("of-q", "q")
    forge(stage, **{"of-q": "10.0.0.1"})
    stage.claim("c")
    await stage.settle()

    assert stage.status("c")["address"]["name"] == "p-10-0-0-1"
    assert stage.status("of-q")["address"]["name"] == "p-10-1-0-1"


async def test_kp9_what_is_removed_by_force_before_the_claim_names_it_is_made_again() -> None:
    stage = Stage()
    stage.pool()
    stage.claim("c1", asks="10.0.0.7")
    await stage.settle()
    stage.change(IP_CLAIM, "c1", lambda claim: claim["metadata"].update(annotations={}))
    stage.remove(IP_ADDRESS, "p-10-0-0-7")
    stage.claim("other")
    await stage.settle()

    assert stage.given() == {"p-10-0-0-7": "10.0.0.7", "p-10-0-0-1": "10.0.0.1"}
    assert stage.status("c1")["address"]["name"] == "p-10-0-0-7"


def pause(stage: Stage) -> None:
    """Pause the pool."""
    stage.change(IP_POOL, "p", lambda pool: pool["metadata"].update(annotations={PAUSED: ""}))


def own_of(stage: Stage, claim: str) -> str | None:
    """Return the address that a claim names as its own."""
    own: str | None = stage.objects["ipclaims", claim]["metadata"]["annotations"].get(OWN_ADDRESS)
    return own


async def served_and_paused() -> Stage:
    """Give a stage on which a pool was paused in the moment in which its second claim was served."""
    stage = Stage()
    stage.pool()
    stage.claim("c1")
    await stage.settle()
    stage.claim("c2")

    def at_status(method: str, kind: ResourceType, object: Object) -> None:
        if (method, kind) == ("PATCH", IP_CLAIM):
            stage.before = lambda *write: None
            pause(stage)

    stage.before = at_status
    await stage.settle()
    assert stage.status("c2")["address"]["name"] == "p-10-0-0-2"
    return stage


async def test_kd6_a_claim_that_is_paused_before_it_names_its_address_arrives_with_it_elsewhere() -> None:
    """Nothing is paused there, and the claim comes before its address object."""
    here, there = await served_and_paused(), Stage()
    moved = here.objects["ipclaims", "c2"]["metadata"]
    there.pool()
    there.put(IP_CLAIM, "c2", {"pool": {"name": "p"}}, annotations=moved["annotations"], finalizers=moved["finalizers"])
    await there.settle()

    assert there.given() == {"p-10-0-0-2": "10.0.0.2"}


def blocking(stage: Stage, name: str) -> None:
    """Create a claim as the webhook lets it be created: a move waits until it names its address."""
    stage.claim(name)
    stage.change(IP_CLAIM, name, lambda claim: claim["metadata"]["annotations"].update({BLOCK_MOVE: ""}))


def blocks(stage: Stage, claim: str) -> bool:
    """Return whether a move waits for a claim."""
    return BLOCK_MOVE in stage.objects["ipclaims", claim]["metadata"]["annotations"]


def writes_on(stage: Stage, claim: str) -> int:
    """Return how many writes there were on a claim and its status."""
    return len([each for each in stage.writes if each[1:] == ("ipclaims", claim)])


async def test_kd6_a_move_waits_for_a_claim_until_it_names_its_address_without_a_further_write() -> None:
    plain, stage = Stage(), Stage()
    for each in (plain, stage):
        each.pool()
    plain.claim("c1")
    blocking(stage, "c1")

    def at_naming(method: str, kind: ResourceType, object: Object) -> None:
        assert blocks(stage, "c1") or own_of(stage, "c1")

    stage.before = at_naming
    for each in (plain, stage):
        await each.settle()

    assert (own_of(stage, "c1"), blocks(stage, "c1")) == ("10.0.0.1", False)
    assert writes_on(stage, "c1") == writes_on(plain, "c1") == 2


async def test_kd6_a_move_does_not_wait_for_a_claim_that_waits_itself_and_names_its_address_first_then() -> None:
    """The pool is full, and then it is paused: the move goes on. Whatever the claim gets later, it names before."""
    stage = Stage()
    stage.pool("10.0.0.7", "10.0.0.7")
    stage.address("hand", "10.0.0.7", "vip")
    blocking(stage, "c1")
    await stage.settle()
    assert blocks(stage, "c1")
    pause(stage)
    await stage.settle()
    assert (blocks(stage, "c1"), own_of(stage, "c1")) == (False, None)

    def before_it_is_given(method: str, kind: ResourceType, object: Object) -> None:
        if kind == IP_ADDRESS:
            assert own_of(stage, "c1") == "10.0.0.7"

    stage.change(IP_POOL, "p", lambda pool: pool["metadata"].update(annotations={}))
    stage.remove(IP_ADDRESS, "hand")
    stage.before = before_it_is_given
    await stage.settle()
    assert stage.status("c1")["address"]["name"] == "p-10-0-0-7"


async def test_e4_a_paused_claim_names_its_address_and_nothing_else_is_written() -> None:
    stage = await served_and_paused()
    assert own_of(stage, "c2") == "10.0.0.2"
    stage.writes.clear()
    stage.claim("c3")
    stage.change(IP_CLAIM, "c1", lambda claim: claim["metadata"].update(labels={"any": "change"}))
    await stage.settle()

    assert stage.writes == []


async def test_a_pause_ends_the_time_for_which_claims_put_off_to_name_their_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They do so while others wait to be served."""

    async def not_yet(*words: object) -> None:
        pass

    stage = Stage()
    monkeypatch.setattr(stage.passes.giving, "name_served", not_yet)
    stage.pool()
    stage.claim("c1")
    await stage.settle()
    assert own_of(stage, "c1") is None

    pause(stage)
    await stage.settle()
    assert own_of(stage, "c1") == "10.0.0.1"


async def test_a_new_leader_lets_paused_claims_name_what_a_former_one_has_given_them() -> None:
    """It died between the status and the annotation. What others made is not ours to touch in a pause."""
    stage = Stage()
    stage.pool()
    stage.address("hand", "10.0.0.7", "theirs")
    for name in ("ours", "theirs"):
        stage.claim(name)
    await stage.settle()
    pause(stage)
    for name in ("ours", "theirs"):
        stage.change(IP_CLAIM, name, lambda claim: claim["metadata"].update(annotations={}))
    stage.caches.records.begin()
    await stage.settle()

    assert (own_of(stage, "ours"), own_of(stage, "theirs")) == ("10.0.0.1", None)


async def test_kd6_a_claim_whose_address_is_moved_is_not_written_any_more() -> None:
    stage = Stage()
    stage.pool()
    stage.claim("c1")
    await stage.settle()
    pause(stage)
    mark = {DELETE_FOR_MOVE: ""}
    stage.change(IP_ADDRESS, "p-10-0-0-1", lambda each: each["metadata"]["annotations"].update(mark))
    stage.change(IP_CLAIM, "c1", lambda claim: claim["metadata"].update(annotations={}))
    stage.writes.clear()
    await stage.settle()

    assert stage.writes == []


async def test_a_pick_of_a_former_leadership_holds_nothing() -> None:
    stage = Stage()
    stage.pool()
    claim = stage.claim("c1")
    book = stage.caches.records.of(POOL).book
    book.hold((PICKED, uid_of(claim)), parse_address("10.0.0.5"))
    stage.caches.records.begin()

    assert book.holders_of_sort(PICKED) == []


async def test_a_reservation_counts_until_the_claims_own_object_is_there() -> None:
    """An object of another pool that names the claim is not it."""
    stage = Stage()
    stage.pool()
    stage.pool(name="q")
    stage.address("odd", "10.9.0.1", "c1", pool="q")

    def lose(method: str, kind: ResourceType, object: Object) -> None:
        if (method, kind) == ("POST", IP_ADDRESS):
            raise ApiUnreachable("lost")

    stage.claim("c1")
    stage.before = lose
    await stage.settle(3)
    reserving = stage.objects["ippools", "p"]["status"]["tenure"]["reserving"]

    assert [entry["address"] for entry in reserving] == ["10.0.0.1"]


async def test_one_write_reserves_only_so_many_addresses() -> None:
    """Also for claims that bring their addresses along: a status of 20,000 reservations could not be stored."""
    stage = Stage()
    stage.pool("10.0.0.0", "10.0.255.255")
    largest = 0

    def measure(method: str, kind: ResourceType, object: Object) -> None:
        nonlocal largest
        if (method, kind) == ("PATCH", IP_POOL):
            reserving = ((object.get("status") or {}).get("tenure") or {}).get("reserving") or ()
            largest = max(largest, len(reserving))

    stage.before = measure
    for number, name in enumerate(numbered(3 * BATCH)):
        stage.claim(name, own=f"10.0.{number // 250}.{number % 250 + 1}")
    await stage.settle()

    assert len(stage.given()) == 3 * BATCH
    assert 0 < largest <= BATCH


async def test_kd10_what_is_freed_goes_to_the_first_that_came_whatever_it_asked_for() -> None:
    stage = Stage()
    stage.pool("10.0.0.7", "10.0.0.7")
    stage.claim("holder")
    await stage.settle()
    stage.claim("old", created="2026-02-01T00:00:00Z")
    stage.claim("z-second", created="2026-03-01T00:00:00Z", asks="10.0.0.7")
    stage.claim("a-third", created="2026-04-01T00:00:00Z", asks="10.0.0.7")
    await stage.settle()
    for holder, follower in (("holder", "old"), ("old", "z-second"), ("z-second", "a-third")):
        stage.remove(IP_ADDRESS, "p-10-0-0-7")
        stage.remove(IP_CLAIM, holder)
        await stage.settle()
        assert stage.status(follower)["address"]["name"] == "p-10-0-0-7"


async def test_a_claim_whose_name_is_taken_by_what_nobody_knows_is_tried_each_time_later() -> None:
    """As where its kind is not followed yet: the server says that it is there, and the cache never has it."""
    tries = []

    def exists(method: str, kind: ResourceType, object: Object) -> None:
        if (method, kind) == ("POST", IP_ADDRESS):
            tries.append(Stage.skipped_s)
            raise ObjectExists(409, "AlreadyExists", key_of(object)[1])

    stage = Stage()
    stage.pool()
    stage.claim("c")
    stage.before = exists
    await stage.settle(passes=30)
    pauses = [after - before for before, after in itertools.pairwise(tries)]

    assert pauses[-1] > 4 * pauses[0]
    stage.before = lambda *write: None
    await stage.settle(passes=100)
    assert stage.given() == {"p-10-0-0-1": "10.0.0.1"}


async def test_a_name_that_another_pools_object_has_for_the_same_claim_name_makes_no_loop() -> None:
    stage = Stage()
    stage.pool()
    stage.pool(name="other")
    stage.address("p-10-0-0-7", "10.0.0.7", "c", pool="other")
    stage.claim("c", asks="10.0.0.7")
    await stage.settle(50)

    assert stage.status("c")["errorMessage"] == "Requested IP not available"
    assert len([each for each in stage.writes if each[0] == "POST"]) <= 1


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("10.0.0.4", "drained: spec.tenure.drain has it"),
        ("10.0.0.5", "kept back: 10.0.0.5 is a gateway"),
        ("10.0.0.6", "pre-allocated to claim w"),
        ("10.0.0.7", "held by IPClaim holder"),
    ],
)
async def test_a_claim_with_the_field_says_why_it_has_not_the_address_that_it_asks_for(address: str, why: str) -> None:
    """One with the annotation has Metal3's words."""
    stage = Stage()
    stage.pool(gateway="10.0.0.5", preAllocations={"w": "10.0.0.6"}, tenure={"drain": ["10.0.0.4"]})
    stage.claim("holder", asks="10.0.0.7")
    await stage.settle()
    stage.claim("scripted", asks=address)
    stage.put(IP_CLAIM, "asks", {"pool": {"name": "p"}, "tenure": {"address": address}}, finalizers=[CLAIM_FINALIZER])
    await stage.settle()

    assert stage.status("asks")["errorMessage"] == f"Requested IP {address} is {why}"
    assert stage.status("scripted")["errorMessage"] == "Requested IP not available"


async def test_an_address_that_a_claim_did_not_get_goes_to_the_next_that_waits_for_it() -> None:
    stage = Stage()
    stage.pool("10.0.0.7", "10.0.0.8")
    stage.claim("holder", asks="10.0.0.7")
    await stage.settle()
    for name in ("c1", "c2"):
        stage.claim(name, asks="10.0.0.7")
        await stage.settle()

    def gone(method: str, kind: ResourceType, object: Object) -> None:
        if kind == IP_CLAIM and object["metadata"]["name"] == "c1" and ("ipclaims", "c1") in stage.objects:
            stage.remove(IP_CLAIM, "c1")

    stage.before = gone
    stage.remove(IP_ADDRESS, "p-10-0-0-7")
    stage.remove(IP_CLAIM, "holder")
    await stage.settle()
    assert stage.status("c2")["address"]["name"] == "p-10-0-0-7"


async def test_kd6_an_address_that_a_claim_brought_along_is_never_exchanged() -> None:
    stage = Stage()
    stage.pool()
    stage.claim("c", own="10.0.0.5", picked_for="its uid in another cluster")

    def fails(method: str, kind: ResourceType, object: Object) -> None:
        if (method, kind) == ("POST", IP_ADDRESS):
            stage.before = lambda *write: None
            stage.address("hand", "10.0.0.5", "vip")
            raise ApiUnreachable("no answer")

    stage.before = fails
    await stage.settle()

    assert stage.given() == {"hand": "10.0.0.5"}
    assert stage.status("c")["errorMessage"] == "Address 10.0.0.5 is held by IPClaim vip (IPAddress hand)"


async def test_a_claim_that_lost_its_address_waits_for_that_one_and_says_so() -> None:
    stage = Stage()
    stage.pool()
    stage.claim("c")
    await stage.settle()
    stage.remove(IP_ADDRESS, "p-10-0-0-1")
    stage.address("hand", "10.0.0.1", "vip")
    await stage.settle()

    assert stage.given() == {"hand": "10.0.0.1"}
    assert stage.status("c")["address"]["name"] == "p-10-0-0-1"
    assert "is held by IPClaim vip" in stage.status("c")["errorMessage"]
    stage.remove(IP_ADDRESS, "hand")
    await stage.settle()
    assert stage.given() == {"p-10-0-0-1": "10.0.0.1"}
    assert "AddressMissing" in stage.events


async def test_an_object_whose_text_is_no_address_stops_no_other_claim() -> None:
    stage = Stage()
    stage.pool()
    stage.address("odd", "no address", "c2")
    for name in ("c1", "c2", "c3"):
        stage.claim(name)
    await stage.settle()

    assert [stage.status(name)["address"]["name"] for name in ("c1", "c2", "c3")] == [
        "p-10-0-0-1", "p-10-0-0-2", "p-10-0-0-3",
    ]  # fmt: skip


@pytest.mark.parametrize("written", ["::ffff:10.0.0.1", "::FFFF:a00:1", "0:0:0:0:0:ffff:0a00:0001"])
async def test_an_ipv4_address_that_an_object_has_in_ipv6_spelling_is_given_to_no_other_claim(written: str) -> None:
    """New ones are refused; this one is older than the webhook, or it was made while no operator ran."""
    stage = Stage()
    stage.pool("10.0.0.1", "10.0.0.2")
    stage.address("odd", written, "owner")
    stage.claim("c1")
    stage.claim("c2")
    await stage.settle()

    assert stage.given() == {"odd": written, "p-10-0-0-2": "10.0.0.2"}
    assert stage.status("c2")["errorMessage"] == "Exhausted IP Pools"
    stage.claim("owner")
    await stage.settle()
    assert stage.status("owner")["address"]["name"] == "odd"
    assert stage.objects["ipclaims", "owner"]["metadata"]["annotations"][OWN_ADDRESS] == "10.0.0.1"


async def test_a_claim_whose_object_the_server_refuses_is_counted_as_waiting_until_it_is_served() -> None:
    """As by a quota, or for a name prefix that is older than the webhook and cannot begin a name."""

    def refuses(method: str, kind: ResourceType, object: Object) -> None:
        if kind == IP_ADDRESS:
            raise error_of(403, {"kind": "Status", "reason": "Forbidden", "message": "exceeded quota: addresses"})

    stage = Stage()
    stage.pool()
    stage.claim("c1")
    stage.before = refuses
    await stage.settle(1)
    assert stage.status("c1")["errorMessage"] == "Failed to create associated IPAddress object"
    assert "NotServed" in stage.events
    assert stage.caches.records.of(POOL).without_address == 1
    counted = []

    def noted(method: str, kind: ResourceType, object: Object) -> None:
        counted.append(stage.caches.records.of(POOL).without_address)
        refuses(method, kind, object)

    stage.before = noted
    await stage.settle(5)
    assert counted
    assert set(counted) == {1}

    stage.before = lambda *write: None
    await stage.settle()
    assert stage.status("c1")["address"]["name"] == "p-10-0-0-1"
    assert stage.caches.records.of(POOL).without_address == 0


async def test_a_claim_of_which_a_decision_fails_stops_no_other_and_has_an_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails_once(claim: Object, view: PoolView) -> Action:
        if key_of(claim)[1] == "odd" and "Undecided" not in stage.events:
            raise ValueError("odd")
        return decide(claim, view)

    monkeypatch.setattr(pool_pass, "decide", fails_once)
    stage = Stage()
    stage.pool()
    for name in ("c1", "odd", "c2"):
        stage.claim(name)
    await stage.settle(1)
    assert stage.events.count("Undecided") == 1
    assert [bool(stage.status(name)) for name in ("c1", "odd", "c2")] == [True, False, True]
    assert stage.caches.records.of(POOL).without_address == 1

    await stage.settle()
    assert stage.status("odd")["address"]["name"] == "p-10-0-0-3"
    assert stage.caches.records.of(POOL).without_address == 0


async def test_a_lost_answer_to_naming_leaves_nothing_blocked() -> None:
    stage = Stage()
    stage.pool("10.0.0.1", "10.0.0.1")
    claim = stage.claim("c1")

    def lost(method: str, kind: ResourceType, object: Object) -> None:
        stage.before = lambda *write: None
        marks = {OWN_ADDRESS: "10.0.0.1", PICKED_FOR: uid_of(claim)}
        stage.change(IP_CLAIM, "c1", lambda each: each["metadata"]["annotations"].update(marks), is_seen=False)
        raise ApiUnreachable("no answer")

    stage.before = lost
    await stage.settle(1)
    stage.see(IP_CLAIM, "c1")
    await stage.settle()

    assert stage.given() == {"p-10-0-0-1": "10.0.0.1"}


async def test_nothing_is_remembered_of_a_pool_that_is_gone() -> None:
    stage = Stage()
    stage.pool()
    stage.claim("c")
    await stage.settle()
    for kind, name in ((IP_ADDRESS, "p-10-0-0-1"), (IP_CLAIM, "c"), (IP_POOL, "p")):
        stage.remove(kind, name)
    await stage.settle()

    assert POOL not in dict(stage.caches.records)


async def test_a_claim_keeps_what_its_status_says_also_before_it_names_its_address() -> None:
    """Another leader made a second object for it, under a name that comes first; that one goes."""
    stage = Stage()
    pool = stage.pool()
    claim = stage.claim("c1", asks="10.0.0.7")
    await stage.settle()
    stage.change(IP_CLAIM, "c1", lambda claim: claim["metadata"].update(annotations={}))
    made = new_address(read_pool_spec(pool["spec"]).spec, pool, claim, parse_address("10.0.0.1"))
    stage.put(
        IP_ADDRESS,
        "p-10-0-0-1",
        made["spec"],
        **{each: made["metadata"][each] for each in ("annotations", "ownerReferences")},
    )
    await stage.settle()

    assert stage.given() == {"p-10-0-0-7": "10.0.0.7"}
    assert stage.status("c1")["address"]["name"] == "p-10-0-0-7"


@pytest.mark.parametrize("first", ["a", "b"])
async def test_kd6_of_two_claims_that_brought_one_address_the_first_gets_it_and_the_other_waits(first: str) -> None:
    stage = Stage()
    stage.pool()
    for name in ("a", "b"):
        stage.claim(name, own="10.0.0.5", created="2025-01-01T00:00:00Z" if name == first else "2026-01-01T00:00:00Z")
    await stage.settle()
    other = {"a": "b", "b": "a"}[first]
    assert stage.status(first)["address"]["name"] == "p-10-0-0-5"
    assert stage.status(other)["errorMessage"].startswith(f"Address 10.0.0.5 is held by IPClaim {first}")

    stage.change(IP_CLAIM, first, lambda each: each["metadata"].update(deletionTimestamp="2026-02-01T00:00:00Z"))
    await stage.settle()
    assert stage.status(other)["address"]["name"] == "p-10-0-0-5"


async def test_a_claim_that_brings_an_address_waits_for_what_is_reserved_and_both_go_on() -> None:
    """A former leader may be about to create the object, so the reservation comes first, whoever arrived first."""
    stage = Stage()
    stage.pool("10.0.0.5", "10.0.0.5")
    stage.claim("brought", own="10.0.0.5", created="2025-01-01T00:00:00Z")
    uid = uid_of(stage.claim("reserved", created="2026-01-01T00:00:00Z"))
    reserving = [{"address": "10.0.0.5", "uid": uid, "kind": "IPClaim"}]
    stage.change(IP_POOL, "p", lambda pool: pool.update(status={"tenure": {"reserving": reserving}}))
    await stage.settle()

    assert stage.status("reserved")["address"]["name"] == "p-10-0-0-5"
    assert "is held by IPClaim reserved" in stage.status("brought")["errorMessage"]


async def test_kd8_a_claim_made_again_ends_the_release_of_the_former_address() -> None:
    """Its owner is gone, and the garbage collector has deleted it: nobody else takes our finalizer away."""
    stage = Stage()
    stage.pool()
    leave_going(stage, [ADDRESS_FINALIZER])
    stage.claim("c")
    await stage.settle()

    assert stage.status("c")["address"]["name"] == "p-10-0-0-1"
    assert "deletionTimestamp" not in stage.objects["ipaddresses", "p-10-0-0-1"]["metadata"]


async def test_kd8_a_claim_that_waits_for_the_finalizer_of_others_says_so() -> None:
    stage = Stage()
    stage.pool()
    leave_going(stage, [ADDRESS_FINALIZER, "example.org/keep"])
    stage.claim("c")
    await stage.settle()
    assert stage.objects["ipaddresses", "p-10-0-0-1"]["metadata"]["finalizers"] == ["example.org/keep"]
    assert stage.status("c") == {}
    assert "Waiting" in stage.events
    assert stage.caches.records.of(POOL).without_address == 1

    stage.remove(IP_ADDRESS, "p-10-0-0-1")
    await stage.settle()
    assert stage.status("c")["address"]["name"] == "p-10-0-0-1"


def leave_going(stage: Stage, finalizers: list[str]) -> None:
    """Leave an address of ours that is being deleted, and whose claim is gone."""
    stage.address("p-10-0-0-1", "10.0.0.1", "c")
    owner = {"kind": "IPClaim", "name": "c", "uid": "of the former claim"}
    head = {
        "annotations": {MADE_FOR: "m3/c"}, "ownerReferences": [owner], "finalizers": finalizers,
        "deletionTimestamp": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    stage.change(IP_ADDRESS, "p-10-0-0-1", lambda each: each["metadata"].update(head))


async def test_a_claim_that_is_made_again_for_another_pool_leaves_no_address() -> None:
    stage = Stage()
    stage.pool()
    stage.pool("10.1.0.1", "10.1.0.9", name="q")
    stage.claim("c")
    await stage.settle()
    stage.remove(IP_CLAIM, "c")
    stage.claim("c", pool="q")
    await stage.settle()

    assert stage.given() == {"p-10-1-0-1": "10.1.0.1"}
    assert stage.caches.records.of(POOL).left_by_force == set()


async def test_a_served_claim_that_is_changed_to_another_pool_keeps_what_it_has_until_it_goes() -> None:
    """Where no webhook refuses the change; nothing is given twice, and nothing is left."""
    stage = Stage()
    stage.pool()
    stage.pool("10.1.0.1", "10.1.0.9", name="q")
    stage.claim("c")
    await stage.settle()
    stage.change(IP_CLAIM, "c", lambda each: each["spec"]["pool"].update(name="q"))
    await stage.settle()
    stage.claim("d")
    await stage.settle()

    assert stage.given() == {"p-10-0-0-1": "10.0.0.1", "p-10-0-0-2": "10.0.0.2"}
    assert stage.status("c")["errorMessage"] == "Address 10.0.0.1 is not one that IPPool q gives"
    stage.change(IP_CLAIM, "c", lambda each: each["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    await stage.settle()
    assert stage.given() == {"p-10-0-0-2": "10.0.0.2"}


async def test_what_a_claim_left_by_force_is_released_also_if_that_fails_at_first() -> None:
    stage = Stage()
    stage.pool()
    stage.claim("c")
    await stage.settle()
    failures = 0

    def fails(method: str, kind: ResourceType, object: Object) -> None:
        nonlocal failures
        if (method, kind) == ("DELETE", IP_ADDRESS) and failures < 5:
            failures += 1
            raise ApiUnreachable("no answer")

    stage.before = fails
    stage.remove(IP_CLAIM, "c")
    await stage.settle()
    assert stage.given() == {}


GOING = "2026-01-01T00:00:00Z"


def _collect(stage: Stage, name: str) -> None:
    """Take the owner that is gone off an address, as Kubernetes' garbage collector does."""

    def without_claims(address: Object) -> None:
        owners = address["metadata"].get("ownerReferences", ())
        address["metadata"]["ownerReferences"] = [each for each in owners if each["kind"] != "IPClaim"]

    stage.change(IP_ADDRESS, name, without_claims)


@pytest.mark.parametrize("collected", ["never", "before", "after"])
@pytest.mark.parametrize("going", [False, True])
async def test_kp9_what_a_claim_left_by_force_is_released_without_grace(going: bool, collected: str) -> None:
    """Somebody took its finalizer away, also while it was Terminating; whenever the garbage collector comes by."""
    stage = Stage()
    stage.pool()
    stage.claim("c")
    await stage.settle()
    if going:
        stage.change(IP_CLAIM, "c", lambda each: each["metadata"].update(deletionTimestamp=GOING))
    if collected == "before":
        _collect(stage, "p-10-0-0-1")
    stage.remove(IP_CLAIM, "c")
    if collected == "after":
        _collect(stage, "p-10-0-0-1")
    await stage.settle()

    assert stage.given() == {}
    assert stage.caches.records.of(POOL).left_by_force == set()


async def test_kd6_a_terminating_claim_that_goes_by_force_beside_a_paused_cluster_keeps_its_address() -> None:
    """Somebody may be moving it by hand, without a mark: its address is an orphan, for which there is a grace."""
    stage = Stage()
    stage.pool()
    stage.claim("c")
    await stage.settle()
    stage.put(CLUSTER, "beside", {"paused": True})
    stage.change(IP_CLAIM, "c", lambda each: each["metadata"].update(deletionTimestamp=GOING))
    stage.remove(IP_CLAIM, "c")
    await stage.settle()

    assert stage.given() == {"p-10-0-0-1": "10.0.0.1"}


async def test_kd7_an_address_made_by_hand_is_not_released_when_its_claim_goes_by_force() -> None:
    stage = Stage()
    stage.pool()
    stage.address("hand", "10.0.0.1", "c")
    stage.claim("c")
    stage.remove(IP_CLAIM, "c")
    await stage.settle()

    assert stage.given() == {"hand": "10.0.0.1"}


async def serve_deleted(kind: ClaimKind, *finalizers: str) -> Stage:
    """Let a claim of a kind be served, and then be deleted, with finalizers of others besides ours."""
    stage = Stage(tuple(Provider))
    stage.pool()
    stage.put(kind.claim, "c", claim_spec(kind, "p"), finalizers=[kind.claim_finalizer])
    await stage.settle()
    assert stage.given() == {"p-10-0-0-1": "10.0.0.1"}
    going = {"deletionTimestamp": GOING, "finalizers": [kind.claim_finalizer, *finalizers]}
    stage.change(kind.claim, "c", lambda claim: claim["metadata"].update(going))
    await stage.settle()
    return stage


@pytest.mark.parametrize("kind", KINDS_OF_IP_POOLS.values(), ids=KINDS_OF_IP_POOLS)
@pytest.mark.parametrize("waits", ["foregroundDeletion", "orphan"])
async def test_kd5_a_claim_that_the_garbage_collector_waits_for_is_released(kind: ClaimKind, waits: str) -> None:
    """It waits for our objects, so waiting for its finalizer would have no end."""
    stage = await serve_deleted(kind, waits)

    assert stage.given() == {}
    assert finalizers_of(stage.objects[kind.claim.plural, "c"]) == [waits]


@pytest.mark.parametrize("kind", KINDS_OF_IP_POOLS.values(), ids=KINDS_OF_IP_POOLS)
@pytest.mark.parametrize("waits", [[], ["foregroundDeletion"], ["orphan"]])
async def test_d2_a_claim_that_others_still_use_is_not_released(kind: ClaimKind, waits: list[str]) -> None:
    """Also where the garbage collector waits for it besides."""
    stage = await serve_deleted(kind, "example.com/uses-it", *waits)

    assert stage.given() == {"p-10-0-0-1": "10.0.0.1"}
    assert finalizers_of(stage.objects[kind.claim.plural, "c"])[0] == kind.claim_finalizer


@pytest.mark.parametrize("finalizers", [[CLAIM_FINALIZER], []])
async def test_an_object_of_ours_beside_one_made_by_hand_goes_also_if_that_fails_at_first(
    finalizers: list[str],
) -> None:
    """Nobody was told of it. A claim without its finalizer names its address before that is given."""
    stage = Stage()
    stage.pool()
    stage.claim("c", finalizers=finalizers)
    failures = 0

    def by_hand(method: str, kind: ResourceType, object: Object) -> None:
        nonlocal failures
        if (method, kind) == ("POST", IP_ADDRESS) and not failures:
            asyncio.get_running_loop().call_soon(lambda: stage.address("hand", "10.0.0.1", "vip"))
        if (method, kind) == ("DELETE", IP_ADDRESS) and failures < 3:
            failures += 1
            raise ApiUnreachable("no answer")

    stage.before = by_hand
    await stage.settle()

    assert stage.given() == {"hand": "10.0.0.1", "p-10-0-0-2": "10.0.0.2"}
    assert stage.status("c")["address"]["name"] == "p-10-0-0-2"


async def test_an_object_that_a_claim_was_told_of_stays_also_if_the_answer_was_lost() -> None:
    """Another one was made by hand for its address meanwhile; the pool says so, and the claim keeps what it has."""
    stage = Stage()
    stage.pool()
    stage.claim("c")

    def lost(method: str, kind: ResourceType, object: Object) -> None:
        if (method, kind) == ("PATCH", IP_CLAIM):
            stage.before = lambda *write: None
            status = {"address": {"name": "p-10-0-0-1", "namespace": "m3"}}
            stage.change(IP_CLAIM, "c", lambda each: each.update(status=status), is_seen=False)
            stage.address("hand", "10.0.0.1", "vip")
            raise ApiUnreachable("no answer")

    stage.before = lost
    await stage.settle()

    assert stage.given() == {"p-10-0-0-1": "10.0.0.1", "hand": "10.0.0.1"}
    assert stage.status("c")["address"]["name"] == "p-10-0-0-1"
    assert "AddressDoubled" in stage.events


async def test_a_claim_that_goes_between_its_pick_and_the_reservation_takes_no_other_out_of_the_line() -> None:
    stage = await full_stage("w1", "w2", "w3")

    def gone(method: str, kind: ResourceType, object: Object) -> None:
        is_first = kind == IP_CLAIM and key_of(object)[1] == "w1"
        if is_first and ("ipclaims", "w2") in stage.objects:
            stage.remove(IP_CLAIM, "w2")

    stage.before = gone
    # Its address is written on it first, and meanwhile the second one goes.
    stage.change(IP_CLAIM, "w1", lambda claim: claim["metadata"].update(finalizers=[]))
    empty(stage)
    await stage.settle()

    assert [bool(stage.status(name).get("address")) for name in ("w1", "w3")] == [True, True]


class LeavingLedgers:
    """Ledgers that grant everything; a claim goes while its grant is on its way."""

    def __init__(self, stage: Stage, leaves: str) -> None:
        self._stage = stage
        self._leaves = leaves

    async def grant(self, pool: PoolId, claim: Object, position: int) -> None:
        await asyncio.sleep(0)
        if key_of(claim)[1] == self._leaves:
            self._stage.remove(IP_CLAIM, self._leaves)


async def test_a_claim_that_goes_while_a_ledger_grants_its_address_fails_no_other_of_its_batch() -> None:
    stage = Stage()
    stage.pool(tenure={"ledger": {"network": "machines", "realm": "east", "secretName": "ledger"}})
    stage.caches.records.of(POOL).ledger.away = ""
    stage.passes.giving.ledgers = cast(PoolLedgers, LeavingLedgers(stage, "b"))
    for name in "abc":
        stage.claim(name)
    await stage.passes.settle(POOL)

    assert stage.given() == {"p-10-0-0-1": "10.0.0.1", "p-10-0-0-3": "10.0.0.3"}


class KeepingLedgers:
    """Ledgers that hold what claims have by objects, and release it; something may happen while they are asked."""

    def __init__(self, asked: Callable[[], None] = lambda: None) -> None:
        self.held: set[str] = set()
        self._asked = asked

    async def keep(self, pool: PoolId, claim: Object, position: int) -> None:
        self._asked()
        self.held.add(key_of(claim)[1])

    async def release(self, pool: PoolId, claim: Object, request: str = "") -> None:
        self.held.discard(key_of(claim)[1])


def bind(stage: Stage, ledgers: KeepingLedgers) -> None:
    """Let a pool be bound to a ledger, with an address made by hand for a claim without its finalizer."""
    stage.pool(tenure={"ledger": {"network": "machines", "realm": "east", "secretName": "ledger"}})
    stage.caches.records.of(POOL).ledger.away = ""
    stage.passes.giving.ledgers = cast(PoolLedgers, ledgers)
    stage.address("hand", "10.0.0.4", "c")
    stage.claim("c", finalizers=[])


async def test_a_claim_that_goes_while_its_ledger_is_asked_to_hold_what_it_has_leaves_nothing_there() -> None:
    """It has its finalizer before, also where no webhook gave it."""
    stage = Stage()

    def goes() -> None:
        if finalizers_of(stage.objects["ipclaims", "c"]):
            going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
            stage.change(IP_CLAIM, "c", lambda claim: claim["metadata"].update(going))
        else:
            stage.remove(IP_CLAIM, "c")

    ledgers = KeepingLedgers(goes)
    bind(stage, ledgers)
    await stage.settle()

    assert ("ipclaims", "c") not in stage.objects
    assert ledgers.held == set()


@pytest.mark.parametrize("is_away", [False, True])
async def test_kd6_a_claim_that_got_its_finalizer_for_a_ledger_names_its_address_before_it_gets_it(
    is_away: bool,
) -> None:
    """Nothing says to a move that it should wait for such a claim; also where the ledger answers only later."""
    stage, found = Stage(), list[tuple[bool, bool]]()
    errors = [LedgerAway("the ledger is away")] * is_away

    def asked() -> None:
        if errors:
            raise errors.pop()

    def looks(method: str, kind: ResourceType, object: Object) -> None:
        claim = stage.objects["ipclaims", "c"]
        if (method, kind) == ("PATCH", IP_CLAIM):
            found.append((bool(finalizers_of(claim)), OWN_ADDRESS in claim["metadata"]["annotations"]))

    stage.before = looks
    bind(stage, KeepingLedgers(asked))
    await stage.settle()

    assert found[0] == (False, False)
    assert found[1:-1] == [(True, False)] * (1 + is_away), "its name, behind what it says while it waits"
    assert found[-1] == (True, True)
    assert stage.status("c")["address"]["name"] == "hand"


async def test_work_that_is_cancelled_by_itself_is_an_error_and_the_rest_is_done() -> None:
    """A group of tasks would pass it over, and the claims of the pass would be forgotten."""
    done = []

    async def works(number: int) -> None:
        await asyncio.sleep(0)
        if number < AT_ONCE:
            raise asyncio.CancelledError
        done.append(number)

    with pytest.raises(asyncio.CancelledError):
        await all_of(partial(works, number) for number in range(2 * AT_ONCE))

    assert done == list(range(AT_ONCE, 2 * AT_ONCE))


async def test_an_error_that_nobody_foresaw_takes_no_claim_out_of_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = await full_stage("w1", "w2")
    pools = stage.passes.giving.pools
    reserve = pools.reserve

    async def fails(key: PoolId, chosen: dict[str, int]) -> Object:
        monkeypatch.setattr(pools, "reserve", reserve)
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr(pools, "reserve", fails)
    empty(stage)
    with pytest.raises(RuntimeError):
        await stage.settle()
    stage.caches.records.status_due(POOL)  # the queue brings the pool again
    await stage.settle()

    assert [bool(stage.status(name).get("address")) for name in ("w1", "w2")] == [True, True]


async def full_stage(*waiting: str) -> Stage:
    """Return a pool that others hold, and for which claims wait."""
    stage = Stage()
    stage.pool("10.0.0.1", "10.0.0.3")
    for number in (1, 2, 3):
        stage.claim(f"h{number}", asks=f"10.0.0.{number}")
    await stage.settle()
    for number, name in enumerate(waiting, 1):
        stage.claim(name, created=f"2026-02-{number:02}T00:00:00Z")
    await stage.settle()
    assert {stage.status(name)["errorMessage"] for name in waiting} == {"Exhausted IP Pools"}
    return stage


def empty(stage: Stage) -> None:
    """Let the holders go."""
    for number in (1, 2, 3):
        stage.remove(IP_ADDRESS, f"p-10-0-0-{number}")
        stage.remove(IP_CLAIM, f"h{number}")


async def test_e7_a_claim_that_is_not_ours_any_more_leaves_the_line() -> None:
    stage = await full_stage("w1", "w2")
    stage.passes.serves = lambda each: "others" not in labels_of(each)
    stage.change(IP_CLAIM, "w1", lambda each: each["metadata"].update(labels={"others": ""}))
    empty(stage)
    await stage.settle()

    assert [bool(stage.status(name).get("address")) for name in ("w1", "w2")] == [False, True]
    assert stage.caches.records.of(POOL).waiting == 0
    stage.change(IP_CLAIM, "w1", lambda each: each["metadata"].update(labels={}))
    await stage.settle()
    assert stage.status("w1")["address"]["name"] == "p-10-0-0-2"


@pytest.mark.parametrize("asks", ["", "10.0.0.1"])
async def test_e7_a_claim_that_is_not_ours_any_more_is_not_counted_as_waiting(asks: str) -> None:
    """Whether it waits for any address or for one; also where none becomes free, so that nobody looks at the line."""
    stage = await full_stage("w1")
    stage.claim("w2", asks=asks, created="2026-02-02T00:00:00Z")
    await stage.settle()
    record = stage.caches.records.of(POOL)
    assert record.without_address == 2
    stage.passes.serves = lambda each: "others" not in labels_of(each)
    stage.change(IP_CLAIM, "w2", lambda each: each["metadata"].update(labels={"others": ""}))
    await stage.settle()

    assert list(record.claims_without_address) == [claim_id("w1")]
    assert stage.objects["ippools", "p"]["status"]["tenure"]["addresses"]["waiting"] == 1


@pytest.mark.parametrize("spec", [{"tenure": {"coolingSeconds": 100}}, {"tenure": {"sticky": True}}])
async def test_e7_a_claim_that_goes_from_a_pool_of_another_operator_is_let_go_and_the_pool_not_written(
    spec: Object,
) -> None:
    """The other one, which does not look after the claim, would never release it."""
    stage = Stage()
    stage.pool(**spec)
    stage.claim("c")
    await stage.settle()
    stage.passes.serves = lambda each: "others" not in labels_of(each)
    stage.change(IP_POOL, "p", lambda each: each["metadata"].update(labels={"others": ""}))
    stage.writes.clear()
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    stage.change(IP_CLAIM, "c", lambda each: each["metadata"].update(going))
    await stage.settle()

    assert {plural for _, plural, _ in stage.writes} == {"ipaddresses", "ipclaims"}
    assert stage.given() == {}
    assert ("ipclaims", "c") not in stage.objects


async def test_kp9_what_is_removed_by_force_before_the_claim_names_it_is_made_again_by_the_next_leader() -> None:
    stage = Stage()
    stage.pool()
    stage.claim("c1", asks="10.0.0.7")
    await stage.settle()
    stage.change(IP_CLAIM, "c1", lambda claim: claim["metadata"].update(annotations={}))
    stage.remove(IP_ADDRESS, "p-10-0-0-7")
    stage.caches.records.begin()
    stage.claim("other", asks="10.0.0.7", created="2025-01-01T00:00:00Z")
    await stage.settle()

    assert stage.given() == {"p-10-0-0-7": "10.0.0.7"}
    assert stage.status("c1")["address"]["name"] == "p-10-0-0-7"


async def test_kp9_a_claim_that_lost_its_address_before_it_named_it_gets_no_other() -> None:
    stage = Stage()
    stage.pool()
    stage.claim("c1", asks="10.0.0.7")
    await stage.settle()
    stage.change(IP_CLAIM, "c1", lambda claim: claim["metadata"].update(annotations={}))
    stage.remove(IP_ADDRESS, "p-10-0-0-7")
    stage.address("hand", "10.0.0.7", "vip")
    await stage.settle()
    assert stage.given() == {"hand": "10.0.0.7"}
    assert "is held by IPClaim vip" in stage.status("c1")["errorMessage"]

    stage.remove(IP_ADDRESS, "hand")
    await stage.settle()
    assert stage.given() == {"p-10-0-0-7": "10.0.0.7"}


async def test_kp9_what_a_claim_had_is_made_again_also_where_the_pool_has_become_smaller() -> None:
    stage = Stage()
    stage.pool()
    stage.claim("c", asks="10.0.0.7")
    await stage.settle()
    stage.change(IP_POOL, "p", lambda pool: pool["spec"].update(pools=[{"start": "10.0.0.1", "end": "10.0.0.3"}]))
    stage.remove(IP_ADDRESS, "p-10-0-0-7")
    await stage.settle()

    assert stage.given() == {"p-10-0-0-7": "10.0.0.7"}


async def test_kp9_a_forged_annotation_with_a_forged_status_leads_to_no_address_outside_the_pool() -> None:
    stage = Stage()
    stage.pool()
    claim = stage.claim("c")
    stage.change(IP_CLAIM, "c", lambda each: each.update(status={"address": {"name": "p-192-168-0-9"}}))
    name_own(stage, claim, "192.168.0.9")
    await stage.settle()

    assert stage.given() == {}
    assert stage.status("c")["errorMessage"] == "Address 192.168.0.9 is not one that IPPool p gives"


async def test_kp8_a_namespace_that_is_being_deleted_is_asked_for_one_object_and_no_more() -> None:
    stage = await full_stage("w1", "w2", "w3")
    refused = 0

    def going(method: str, kind: ResourceType, object: Object) -> None:
        nonlocal refused
        if method == "POST":
            refused += 1
            causes = [{"reason": NAMESPACE_GOING, "message": "namespace m3 is being terminated"}]
            raise error_of(403, {"kind": "Status", "reason": "Forbidden", "details": {"causes": causes}})

    stage.before = going
    for number in (1, 2, 3):
        stage.remove(IP_ADDRESS, f"p-10-0-0-{number}")
        stage.remove(IP_CLAIM, f"h{number}")
        await stage.settle()
    assert refused == 1

    # When it is gone, a new one of its name takes objects again.
    stage.before = lambda *write: None
    for name in ("w1", "w2", "w3"):
        stage.remove(IP_CLAIM, name)
    stage.claim("new")
    await stage.settle()
    assert stage.status("new")["address"]["name"] == "p-10-0-0-1"
