"""What is kept under an idempotency key: answers that grow with the group, and marks that outlive an upgrade."""

import pytest

import tenure
from tenure.kernel.holdings.idempotency import body_of
from tenure.kernel.plan.edits import KEEP
from tenure.service.apply.operations import AllocateRun, Operation
from tenure.service.apply.stored_replies import body_of_operations, reply_of


async def kept_bytes(count: int) -> int:
    async with await tenure.open_async("memory:") as ledger:
        edits = [tenure.AddSubnet(network="net", cidr=f"10.0.{number}.0/24") for number in range(count)]
        answers = await ledger.apply([tenure.AddNetwork(network="net"), *edits])
    return len(reply_of("key", b"", answers).answer or "")


async def test_the_kept_answers_of_twice_as_many_edits_are_not_three_times_as_large() -> None:
    assert await kept_bytes(200) < 3 * await kept_bytes(100)


NETWORK = ("network", "net")
OF_0_1_0 = [
    (
        tenure.AddPool(network="net", range="192.0.2.1", name="p"),
        ("AddPool", NETWORK, ("range", "192.0.2.1"), ("name", "p"), ("policy", None), ("cooling_s", 0),
         ("labels", []), ("description", "")),
    ),
    (
        tenure.AddPool(network="net", range="192.0.2.1", cooling_s=60),
        ("AddPool", NETWORK, ("range", "192.0.2.1"), ("name", None), ("policy", None), ("cooling_s", 60),
         ("labels", []), ("description", "")),
    ),
    (
        tenure.ModifyPool(network="net", pool="p", cooling_s=5),
        ("ModifyPool", NETWORK, ("pool", "p"), ("name", KEEP), ("policy", KEEP), ("cooling_s", 5), ("retired", KEEP),
         ("labels", KEEP), ("description", KEEP)),
    ),
    (
        tenure.ModifyNetwork(network="net", description="d"),
        ("ModifyNetwork", NETWORK, ("name", KEEP), ("kind", KEEP), ("mac_prefix", KEEP), ("tags", KEEP),
         ("retired", KEEP), ("labels", KEEP), ("description", "d")),
    ),
    (
        AllocateRun(network="net", owners=["a/1"], slots=[""]),
        ("AllocateRun", NETWORK, ("owners", ["a/1"]), ("slots", [""]), ("pool", None), ("subnet", None),
         ("policy", None), ("labels", None), ("request", None)),
    ),
]  # fmt: skip
"""Operations, and what version 0.1.0 made their marks of."""


@pytest.mark.parametrize(("operation", "said"), OF_0_1_0, ids=lambda each: type(each).__name__)
def test_a_request_of_version_0_1_0_has_the_mark_that_it_had(operation: Operation, said: object) -> None:
    assert body_of_operations([operation], "key") == body_of("apply", said)


@pytest.mark.parametrize(
    "more", [{"rank": 1}, {"cooling_s": 1}, {"labels": {"a": "b"}}, {"rank": 0}], ids=lambda more: str(*more)
)
def test_whatever_else_is_said_makes_another_mark(more: dict[str, object]) -> None:
    plain = tenure.AddPool(network="net", range="192.0.2.1")
    other = tenure.AddPool(network="net", range="192.0.2.1", **more)  # type: ignore[arg-type]

    assert body_of_operations([plain], "key") != body_of_operations([other], "key")
