"""Networks of the ledger brought to what a later file says: what it has no words for stays."""

import tenure
from tests.integrations.ganeti.files.documents import NET1, NET2, Json, bits, brought_in, new_document, old_document
from tests.integrations.ganeti.files.load.test_follow_file import followed, later

Rules = tuple[str, str, int, int]


async def rules(ledger: tenure.AsyncLedger, pool: str) -> list[Rules]:
    """List the ranges of a pool, each with its policy, cooling and rank."""
    subnets = (await ledger.network("net1")).subnets
    return [
        (str(each.range), str(each.policy), each.cooling_s, each.rank)
        for subnet in subnets
        for each in subnet.pools
        if each.name == pool
    ]


def with_range_in_another_subnet() -> Json:
    """Give pool3, which lies in subnet2, a range in subnet1, which is written before."""
    document = later(new_document())
    pools = document["networks"][NET1]["subnets"][0]["pools"]
    pools.append({"range": "192.0.2.64/29", "reservations": "00000000", "name": "pool3"})
    return document


async def test_a_new_range_of_a_known_pool_has_its_policy_cooling_and_rank(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, new_document())
    await ledger.modify_pool("net1", "pool3", policy="random", cooling_s=60, rank=2)
    await followed(ledger, with_range_in_another_subnet())

    assert await rules(ledger, "pool3") == [
        ("192.0.2.64-192.0.2.71", "random", 60, 2),
        ("10.0.0.8-10.0.0.15", "random", 60, 2),
        ("10.0.0.40-10.0.0.45", "random", 60, 2),
    ]


async def test_a_new_range_has_them_also_where_the_other_ranges_are_written_again(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, new_document())
    await ledger.modify_pool("net1", "pool3", policy="random", cooling_s=60, rank=2)
    document = with_range_in_another_subnet()
    del document["networks"][NET1]["subnets"][1]["pools"][0]
    await followed(ledger, document)

    assert await rules(ledger, "pool3") == [
        ("192.0.2.64-192.0.2.71", "random", 60, 2),
        ("10.0.0.40-10.0.0.45", "random", 60, 2),
    ]


async def test_a_new_pool_has_the_defaults(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, new_document())
    document = later(new_document())
    pools = document["networks"][NET1]["subnets"][0]["pools"]
    pools.append({"range": "192.0.2.64/29", "reservations": "00000000", "name": "pool9"})
    await followed(ledger, document)

    assert await rules(ledger, "pool9") == [("192.0.2.64-192.0.2.71", "lowest", 0, 0)]


async def test_a_pool_without_a_name_keeps_its_rules_when_its_network_grows(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    await ledger.modify_pool("net2", "10.0.0.0/24", policy="random", cooling_s=60, rank=2, labels={"floor": "3"})
    document = later(old_document())
    wide = {"network": "10.0.0.0/23", "reservations": bits(512, 77), "ext_reservations": bits(512, 255, 511)}
    document["networks"][NET2].update(wide)
    await followed(ledger, document)

    [pool] = (await ledger.network("net2")).subnets[0].pools
    assert (str(pool.range), str(pool.policy), pool.cooling_s, pool.rank) == ("10.0.0.0-10.0.1.255", "random", 60, 2)
    assert dict(pool.notes.labels) == {"floor": "3"}
