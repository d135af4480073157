"""Whoever asks: makes attempts over HTTP, and writes down each with what was heard."""

import asyncio
import contextlib
import itertools
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.proof.fire.attempts import Attempt, Outcome, Row, Wish, problem_of
from tests.proof.fire.http_client import HttpAnswer, HttpConnection

LOST = (OSError, EOFError, TimeoutError, ValueError)
PATIENCE_S = 40.0
CLAIMS_LAST_S = 2.0
NOBODY_LISTENS_S = 0.1


def now_us() -> int:
    """Read the machine's clock."""
    return time.time_ns() // 1000


@dataclass
class Book:
    """All attempts of a round, in the order they were begun."""

    attempts: list[Attempt] = field(default_factory=list)
    keys: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def key(self) -> str:
        """Return an idempotency key that nobody used."""
        return f"key-{next(self.keys)}"


class Asker:
    """One who asks servers, over a connection to each."""

    def __init__(self, name: str, ports: Sequence[int], token: str, book: Book, chance: random.Random) -> None:
        self.servers = len(ports)
        self.book = book
        self.chance = chance
        self._name = name
        self._ports = ports
        self._token = token
        self._idle: dict[int, list[HttpConnection]] = {}
        self._count = 0

    async def ask(
        self,
        server: int,
        verb: str,
        wishes: Sequence[Wish],
        *,
        key: str | None = None,
        wait_s: float = 0.0,
        together: bool = True,
        gone: "asyncio.Future[Any] | None" = None,
        patience_s: float = PATIENCE_S,
        **more: Any,
    ) -> Attempt:
        """Make an attempt; hang up when ``gone`` is done, or when patience is at its end."""
        self._count += 1
        attempt = Attempt(f"{self._name}.{self._count}", verb, server, wishes, now_us(), key, wait_s, together)
        path, body = request_of(verb, wishes, wait_s, together, more)
        idle = self._idle.setdefault(server, [])
        connection = idle.pop() if idle else HttpConnection(self._ports[server], self._token)
        try:
            await connection.connect()
        except OSError:  # nothing was asked: this is no attempt that anybody counts
            await asyncio.sleep(NOBODY_LISTENS_S)
            attempt.ended = now_us()
            return attempt
        self.book.attempts.append(attempt)
        asking = asyncio.ensure_future(connection.post(path, body, attempt.id, key))
        try:
            await asyncio.wait(
                [asking] if gone is None else [asking, gone],
                timeout=patience_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if asking.done():
                note_answer(attempt, asking.result())
                idle.append(connection)
                return attempt
            attempt.hung_up = True
        except LOST:
            pass
        finally:
            attempt.ended = now_us()
            if attempt.status is None:
                connection.hang_up(abruptly=self.chance.random() < 0.5)
                asking.cancel()
                with contextlib.suppress(*LOST, asyncio.CancelledError):
                    await asking
        return attempt

    def close(self) -> None:
        """Hang up everywhere."""
        for connections in self._idle.values():
            for connection in connections:
                connection.hang_up()
        self._idle.clear()


def request_of(
    verb: str, wishes: Sequence[Wish], wait_s: float, together: bool, more: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Write a request: its path, and its body."""
    wish = wishes[0]
    network = f"/networks/{wish.network}"
    if verb in ("allocate", "hold", "claim"):
        body = {**_wanted(wish), **({"wait_s": wait_s} if wait_s else {}), **more}
        if verb == "hold":
            body["pending"] = True
        elif verb == "claim":
            body["patience_s"] = CLAIMS_LAST_S
        return f"{network}:{'claim' if verb == 'claim' else 'allocate'}", body
    if verb == "release":
        return f"{network}:release", {"address": wish.address, **_holder(wish)}
    if verb in ("confirm", "cancel", "transfer"):
        to = {} if wish.to is None else {"to": wish.to}
        return f"{network}/holdings/{wish.address}:{verb}", {**_holder(wish), **to}
    if verb == "release_owner":
        return f"/owners/{wish.owner}:release".replace("vm/", "vm%2F"), {}
    if verb == "allocate_many":
        return f"{network}:allocate_many", {"wishes": [_wanted(each) for each in wishes], "all_or_none": together}
    if verb == "run":
        owners, slots = [each.owner for each in wishes], [""] * len(wishes)
        run = {"op": "allocate_run", "network": wish.network, "pool": wish.pool, "owners": owners, "slots": slots}
        return ":apply", {"operations": [run]}
    return ":apply", {"operations": [_operation(each) for each in wishes]}


def _holder(wish: Wish) -> dict[str, Any]:
    return {"owner": wish.owner, **({} if wish.generation is None else {"generation": wish.generation})}


def _wanted(wish: Wish) -> dict[str, Any]:
    said = {"owner": wish.owner, "pool": wish.pool if wish.address is None else None, "address": wish.address}
    return {name: value for name, value in said.items() if value is not None}


def _operation(wish: Wish) -> dict[str, Any]:
    if wish.verb == "grant":
        return {"op": "allocate", "network": wish.network, **_wanted(wish)}
    return {"op": "release", "network": wish.network, "address": wish.address, **_holder(wish)}


def note_answer(attempt: Attempt, answer: HttpAnswer) -> None:
    """Write down what was heard."""
    attempt.status, document = answer.status, answer.document
    if answer.status >= 300:
        attempt.code, attempt.said = problem_of(document or {})
        return
    if attempt.verb in ("allocate_many", "apply", "release_owner"):
        items = document["items"]
        if attempt.verb == "apply":  # what was released is not held now
            items = [item for item, wish in zip(items, attempt.wishes, strict=True) if wish.verb == "grant"]
        shown = [item if attempt.verb == "release_owner" else item.get("holding") for item in items]
        attempt.rows = [_row(each) for each in shown if each is not None]
        pairs = zip(attempt.wishes, items, strict=False)
        attempt.refused = {wish.owner: _outcome(item["problem"]) for wish, item in pairs if "problem" in item}
        return
    if attempt.verb == "run":
        attempt.rows = [_row(each) for each in document["items"][0]["holdings"]]
        return
    holding = document if attempt.verb in ("allocate", "hold", "confirm", "transfer") else document.get("holding")
    attempt.rows = [] if holding is None else [_row(holding)]


def _outcome(problem: Mapping[str, Any]) -> Outcome:
    return "unknown" if problem_of(problem)[1] == "unknown" else "none"


def _row(shown: Mapping[str, Any]) -> Row:
    return Row(shown["network"], shown["address"], shown["generation"], shown["owner"], shown["state"])
