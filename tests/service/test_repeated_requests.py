"""Asking again: the same answer, whatever happened to the plan in between (invariant I6)."""

import asyncio

import pytest

import tenure


@pytest.mark.parametrize("edit", ["reserve", "retire", "preallocate"])
def test_the_same_request_again_answers_the_same_whatever_was_planned_since(edit: str) -> None:
    with tenure.open("memory:") as ledger:
        ledger.add_network("n1")
        ledger.add_subnet("n1", "10.0.0.0/29", name="low")
        first = ledger.allocate("n1", owner="pod/a", address="10.0.0.5")
        if edit == "reserve":
            ledger.reserve("n1", "10.0.0.5")
        elif edit == "retire":
            ledger.retire_network("n1")
        else:
            ledger.preallocate("n1", "pod/b", "10.0.0.5")

        before = ledger.last_change()

        assert ledger.allocate("n1", owner="pod/a", address="10.0.0.5") == first
        assert ledger.last_change() == before


def test_the_same_request_again_answers_the_same_when_the_pool_is_gone() -> None:
    with tenure.open("memory:") as ledger:
        ledger.add_network("n1")
        ledger.add_subnet("n1", "10.0.0.0/29")
        ledger.add_pool("n1", "10.0.0.4", name="p")
        first = ledger.allocate("n1", owner="pod/a")
        ledger.remove_pool("n1", "p")

        assert ledger.allocate("n1", owner="pod/a") == first


@pytest.mark.parametrize("policy", ["lowest", "random", "hashed", "sticky"])
def test_an_owner_named_twice_in_one_group_needs_one_address_even_if_it_is_the_last(policy: str) -> None:
    with tenure.open("memory:") as ledger:
        ledger.add_network("n1")
        ledger.add_subnet("n1", "10.0.0.0/29")
        ledger.add_pool("n1", "10.0.0.4")

        got = ledger.allocate_many("n1", owners=["pod/a", "pod/a"], policy=policy)

        assert [holding.address for holding in got] == ["10.0.0.4", "10.0.0.4"]


async def test_the_same_request_twice_at_the_same_time_gets_the_last_address_twice() -> None:
    async with await tenure.open_async("memory:") as ledger:
        await ledger.add_network("n1")
        await ledger.add_subnet("n1", "10.0.0.0/29")
        await ledger.add_pool("n1", "10.0.0.4")

        got = await asyncio.gather(*(ledger.allocate("n1", owner="pod/a") for _ in range(4)))

        assert {holding.address for holding in got} == {"10.0.0.4"}
