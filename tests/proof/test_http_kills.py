"""Two servers on one PostgreSQL under load, one of them killed again and again: nothing lost, doubled or leaked."""

import asyncio
from pathlib import Path

import pytest

from tests.proof.crew import Crew, begin
from tests.proof.faces import lay_plan, open_ledger
from tests.proof.http_pair import fragile_http
from tests.proof.plan import timely_plan
from tests.proof.rounds import kill_round
from tests.proof.test_fill import seen_by
from tests.scale import PROOF, runs

SECONDS = 4.0 if PROOF else 2.0
KILLS = runs(2, 3, proof=3)


async def test_what_servers_answered_survives_kills_of_clients_and_of_a_server_under_load() -> None:
    with fragile_http() as fragile:
        reckoning = await kill_round(fragile, 1, seconds=SECONDS)

    assert reckoning.breaches == []
    assert reckoning.findings == []
    assert min(reckoning.figures[name] for name in ("servers_killed", "clients_killed", "grants", "releases")) > 0


@pytest.mark.proof
async def test_who_follows_the_events_sees_every_change_once_and_in_order_while_servers_are_killed(
    tmp_path: Path,
) -> None:
    plan = timely_plan()
    with fragile_http() as fragile:
        url = await asyncio.to_thread(fragile.place, tmp_path)
        assert fragile.server is not None
        async with Crew(url, plan, tmp_path) as crew:
            await lay_plan(url, plan)
            reader = await crew.hire("tail")
            clients = await crew.hire_many("mix", 2, callers=4)
            await begin([reader, *clients])

            for _ in range(KILLS):
                await asyncio.sleep(1.0)
                await asyncio.to_thread(fragile.server.kill)
                await asyncio.to_thread(fragile.server.start)
            for client in clients:
                await client.say()
                await client.finish()
            async with await open_ledger(url) as ledger:
                await ledger.modify_network(plan.networks[0], description="full")
            await reader.finish()
            history, breaches = await crew.history()

            seen = [(entry.seq, entry.verb, entry.tenancy) for _, entry in seen_by(reader, tmp_path)]
            log = [(entry.seq, entry.verb, entry.tenancy) for entry in history.log or ()]
            assert breaches == []
            assert seen == log[: len(seen)]
            assert len(seen) > 100
