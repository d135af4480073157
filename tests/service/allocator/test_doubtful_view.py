"""Doubtful views: a pick that was taken sends a server elsewhere."""

import random

from tenure.kernel.picking.free_set import FreeSet
from tenure.kernel.picking.policies import FEW, STRIPE, Stripes
from tenure.kernel.plan.plan_model import Policy
from tenure.kernel.plan.pool_line import Line
from tenure.service.allocator.doubtful_view import DoubtfulLine


def test_one_stripe_that_another_server_has_filled_costs_one_try() -> None:
    line = Line([(0, 1, 16 * FEW)], Policy.RANDOM)
    view = DoubtfulLine(line, FreeSet(line.size), Stripes(line.size, "server-a"))
    chance = random.Random(7)

    numbers = [view.pick(Policy.RANDOM, "vm/a", "", attempt, chance) for attempt in range(6)]

    assert len({number // STRIPE for number in numbers if number is not None}) == 6
