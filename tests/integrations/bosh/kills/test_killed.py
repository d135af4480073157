"""A deploy that is killed at any call of the store, and repeated, ends as if it had never been killed."""

import asyncio
from itertools import count

import pytest

from tests.integrations.bosh.kills.dying import live
from tests.integrations.bosh.kills.grid import compared, killed_once, undisturbed
from tests.integrations.bosh.kills.places import fresh
from tests.integrations.bosh.kills.story import standing
from tests.scale import PROOF, in_proof

STRIDE = 1 if PROOF else 9
"""How many calls further a step dies when it is repeated."""

BEFORE, AFTER = pytest.param(False, id="before", marks=pytest.mark.proof), pytest.param(True, id="after")
"""A death before a call leaves what a death after the call before it left, so ``make test`` has one of both."""


@pytest.mark.parametrize("store", ["sqlite", in_proof("postgres")])
@pytest.mark.parametrize("after", [BEFORE, AFTER])
def test_a_step_killed_at_its_first_call_then_at_later_ones_ends_as_if_never_killed(store: str, after: bool) -> None:
    with fresh(store) as quiet, fresh(store) as url:
        for step, expected in undisturbed(quiet):
            kills = next(calls for calls in count(0, STRIDE) if live(url, [step], dies_at=calls + 1, after=after))

            assert kills > 0, step
            assert asyncio.run(standing(url)) == expected, step
            assert expected["breaches"] == []


@pytest.mark.parametrize("store", ["sqlite", in_proof("postgres")])
def test_a_deploy_killed_once_and_repeated_leaks_nothing_and_doubles_nothing(store: str) -> None:
    figures = killed_once(store, ["apply"])

    assert figures["kills"] > 10
    assert +figures == {"kills": figures["kills"]}


def test_what_a_death_leaves_behind_is_counted() -> None:
    sound = {"held": [("alpha/a", "172.20.5.2"), ("alpha/b", "172.20.5.3")], "breaches": []}
    leaking = {"held": [("alpha/a", "172.20.5.2"), ("alpha/b", "172.20.5.2")], "breaches": ["twice"]}

    assert compared(sound, sound) == {"kills": 1, "lost": 0, "doubled": 0, "breaches": 0, "unexplained": 0}
    assert compared(leaking, sound) == {"kills": 1, "lost": 1, "doubled": 1, "breaches": 1, "unexplained": 1}
