"""6.10: claims whose address must lie in some ranges; without a server, by passes over objects."""

import random

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import CLAIM_FINALIZER, IP_CLAIM, IP_POOL, WISHED_ADDRESS
from tenure.integrations.kubernetes.metal3.objects.pool_spec import read_pool_spec
from tenure.integrations.kubernetes.metal3.pool_book import OBJECT, PoolBook
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import parse_range
from tests.integrations.kubernetes.metal3.pass_stage import Stage

pytestmark = pytest.mark.usefixtures("skipped_time")


def claim(stage: Stage, name: str, *ranges: str, asks: str = "", created: str = "2026-01-01T00:00:01Z") -> None:
    spec = {"pool": {"name": "p"}, "tenure": {"ranges": list(ranges)}}
    annotations = {WISHED_ADDRESS: asks} if asks else {}
    stage.put(IP_CLAIM, name, spec, annotations=annotations, finalizers=[CLAIM_FINALIZER], created=created)


def addresses(stage: Stage) -> dict[str, str]:
    """Return the addresses of claims."""
    made = [each for (plural, _), each in stage.objects.items() if plural == "ipaddresses"]
    return {each["spec"]["claim"]["name"]: each["spec"]["address"] for each in made}


def released(stage: Stage, name: str) -> None:
    stage.change(IP_CLAIM, name, lambda claim: claim["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))


async def test_6_10_ranges_are_used_in_their_order_and_full_ones_are_waited_for() -> None:
    stage = Stage()
    stage.pool()
    for name in "abc":
        claim(stage, name, "10.0.0.8/31", "10.0.0.3")
    claim(stage, "d", "10.0.0.9")
    await stage.settle()
    assert addresses(stage) == {"a": "10.0.0.8", "b": "10.0.0.9", "c": "10.0.0.3"}
    assert stage.status("d")["errorMessage"] == "No address of 10.0.0.9 is free in IPPool p"
    assert stage.objects["ippools", "p"]["status"]["tenure"]["addresses"]["waiting"] == 1

    released(stage, "b")
    await stage.settle()
    assert addresses(stage)["d"] == "10.0.0.9"


@pytest.mark.parametrize(("early", "late"), [("ranged", "any"), ("any", "ranged")])
async def test_6_10_kd10_what_is_freed_goes_to_the_claim_that_came_first(early: str, late: str) -> None:
    stage = Stage()
    stage.pool("10.0.0.1", "10.0.0.2")
    stage.claim("a")
    stage.claim("b")
    await stage.settle()
    for number, name in enumerate((early, late)):
        created = f"2027-01-01T00:00:0{number}Z"
        if name == "any":
            stage.claim(name, created=created)
        else:
            claim(stage, name, "10.0.0.1-10.0.0.9", created=created)
    await stage.settle()
    released(stage, "a")
    await stage.settle()

    assert set(addresses(stage)) == {"b", early}


async def test_6_10_ranges_the_pool_does_not_give_are_said_until_it_does() -> None:
    stage = Stage()
    stage.pool("10.0.0.1", "10.0.0.9", gateway="10.0.0.5", preAllocations={"fixed": "10.0.0.2"})
    claim(stage, "gateway", "10.0.0.5")
    claim(stage, "far", "10.1.0.0/24")
    claim(stage, "fixed", "10.0.0.3")
    claim(stage, "torn", "10.0.0.3", asks="10.0.0.4")
    await stage.settle()
    said = {name: stage.status(name)["errorMessage"] for name in ("gateway", "far", "fixed", "torn")}
    assert said == {
        "gateway": "IPPool p gives no address of 10.0.0.5, which spec.tenure.ranges asks for",
        "far": "IPPool p gives no address of 10.1.0.0-10.1.0.255, which spec.tenure.ranges asks for",
        "fixed": "The address that is asked for lies outside of spec.tenure.ranges: 10.0.0.2",
        "torn": "The address that is asked for lies outside of spec.tenure.ranges: 10.0.0.4",
    }

    stage.change(IP_POOL, "p", lambda pool: pool["spec"]["pools"].append({"start": "10.1.0.7", "end": "10.1.0.7"}))
    await stage.settle()
    assert addresses(stage) == {"far": "10.1.0.7"}


@pytest.mark.parametrize("strategy", ["sequential", "random"])
@pytest.mark.parametrize("seed", range(5))
def test_6_10_a_pick_lies_in_the_first_range_that_has_room(seed: int, strategy: str) -> None:
    """Against a plain model, also where entries are not written in the order of their addresses."""
    chance = random.Random(seed)
    entries: list[dict[str, str]] = [
        {"start": "10.0.0.30", "end": "10.0.0.60"},
        {"start": "10.0.0.1", "end": "10.0.0.20"},
    ]
    if seed % 2:
        entries.reverse()
    book = PoolBook(random.Random(seed))
    spec = {"namePrefix": "p", "pools": entries, "gateway": "10.0.0.40", "allocationStrategy": strategy}
    book.lay(read_pool_spec(spec))
    free = [parse_range("10.0.0.1-10.0.0.20"), parse_range("10.0.0.30-10.0.0.60")]
    left = {each for span in free for each in range(span.first, span.last + 1)} - {parse_range("10.0.0.40").first}
    for number in range(80):
        firsts = [chance.randrange(0, 70) for _ in range(chance.randrange(1, 4))]
        ranges = [parse_range(f"10.0.0.{each}-10.0.0.{each + chance.randrange(15)}") for each in firsts]
        within = next(([each for each in left if each in span] for span in ranges if any(e in span for e in left)), [])
        picked = book.pick(ranges)
        assert (picked in within) if within else picked is None
        if picked is not None:
            if strategy == "sequential":
                assert picked == min(within, key=lambda each: (_entry(entries, each), each)), format_address(picked)
            left.discard(picked)
            book.hold((OBJECT, f"o{number}"), picked)


def _entry(entries: list[dict[str, str]], position: int) -> int:
    return next(at for at, entry in enumerate(entries) if position in parse_range("-".join(entry.values())))
