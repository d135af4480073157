"""Rounds of kill and restart: clients at work, some of them and the store's server killed, then the reckoning."""

import asyncio
import random
import secrets
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.infrastructure.etcd import private_etcd
from tests.infrastructure.postgres import private_postgres
from tests.proof.checking import Finding
from tests.proof.crew import Client, Crew, begin
from tests.proof.faces import lay_plan
from tests.proof.history import History
from tests.proof.plan import crowded_plan, timely_plan

CLIENTS = 4
BLOWS = 6
"""In a round: clients killed, clients that leave in order, and servers killed, each as often."""


class Server(Protocol):
    """A store's server that may be killed and started again on its data."""

    folder: Path

    def kill(self) -> None:
        """Kill every process of it."""
        ...

    def start(self) -> None:
        """Start it and wait until it answers."""
        ...


@dataclass(frozen=True)
class Fragile:
    """A store to be mistreated: where a round finds an empty place, and the server, if it has one."""

    name: str
    place: Callable[[Path], str]
    server: Server | None = None
    exact: bool = True


@contextmanager
def fragile_sqlite() -> Iterator[Fragile]:
    """Give SQLite: its server is the clients themselves."""
    yield Fragile("sqlite", lambda folder: f"sqlite:///{folder / 'ledger.db'}")


@contextmanager
def fragile_postgres() -> Iterator[Fragile]:
    """Give a PostgreSQL, with a schema a round."""
    with private_postgres() as server:
        yield Fragile("postgres", lambda _: f"{server.url}&schema=t_{secrets.token_hex(6)}", server)


@contextmanager
def fragile_etcd() -> Iterator[Fragile]:
    """Give an etcd, with a root a round."""
    with private_etcd() as server:
        yield Fragile("etcd", lambda _: f"{server.url}/t-{secrets.token_hex(6)}", server, exact=False)


FRAGILE: dict[str, Callable[[], AbstractContextManager[Fragile]]] = {
    "sqlite": fragile_sqlite,
    "postgres": fragile_postgres,
    "etcd": fragile_etcd,
}


@dataclass
class Reckoning:
    """What a round came to."""

    store: str
    seed: int
    figures: Counter[str]
    breaches: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


async def kill_round(fragile: Fragile, seed: int, *, seconds: float) -> Reckoning:
    """Let clients work for about so many seconds, killing what can be killed in between, and reckon."""
    plan = timely_plan() if fragile.exact else crowded_plan()
    with tempfile.TemporaryDirectory(prefix="tenure-round-") as name:
        folder = Path(name)
        url = fragile.place(folder)
        async with Crew(url, plan, folder, seed) as crew:
            await lay_plan(url, plan)
            try:
                kills = await _mistreat(crew, fragile, random.Random(f"{fragile.name}-{seed}"), seconds)
                history, breaches = await crew.history()
            except Exception as error:
                error.add_note(_last_words(fragile))
                raise
            findings = crew.explain(history, exact=fragile.exact)
    figures = _figures(history, findings)
    figures.update(kills)
    figures["breaches"] = len(breaches)
    return Reckoning(fragile.name, seed, figures, breaches, findings)


async def _mistreat(crew: Crew, fragile: Fragile, chance: random.Random, seconds: float) -> Counter[str]:
    """Keep clients at work while killing them, and their store's server, at moments that chance decides."""
    at_work = await crew.hire_many("mix", CLIENTS, callers=4)
    await begin(at_work)
    blows = ["clients_killed", "clients_left", "servers_killed"] * (BLOWS // 3)
    if fragile.server is None:
        blows = [blow.replace("servers", "clients") for blow in blows]
    chance.shuffle(blows)
    for blow in blows:
        await asyncio.sleep(chance.uniform(0.2, 1.8) * seconds / BLOWS)
        if blow == "servers_killed" and fragile.server is not None:
            await _restart(fragile.server, chance)
        else:
            await _replace(crew, at_work, chance, in_order=blow == "clients_left")
    await asyncio.sleep(chance.uniform(0.2, 1.8) * seconds / BLOWS)
    for client in at_work:
        await client.say()
    for client in at_work:
        await client.finish()
    return Counter(blows)


def _last_words(fragile: Fragile) -> str:
    """Tell what the store's server wrote last, for a round that could not be finished."""
    if fragile.server is None:
        return f"{fragile.name} has no server"
    return (fragile.server.folder / "log").read_text("utf-8")[-3000:]


async def _restart(server: Server, chance: random.Random) -> None:
    await asyncio.to_thread(server.kill)
    await asyncio.sleep(chance.uniform(0, 0.2))
    await asyncio.to_thread(server.start)


async def _replace(crew: Crew, at_work: list[Client], chance: random.Random, *, in_order: bool) -> None:
    """Let a client go, killed or in order, and another come."""
    leaving = at_work.pop(chance.randrange(len(at_work)))
    if in_order:
        await leaving.say()
        await leaving.finish()
    await leaving.kill()
    successor = await crew.hire("mix")
    await successor.say()
    at_work.append(successor)


def _figures(history: History, findings: list[Finding]) -> Counter[str]:
    answered = [call for call in history.calls if not call.unknown]
    effects = Counter(entry.verb for entry in history.log or ())
    kinds = Counter(finding.kind for finding in findings)
    return Counter(
        calls=len(history.calls),
        unknown=len(history.calls) - len(answered),
        unavailable=sum(call.error == "store_unavailable" for call in answered),
        exhausted=sum(call.error == "pool_exhausted" for call in answered),
        grants=effects["grant"],
        releases=effects["release"],
        transfers=effects["transfer"],
        confirms=effects["confirm"],
        cooled=effects["cool"],
        waits=effects["wait"],
        expired=sum(entry.by_the_clock for entry in history.log or ()),
        held=len(history.final),
        lost=kinds["lost"] + kinds["lost from the log"] + kinds["release lost"],
        doubled=kinds["doubled"],
        unexplained=len(findings),
    )
