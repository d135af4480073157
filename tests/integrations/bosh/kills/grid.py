"""All lives with one death: at every call of the store in every step, on either side of it; then the story goes on."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import count
from typing import Any

from tests.integrations.bosh.kills.dying import live
from tests.integrations.bosh.kills.places import fresh
from tests.integrations.bosh.kills.story import STEPS, standing

NAMES = list(STEPS)
SIDES = (False, True)


def undisturbed(url: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Tell the story in one process for each step; return how everything stands after each."""
    for step in NAMES:
        assert live(url, [step])
        yield step, asyncio.run(standing(url))


def killed_once(
    store: str, steps: Collection[str] = NAMES, *, tell: Callable[[str], None] = lambda _: None
) -> Counter[str]:
    """Try all deaths in these steps, each in a ledger of its own; count what is otherwise at the end."""
    total: Counter[str] = Counter(kills=0, lost=0, doubled=0, breaches=0, unexplained=0)
    with fresh(store) as url:
        assert live(url, NAMES)
        expected = asyncio.run(standing(url))
    for number, step in enumerate(NAMES):
        if step in steps:
            for after in SIDES:
                for found in _endings(store, number, after=after):
                    total.update(compared(found, expected))
            tell(f"step {number + 1}/{len(NAMES)} ({step}): {dict(total)}")
    return total


def _endings(store: str, number: int, *, after: bool) -> Iterator[dict[str, Any]]:
    """Kill once at each call of a step, repeat the step, tell the rest."""
    for call in count(1):
        with fresh(store) as url:
            if live(url, NAMES[: number + 1], dies_at=call, after=after):
                return
            assert live(url, NAMES[number:])
            yield asyncio.run(standing(url))


def compared(found: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, int]:
    """Count what is otherwise after a death than without one."""
    held, wanted = (Counter(address for _, address, *_ in each["held"]) for each in (found, expected))
    return {
        "kills": 1,
        "lost": (wanted - held).total(),
        "doubled": sum(number > 1 for number in held.values()),
        "breaches": len(found["breaches"]),
        "unexplained": int(found != expected),
    }
