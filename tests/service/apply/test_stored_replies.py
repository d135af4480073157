"""What is kept of a group's answers under an idempotency key grows with the group, not with its square."""

import tenure
from tenure.service.apply.stored_replies import reply_of


async def kept_bytes(count: int) -> int:
    async with await tenure.open_async("memory:") as ledger:
        edits = [tenure.AddSubnet(network="net", cidr=f"10.0.{number}.0/24") for number in range(count)]
        answers = await ledger.apply([tenure.AddNetwork(network="net"), *edits])
    return len(reply_of("key", b"", answers).answer or "")


async def test_the_kept_answers_of_twice_as_many_edits_are_not_three_times_as_large() -> None:
    assert await kept_bytes(200) < 3 * await kept_bytes(100)
