"""Doubtful views: a pick that was taken sends a server elsewhere."""

import random

from tenure.kernel.choosing import FEW, STRIPE, Stripes
from tenure.kernel.configuration import Policy
from tenure.kernel.freeset import FreeSet
from tenure.kernel.lines import Line
from tenure.service.views import DoubtfulLine


def test_one_stripe_that_another_server_has_filled_costs_one_try() -> None:
    line = Line([(0, 1, 16 * FEW)], Policy.RANDOM)
    view = DoubtfulLine(line, FreeSet(line.size), Stripes(line.size, "server-a"))
    chance = random.Random(7)

    numbers = [view.pick(Policy.RANDOM, "vm/a", "", attempt, chance) for attempt in range(6)]

    assert len({number // STRIPE for number in numbers if number is not None}) == 6
