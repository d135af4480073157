"""What travels comes back as what it was: every value of the ledger, written, sent and read again."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

import tenure
from tenure.client.remote_ledger import as_asked
from tenure.kernel import errors
from tenure.wire import decode, encode, http_errors, problems, request_bodies, responses


@pytest.fixture
async def ledger() -> AsyncIterator[tenure.AsyncLedger]:
    """Give a ledger in which everything has happened once."""
    async with await tenure.open_async("memory:") as opened:
        asked = opened.asked_by("token/ann", request_id="r-1")
        await asked.add_network(
            "net", space="wide", tags=["a"], labels={"x": "y"}, description="d", mac_prefix="aa:00:01"
        )
        await asked.add_subnet(
            "net", "192.0.2.0/24", gateway="192.0.2.1", name="b", dns=["192.0.2.2"], dhcp=True, zones=["z"]
        )
        await asked.add_subnet("net", "2001:db8::/48", unit=64, labels={"v": "6"})
        await asked.add_pool("net", "192.0.2.10-192.0.2.12", name="p", policy="sticky", cooling_s=60, labels={"l": "1"})
        await asked.reserve("net", "192.0.2.20-192.0.2.30", reason="why", request="q", labels={"r": "s"})
        await asked.preallocate("net", "vm/pre", "192.0.2.12", slot="s", description="waits")
        await opened.apply([tenure.Connect(network="net", group="g", mode="bridged", link="br0", vlan="7")])
        await asked.allocate(
            "net",
            owner="far:vm/a",
            slot="nic0",
            labels={"t": "1"},
            description="one",
            carrier="c",
            plan="p",
            request="q",
        )
        await opened.hold("net", owner="vm/b", lasts_s=3600)
        await opened.allocate("net", owner="vm/six", address="2001:db8:0:7::")
        await asked.transfer("net", "192.0.2.10", owner="far:vm/a", to="vm/c", to_slot="x")
        await opened.release("net", "192.0.2.10", owner="vm/c")
        await opened.claim("net", owner="vm/waits", pool="p")
        await opened.apply([tenure.WritePaper(kind="k", name="n", document={"a": [1, {"b": None}], "big": 10**30})])
        yield opened


async def everything(ledger: tenure.AsyncLedger) -> dict[str, list[Any]]:
    """Read all kinds of values there are."""
    places = ["192.0.2.10", "192.0.2.11", "192.0.2.12", "192.0.2.25", "192.0.2.200", "2001:db8:0:7::1", "10.0.0.1"]
    return {
        "holding": await ledger.holdings("net"),
        "network": await ledger.networks(),
        "space": await ledger.spaces(),
        "change": [change async for change in ledger.changes()],
        "explanation": [await ledger.why(place) for place in places],
        "history": [await ledger.history(place) for place in places],
        "found": await ledger.search("192.0.2.0/24") + await ledger.search("vm"),
        "waiting_claim": await ledger.waiting(),
        "paper": await ledger.papers("k"),
        "claim_status": [
            await ledger.claim("net", owner="vm/waits", pool="p"),
            await ledger.claim("net", owner="vm/six"),
        ],
        "breach": [tenure.Breach("I1", "text")],
    }


@pytest.mark.parametrize(
    "kind",
    ["holding", "network", "space", "change", "explanation", "history", "found", "waiting_claim", "paper",
     "claim_status", "breach"],
)  # fmt: skip
async def test_a_value_comes_back_as_it_was(ledger: tenure.AsyncLedger, kind: str) -> None:
    found = (await everything(ledger))[kind]
    write: Callable[[Any], Any] = getattr(encode, kind)
    read: Callable[[Any], Any] = getattr(decode, kind)

    for value in found:
        shape = write(value)
        travelled = msgspec.json.decode(msgspec.json.encode(shape), type=type(shape))
        assert read(travelled) == value
        if kind not in ("network", "space"):  # whose sets are written in any order
            assert str(read(travelled)) == str(value)
    assert found


async def test_answers_of_operations_come_back_as_they_were(ledger: tenure.AsyncLedger) -> None:
    held = await ledger.holdings("net")
    for answer in (None, held[0], held, [], (await ledger.networks())[0], (await ledger.papers("k"))[0]):
        travelled = msgspec.json.decode(msgspec.json.encode(encode.answer(answer)), type=responses.Answer)
        assert decode.answer(travelled) == answer


ERRORS = [
    errors.Invalid("owner: is wrong", field="owner"),
    errors.AddressOutsideSubnet("192.0.2.1", "net"),
    errors.NotFound("network", "net"),
    errors.AlreadyExists("network", "net"),
    errors.AddressInUse("192.0.2.1", "vm/a"),
    errors.AddressReserved("192.0.2.1", "kept back as the gateway of 192.0.2.0/24", kept_as="gateway"),
    errors.Overlap("a", "b", field="cidr"),
    errors.StillInUse("network", "net", ["vm/a"], addresses=["192.0.2.1"]),
    errors.NotOwner("192.0.2.1", tenure.Owner("vm/a"), tenure.Owner("vm/b")),
    errors.KeyReused("k"),
    errors.PoolExhausted("net", "pool", wanted=3, in_a_row=True, waited_s=2.5),
    errors.CursorExpired(3, 17),
    errors.StoreUnavailable("gone", outcome="unknown"),
    http_errors.RateLimited("slowly", after_s=2.0),
    http_errors.Fault("ours"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_an_error_comes_back_with_its_kind_its_words_and_its_data(error: tenure.TenureError) -> None:
    travelled = msgspec.json.decode(msgspec.json.encode(problems.problem_of(error, "r-1")), type=responses.Problem)
    again = problems.error_of(travelled)

    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_an_address_reserved_of_an_older_server_says_not_as_what_it_is_kept() -> None:
    problem = problems.problem_of(errors.AddressReserved("192.0.2.1", "reserved", kept_as="reserved"))
    del problem.data["kept_as"]
    again = problems.error_of(problem)

    assert isinstance(again, errors.AddressReserved)
    assert again.kept_as is None


def test_a_field_is_named_as_the_caller_knows_it() -> None:
    error = as_asked(errors.Invalid("operations[3].cidr: expected text", field="operations[3].cidr"))

    assert (error.field, error.message, str(error)) == ("cidr", "cidr: expected text", "cidr: expected text")


@pytest.mark.parametrize(
    "value", [float("inf"), float("nan"), object(), b"bytes", {1: "a"}], ids=lambda v: type(v).__name__
)
def test_what_json_cannot_say_is_refused_by_name(value: object) -> None:
    with pytest.raises(tenure.Invalid, match=r"^labels: "):
        request_bodies.plain(value, "labels")
