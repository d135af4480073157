"""What an IPPool may say: cases A1 to A20, without a server."""

import time
from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import POOL_FINALIZER
from tenure.kernel.addressing.addresses import parse_address
from tests.integrations.kubernetes.metal3.admission.admission_requests import (
    View,
    a_cluster_api_address,
    a_pool,
    a_range,
    an_address,
    changed,
    errors,
    mutated,
    validated,
    warnings,
)

TEN = a_range("10.0.0.10", "10.0.0.19")
INVALID = 'IPPool.ipam.metal3.io "p" is invalid: '
IN_USE = "is in use but out of bounds of the pools given"
RANDOM = 'cannot be used with allocationStrategy "random": '


async def test_a_new_pool_is_sequential_and_gets_its_finalizer() -> None:
    """A2."""
    pool, decision = await mutated(a_pool(TEN))

    assert pool["spec"]["allocationStrategy"] == "sequential"
    assert pool["metadata"]["finalizers"] == [POOL_FINALIZER]
    assert decision.warnings == []


async def test_a_flag_of_the_operator_makes_new_pools_random() -> None:
    """KS6."""
    pool, _ = await mutated(a_pool(TEN), view=View(default_strategy="random"))
    named, _ = await mutated(a_pool(TEN, allocationStrategy="sequential"), view=View(default_strategy="random"))

    assert pool["spec"]["allocationStrategy"] == "random"
    assert named["spec"]["allocationStrategy"] == "sequential"


async def test_a_pool_that_is_not_served_gets_no_finalizer() -> None:
    pool, _ = await mutated(a_pool(TEN), view=View(served=False))

    assert "finalizers" not in pool["metadata"]
    assert pool["spec"]["allocationStrategy"] == "sequential"


async def test_finalizers_of_others_stay() -> None:
    written = a_pool(TEN)
    written["metadata"]["finalizers"] = ["example.org/other"]

    pool, _ = await mutated(written)
    again, decision = await mutated(pool)

    assert pool["metadata"]["finalizers"] == ["example.org/other", POOL_FINALIZER]
    assert again == pool
    assert decision.patch == []


async def test_a_changed_pool_that_names_no_strategy_keeps_its_own() -> None:
    """A14: a file without the field is applied again."""
    before = a_pool(TEN, allocationStrategy="random")

    pool, _ = await mutated(a_pool(TEN, gateway="10.0.0.1"), before)
    old, decision = await mutated(a_pool(TEN, gateway="10.0.0.1"), a_pool(TEN))

    assert pool["spec"]["allocationStrategy"] == "random"
    assert "allocationStrategy" not in old["spec"]
    assert decision.patch == []


async def test_addresses_stay_as_users_wrote_them() -> None:
    written = a_pool({"subnet": "fd00:0:0::/64", "gateway": "fd00::0001"}, preAllocations={"a": "FD00::5"})

    pool, _ = await mutated(written)

    assert {**pool["spec"], "allocationStrategy": None} == {**written["spec"], "allocationStrategy": None}


NO_PREFIXES = ["", "P", "-p", "p.", "p_q", "p q", ".p", "p/q"]
LONGEST_PREFIXES = [(TEN, 237), ({"subnet": "fd00::/120"}, 213)]


@pytest.mark.parametrize("prefix", NO_PREFIXES)
async def test_a_name_prefix_that_cannot_begin_a_name_is_refused(prefix: str) -> None:
    """A1: an empty one, too, where no schema does it."""
    assert "spec.namePrefix: Invalid value" in await errors(a_pool(TEN, namePrefix=prefix))


@pytest.mark.parametrize(("entry", "longest"), LONGEST_PREFIXES)
async def test_a_name_prefix_leaves_room_for_the_longest_address(entry: dict[str, Any], longest: int) -> None:
    assert await errors(a_pool(entry, namePrefix="p" * longest)) == ""
    assert f"at most {longest} characters fit" in await errors(a_pool(entry, namePrefix="p" * (longest + 1)))


async def test_a_name_prefix_that_was_there_before_the_webhook_does_not_forbid_other_changes() -> None:
    """It cannot be changed, so the pool could never be mended."""
    before = a_pool(TEN, namePrefix="p" * 240)

    assert await errors(changed(before, gateway="10.0.0.1"), before) == ""
    assert "at most 213" in await errors(changed(before, pools=[TEN, {"subnet": "fd00::/120"}]), before)


async def test_a_strategy_that_does_not_exist_is_refused() -> None:
    """A3."""
    assert "spec.allocationStrategy: Invalid value" in await errors(a_pool(TEN, allocationStrategy="lifo"))


async def test_a_prefix_has_at_most_128_bits() -> None:
    """A4."""
    assert "spec.prefix: Invalid value: 129" in await errors(a_pool(TEN, prefix=129))
    assert "spec.pools[0].prefix: Invalid value: 129" in await errors(a_pool({**TEN, "prefix": 129}))


@pytest.mark.parametrize("entry", [{}, {"gateway": "10.0.0.1"}])
async def test_an_entry_without_addresses_is_refused(entry: dict[str, str]) -> None:
    """A5."""
    found = await errors(a_pool(entry))

    assert found.startswith(f"{INVALID}spec.pools[0]: Invalid value: {{")
    assert found.endswith("}: pool entry must specify at least one of start, end, or subnet")


async def test_an_end_before_its_start_is_refused() -> None:
    assert (await errors(a_pool(a_range("10.0.0.9", "10.0.0.5")))).endswith(
        "end IP 10.0.0.5 is before start IP 10.0.0.9"
    )


async def test_a_pool_of_one_address_is_accepted() -> None:
    """A7."""
    assert await errors(a_pool(a_range("10.0.0.5", "10.0.0.5"))) == ""


@pytest.mark.parametrize(("first", "second"), [("10.0.0.12", "10.0.0.12"), ("fd00::5", "FD00:0::0005")])
async def test_an_address_is_pre_allocated_once(first: str, second: str) -> None:
    """A8: two spellings of one address are one."""
    pool = a_pool(TEN, {"subnet": "fd00::/64"}, preAllocations={"a": first, "b": second})

    expected = f'spec.preAllocations.b: Invalid value: "{second}": IP address is already pre-allocated to claim "a"'
    assert await errors(pool) == INVALID + expected


OUTSIDE = {"a": "10.0.0.9"}


async def test_a_pre_allocation_outside_the_ranges_is_refused_unless_it_is_allowed() -> None:
    """A10, KD9: the pool's own word goes before the operator's, also when the pool is changed."""
    pool = a_pool(TEN, preAllocations=OUTSIDE)
    allowing, strict = ({**pool["spec"], "tenure": {"outsidePreAllocations": word}} for word in ("allow", "strict"))

    refused = f'{INVALID}spec.preAllocations: Invalid value: "10.0.0.9": is out of bonds of the pools given'
    assert (await errors(pool)).startswith(refused)
    assert "is out of bounds of the pools given" in await errors(pool, a_pool(TEN))
    assert await errors(pool, view=View(allow_outside=True)) == ""
    assert await errors({**pool, "spec": allowing}) == ""
    assert await errors({**pool, "spec": allowing}, a_pool(TEN)) == ""
    assert (await errors({**pool, "spec": strict}, view=View(allow_outside=True))).startswith(refused)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"start": "10.0.0.5"}, "pool with Start requires End or Subnet to determine size"),
        ({"subnet": "fd00::/64"}, "pool size exceeds int range"),
    ],
)
async def test_an_entry_without_a_size_is_not_drawn_from(entry: dict[str, str], reason: str) -> None:
    """A11."""
    found = await errors(a_pool(TEN, entry, allocationStrategy="random"))

    assert found.startswith(f"{INVALID}spec.pools[1]: Invalid value: {{")
    assert found.endswith(RANDOM + reason)


async def test_half_of_a_64_is_drawn_from_and_sequential_pools_need_no_size() -> None:
    """A11, A12."""
    assert await errors(a_pool({"subnet": "fd00::/65"}, allocationStrategy="random")) == ""
    assert await errors(a_pool({"start": "10.0.0.5"}, {"subnet": "fd00::/64"})) == ""


async def test_name_prefix_and_strategy_cannot_be_modified() -> None:
    """A13, A14."""
    before = a_pool(TEN)

    found = await errors(changed(before, namePrefix="q", allocationStrategy="random"), before)
    expected = (
        '[spec.namePrefix: Invalid value: "q": cannot be modified, '
        'spec.allocationStrategy: Invalid value: "random": cannot be modified after creation]'
    )
    assert found == INVALID + expected
    assert await errors(changed(before, allocationStrategy="sequential"), before) == ""
    assert await errors(before, changed(before, allocationStrategy="sequential")) == ""


HELD = [an_address("p-10-0-0-12", "10.0.0.12", "c1"), a_cluster_api_address("p-10-0-0-15", "10.0.0.15", "c2")]


async def test_a_range_is_not_cut_below_an_address_in_use() -> None:
    """A15, KP13: objects of both kinds count, and a status does not."""
    before = {**a_pool(TEN), "status": {"indexes": {"c9": "10.0.0.19"}}}
    after = changed(before, pools=[a_range("10.0.0.13", "10.0.0.14")])

    expected = (
        f'[spec.pools: Invalid value: "10.0.0.12": {IN_USE}: IPAddress p-10-0-0-12 is for claim c1, '
        f'spec.pools: Invalid value: "10.0.0.15": {IN_USE}: IPAddress p-10-0-0-15 is for claim c2]'
    )
    assert await errors(after, before, View(HELD)) == INVALID + expected
    assert await errors(after, before) == ""


async def test_a_range_is_not_cut_below_an_address_that_is_being_given() -> None:
    """A15: its object may be there already, and not be known here; what is reserved is part of the pool itself."""
    reserving = [{"address": "10.0.0.12", "uid": "u1"}, {"address": "10.0.0.13", "uid": "u2"}]
    before = {**a_pool(TEN), "status": {"tenure": {"reserving": reserving}}}
    after = changed(before, pools=[a_range("10.0.0.13", "10.0.0.14")])
    outside = changed(after, preAllocations={"c1": "10.0.0.12"}, tenure={"outsidePreAllocations": "allow"})
    known = View(promised={parse_address("10.0.0.12"): [ClaimId("IPClaim", "m3", "c1")]})

    refusal = (
        'spec.pools: Invalid value: "10.0.0.12": is being given to {} but out of bounds of the pools given; try again'
    )
    assert await errors(after, before) == INVALID + refusal.format("a claim")
    assert await errors(after, before, known) == INVALID + refusal.format("IPClaim c1")
    assert await errors(outside, before, known) == ""
    assert (await errors(after, before, View(HELD))).count("10.0.0.12") == 1


async def test_a_pool_that_shares_addresses_with_another_is_accepted_with_a_warning() -> None:
    view = View(overlap="it shares 10.0.0.10 with IPPool q")

    assert await warnings(a_pool(TEN), view=view) == ["spec.pools: it shares 10.0.0.10 with IPPool q"]
    assert await warnings(changed(a_pool(TEN), prefix=24), a_pool(TEN), view) != []


async def test_a_refusal_names_ten_addresses_in_use_and_counts_the_others() -> None:
    """A15."""
    addresses = [an_address(f"x{number}", f"10.0.1.{number}", f"c{number}") for number in range(200)]

    found = await errors(a_pool(TEN), a_pool(TEN, {"subnet": "10.0.1.0/24"}), View(addresses))

    assert found.count(IN_USE) == 10
    assert found.endswith(
        "spec.pools: Invalid value: 189: more addresses are in use but out of bounds of the pools given]"
    )


async def test_an_address_that_was_in_no_range_before_does_not_hold_up_a_change() -> None:
    """KS2: somebody made it by hand; and an outside pre-allocation is held outside."""
    by_hand = an_address("mine", "192.0.2.1", "c1")
    moved = a_pool(a_range("10.0.0.13", "10.0.0.19"), preAllocations={"c1": "10.0.0.12"})

    assert await errors(changed(a_pool(TEN), pools=[TEN, TEN]), a_pool(TEN), View([by_hand])) == ""
    assert await errors(moved, a_pool(TEN), View(HELD, allow_outside=True)) == ""


async def test_ranges_gateways_and_servers_may_be_changed() -> None:
    """A17."""
    after = a_pool(TEN, a_range("10.0.1.1", "10.0.1.9"), gateway="10.0.0.1", prefix=24, dnsServers=["192.0.2.53"])

    assert await errors(after, a_pool(TEN), View(HELD)) == ""


async def test_all_errors_are_in_one_answer() -> None:
    """A18."""
    pool = a_pool(
        {"start": "banana", "dnsServers": ["192.0.2.1", "x"]},
        a_range("10.0.0.9", "10.0.0.5"),
        gateway="g",
        dnsServers=["d"],
        preAllocations={"a": "y"},
    )

    found = await errors(pool)

    bad = [
        'spec.gateway: Invalid value: "g"',
        'spec.dnsServers[0]: Invalid value: "d"',
        'spec.preAllocations.a: Invalid value: "y"',
        'spec.pools[0].start: Invalid value: "banana"',
        'spec.pools[0].dnsServers[1]: Invalid value: "x"',
    ]
    assert found.startswith(f"{INVALID}[")
    assert [text for text in bad if f"{text}: is not a valid IP address" not in found] == []
    assert "spec.pools[1]: Invalid value:" in found


async def test_a_long_list_of_errors_is_cut() -> None:
    found = await errors(a_pool(*[{"start": "x" * 1000}] * 500))

    assert found.endswith(", and 400 more errors]")
    assert len(found) < 40_000


async def test_an_entry_with_only_an_end_has_no_first_address() -> None:
    """A19."""
    assert "either start or subnet is required" in await errors(a_pool({"end": "10.0.0.9"}))


async def test_a_gateway_inside_the_range_is_accepted_with_a_warning() -> None:
    """A20."""
    assert await warnings(a_pool({**TEN, "gateway": "10.0.0.10"})) == [
        "spec.pools[0]: 10.0.0.10 is a gateway and is kept back; no claim gets it"
    ]


MAPPED_POOLS = [
    a_pool(a_range("::ffff:10.0.0.1", "::ffff:10.0.0.9")),
    a_pool(TEN, gateway="::ffff:10.0.0.1"),
    a_pool({"subnet": "::ffff:10.0.0.0/120"}),
]


@pytest.mark.parametrize("pool", MAPPED_POOLS)
async def test_an_ipv4_address_in_ipv6_spelling_is_refused(pool: dict[str, Any]) -> None:
    assert "Invalid value" in await errors(pool)


async def test_the_fields_of_this_version_are_accepted() -> None:
    tenure = {
        "drain": ["10.0.0.11", "10.0.0.12-10.0.0.13", "10.0.0.16/31"],
        "external": True,
        "outsidePreAllocations": "strict",
        "reservedAddresses": "give",
        "outlivesCluster": True,
        "coolingSeconds": 3600,
        "sticky": True,
        "network": "vlan-7",
        "namespaces": [],
    }

    assert await errors(a_pool(TEN, tenure=tenure)) == ""
    assert "spec.tenure.drain[0]: Invalid value" in await errors(a_pool(TEN, tenure={"drain": ["banana"]}))


async def test_an_update_that_leaves_an_invalid_spec_as_it_is_passes() -> None:
    """Else the finalizers of a pool that is older than the webhook could never go."""
    before = a_pool({"end": "10.0.0.9"}, tenure={"sticky": True})
    labelled = {**before, "metadata": {**before["metadata"], "labels": {"a": "b"}}}
    going = {**before, "metadata": {**before["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}

    assert await errors(labelled, before) == ""
    assert await errors(changed(going, gateway="x"), going) == ""
    assert "cannot be modified" in await errors(changed(going, namePrefix="q"), going)


async def test_a_pool_of_5000_ranges_is_judged_in_time_that_grows_with_the_ranges() -> None:
    """Ten times the ranges take some ten times as long, not a hundred times."""
    small, large = [min([await _judged_in(count) for _ in range(3)]) for count in (500, 5000)]

    assert large < 30 * small


async def _judged_in(count: int) -> float:
    """Return the CPU seconds that it takes to judge a change of a pool of so many ranges."""
    ranges = [
        a_range(f"10.{number >> 8}.{number & 255}.10", f"10.{number >> 8}.{number & 255}.19", prefix=24)
        for number in range(count)
    ]
    before, after = a_pool(*ranges), a_pool(*ranges[:-1], a_range("10.99.0.1", "10.99.0.9"))
    began = time.process_time()
    decision = await validated(after, before, View([an_address("x", "10.0.0.10", "c")]))
    assert decision.errors == ()
    return time.process_time() - began
