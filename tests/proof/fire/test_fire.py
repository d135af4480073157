"""One short round under fire of each kind, and one mutant; ``make soak`` runs long ones, and all mutants."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.infrastructure.postgres import THROWN_AWAY, private_postgres
from tests.proof.fire import acts
from tests.proof.fire.fire_rounds import FireRound, Setting, fire_round, on_postgres, on_sqlite
from tests.scale import PROOF, in_proof

SECONDS = 3.0 if PROOF else 2.0
SEED = 1


@pytest.fixture(params=["postgres", "sqlite-1", in_proof("sqlite-2")])
def setting(request: pytest.FixtureRequest) -> Iterator[Setting]:
    """Give each kind of round, with fewer callers than in a soak."""
    if request.param == "postgres":
        with private_postgres(THROWN_AWAY) as server:
            yield replace(on_postgres(server), callers=8)
    else:
        yield replace(on_sqlite(int(request.param[-1])), callers=8)


def told(fired: FireRound) -> str:
    """Write down all breaches."""
    return "\n".join(str(breach) for breach in fired.breaches)


async def test_what_is_acknowledged_under_fire_is_held(setting: Setting) -> None:
    fired = await fire_round(setting, SEED, SECONDS)

    assert told(fired) == ""
    figures = fired.figures
    assert min(figures[name] for name in ("attempts", "answered", "abandoned", "granted")) > 0
    assert sum(count for name, count in fired.faults.items() if not name.startswith(("act_", "commits"))) > 0


async def test_a_fault_that_is_planted_in_servers_is_noticed() -> None:
    play = [acts.lowest_behind_a_deadline]
    planted = replace(on_sqlite(1), callers=0, stormy=False, aimed=play, mutant="no_sweep_before_picks")

    fired = await fire_round(planted, SEED, 0)

    assert {breach.rule for breach in fired.breaches} == {"R5"}
