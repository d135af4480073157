"""Timelines: how many holdings there were, exactly, from the log."""

import random
from datetime import UTC, datetime

import tenure
from tenure.doors.http.utilisation.subnet_tally import UnitUse
from tenure.doors.http.utilisation.trends import DAY_S, FINE_S, KEPT_S, THINNED, Point, Trend, Trends
from tenure.kernel.addressing.addresses import Family
from tenure.kernel.holdings.holding_model import Change
from tests.doors.http.utilisation.conftest import Counted
from tests.doors.http.utilisation.random_walk import Walker, build

NOW = 1_800_000_000


def test_points_are_exact_at_every_whole_second() -> None:
    trend = Trend()
    trend.note(NOW - 100, 3, 0)
    trend.note(NOW - 50, -1, 1)
    trend.note(NOW - 50, 2, 0)
    trend.note(NOW - 10, 0, -1)

    points = trend.points(Point(NOW, 4, 0), [NOW - 101, NOW - 100, NOW - 51, NOW - 50, NOW - 11, NOW - 10, NOW])

    assert [(held, cooling) for _, held, cooling in points] == [(0, 0), (3, 0), (3, 0), (4, 1), (4, 1), (4, 0), (4, 0)]


def test_what_is_older_than_a_day_is_kept_by_minutes_and_stays_exact_at_each() -> None:
    chance, trend, model = random.Random(5), Trend(), list[tuple[int, int]]()
    for second in range(NOW - 3 * DAY_S, NOW, 7):
        change = chance.choice((-1, 1))
        trend.note(second, change, 0)
        model.append((second, change))
    total = sum(change for _, change in model)
    trend.thin(NOW)
    times = [NOW - number * 3600 for number in range(70)]

    points = trend.points(Point(NOW, total, 0), times)

    assert {at_s: held for at_s, held, _ in points} == {
        at_s: sum(change for second, change in model if second <= at_s) for at_s in times
    }
    assert trend.cut_s is None


def test_a_trend_is_bounded_and_says_since_when_it_is_complete() -> None:
    trend = Trend()
    for second in range(NOW - 40 * DAY_S, NOW, 20):
        trend.note(second, 1, 0)
    trend.thin(NOW)

    assert len(trend) < THINNED
    assert trend.cut_s == NOW - KEPT_S
    assert FINE_S > DAY_S


def test_what_cools_already_and_is_told_to_cool_again_is_counted_once() -> None:
    trends = Trends()
    trends.caught_up()
    for seq, verb in enumerate(("grant", "cool", "cool", "release"), 1):
        told = {"because": "cooled off"} if verb == "release" else {}
        trends.follow(Change(seq, (NOW + seq) * 1_000_000, verb, 1, 1, 77, 77, "vm/1", "", 1, None, told))

    points = trends.of(1, Family.IPV4).points(Point(NOW + 9, 0, 0), [NOW + number for number in range(6)])

    assert [(held, cooling) for _, held, cooling in points] == [(0, 0), (1, 0), (0, 1), (0, 1), (0, 0), (0, 0)]


async def test_the_past_is_read_from_the_log_and_the_present_follows_it(ledger: tenure.AsyncLedger) -> None:
    await build(ledger)
    await Walker(ledger, 3).go(80)
    late = Counted(ledger)
    await late.open()
    await Walker(ledger, 4).go(80)
    await late.settle()
    assert await late.census.wait_until(lambda: late.census.trends.read)

    for space, network in late.census.networks():
        for family in space.counts(network):
            trend = late.census.trends.of(network.id, family)
            now = Point(
                trend.last_s,
                space.total(network, family, UnitUse.HELD, UnitUse.PENDING, UnitUse.DRAINING),
                space.total(network, family, UnitUse.COOLING),
            )
            [begin] = trend.points(now, [0])
            assert begin == Point(0, 0, 0), (network.name, family)
    assert not late.census.trends.cut
    await late.close()


async def test_a_trimmed_log_says_since_when_it_is_complete(ledger: tenure.AsyncLedger) -> None:
    await build(ledger)
    await ledger.allocate_many("alone", owners=["vm/1", "vm/2", "vm/3"])
    await ledger.trim_changes(await ledger.last_change())
    await ledger.allocate("alone", owner="vm/4")
    late = Counted(ledger)
    await late.open()
    await late.settle()
    assert await late.census.wait_until(lambda: late.census.trends.read)

    since = late.census.trends.since(NOW)
    assert late.census.trends.cut
    assert abs(since - datetime.now(UTC).timestamp()) < 600
    await late.close()


async def test_a_gap_costs_trends_only_what_was_not_told(ledger: tenure.AsyncLedger) -> None:
    await build(ledger)
    await ledger.allocate_many("alone", owners=["vm/1", "vm/2", "vm/3"])
    late = Counted(ledger)
    await late.open()
    await late.settle()
    assert await late.census.wait_until(lambda: late.census.trends.read)
    await late.news.close()
    await ledger.allocate("alone", owner="vm/4")
    await ledger.trim_changes(await ledger.last_change())  # the past is no longer to be had
    late.news.seen = await ledger.last_change()
    late.census._begin()
    assert await late.census.wait_until(lambda: late.census.trends.read)

    alone = await ledger.network("alone")
    [begin] = late.census.trends.of(alone.id, Family.IPV6).points(Point(NOW, 4, 0), [0])
    assert (begin, late.census.trends.cut) == (Point(0, 0, 0), False)
    await late.close()
