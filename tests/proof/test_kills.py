"""One round of ``kill -9`` on every store that outlives a process; ``make soak`` runs many.

In ``make test`` SQLite stands for them, and ``test_http_kills`` kills servers on PostgreSQL.
"""

import pytest

from tests.proof.rounds import FRAGILE, kill_round
from tests.scale import PROOF, in_proof

SECONDS = 3.0 if PROOF else 2.0


@pytest.mark.parametrize("store", ["sqlite", *map(in_proof, sorted({*FRAGILE} - {"sqlite"}))])
async def test_what_was_answered_survives_kills_of_clients_and_servers_under_load(store: str) -> None:
    with FRAGILE[store]() as fragile:
        reckoning = await kill_round(fragile, 1, seconds=SECONDS)

    assert reckoning.breaches == []
    assert reckoning.findings == []
    figures = reckoning.figures
    assert figures["clients_killed"] > 0
    assert (figures["servers_killed"] > 0) == (fragile.server is not None)
    # It was a load: pools were taken, given back and found full, and kills left calls without an answer.
    assert min(figures[name] for name in ("grants", "releases", "exhausted", "unknown")) > 0
    timely = ("confirms", "cooled", "waits", "expired")
    assert min(figures[name] for name in timely) > 0 or not fragile.exact
