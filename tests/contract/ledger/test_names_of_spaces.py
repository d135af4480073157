"""A space that is a network's own is called as the network is; one that was named keeps its name."""

import pytest

import tenure


async def _spaces(ledger: tenure.AsyncLedger) -> dict[str, list[str]]:
    return {space.name: list(space.networks) for space in await ledger.spaces()}


async def test_a_renamed_network_leaves_its_name_to_others(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_network("first")
    await ledger.modify_network("first", name="second")

    await ledger.add_network("first")

    assert await _spaces(ledger) == {"first": ["first"], "second": ["second"]}
    assert await ledger.verify() == []


async def test_a_space_with_a_name_of_its_own_keeps_it(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_network("one", space="site")

    await ledger.modify_network("one", name="two")

    assert await _spaces(ledger) == {"site": ["two"]}


async def test_a_shared_space_keeps_the_name_it_began_with(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_network("one")
    await ledger.add_network("two", space="one")

    await ledger.modify_network("one", name="three")

    assert await _spaces(ledger) == {"one": ["three", "two"]}


async def test_where_the_name_is_taken_the_space_keeps_its_own(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_network("one")
    await ledger.add_network("other", space="site")

    await ledger.modify_network("one", name="site")

    assert await _spaces(ledger) == {"one": ["site"], "site": ["other"]}


async def test_a_refused_rename_leaves_the_space_as_it_was(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_network("one")
    await ledger.add_subnet("one", "192.0.2.0/28")

    with pytest.raises(tenure.Overlap):
        await ledger.apply(
            [
                tenure.ModifyNetwork(network="one", name="two"),
                tenure.AddSubnet(network="two", cidr="192.0.2.0/24"),
            ]
        )

    assert await _spaces(ledger) == {"one": ["one"]}
