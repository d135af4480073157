"""Doubtful views: a pick that was taken sends a server elsewhere."""

import random

from tenure.kernel.picking.policies import FEW, STRIPE
from tenure.kernel.plan.plan_model import Policy
from tenure.kernel.plan.pool_line import Line
from tenure.service.allocator.doubtful_view import DoubtfulLine


def test_one_stripe_that_another_server_has_filled_costs_one_try() -> None:
    line = Line([(0, 1, 16 * FEW)], Policy.RANDOM)
    view = DoubtfulLine.begin(line, (), "server-a", seen=0, loaded=False)
    chance = random.Random(7)

    numbers = [view.pick(Policy.RANDOM, "vm/a", "", attempt, chance) for attempt in range(6)]

    assert len({number // STRIPE for number in numbers if number is not None}) == 6


def test_only_the_first_rank_is_picked_from_and_never_called_full_by_a_later_one() -> None:
    line = Line([(0, 1, 2)], Policy.RANDOM, later=[[], [(100, 1, 1000)]])
    view = DoubtfulLine.begin(line, [(0, 0)], "server-a", seen=0, loaded=True)
    chance = random.Random(7)

    numbers = [view.pick(policy, "vm/a", "", 0, chance) for policy in Policy]
    view.free.take(1, 1)

    assert numbers == [1] * len(Policy)
    assert [view.pick(policy, "vm/a", "", 0, chance) for policy in Policy] == [None] * len(Policy)
