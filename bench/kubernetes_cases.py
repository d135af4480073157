"""What is measured of the runtime for Kubernetes: writes beside a bare session, a cache, other clients' CPU."""

from dataclasses import replace
from importlib.util import find_spec

from bench.cases import SMALLER, Case, Pair, Promise, rate

WORK = "kubernetes-"
OURS, BARE, LISTED = f"{WORK}ours", f"{WORK}bare", f"{WORK}listed"
OTHERS = ("kubernetes_asyncio", "lightkube")
"""Clients that people write controllers with, where they are installed (``make bench`` does); no bar is put on them."""

STORE = "kubernetes"
TASKS = 32
WRITES = 1000
OBJECTS = 20_000
KB_AN_OBJECT = 3.0
"""With objects of 1 KB: what an object may cost in a cache."""


def is_kubernetes(pair: Pair) -> bool:
    """Say whether a pair is one of these."""
    return pair.subject.work.startswith(WORK)


def kubernetes_pairs(*, quick: bool) -> list[Pair]:
    """List what is compared on one API server."""
    ours = Case(STORE, OURS, callers=TASKS, count=WRITES // 10 if quick else WRITES)
    objects = OBJECTS // 10 if quick else OBJECTS
    listed = Case(STORE, LISTED, callers=1, count=objects)
    memory = Promise("peak_mb", SMALLER, round(objects * KB_AN_OBJECT / 1024, 1), relative=False)
    return [
        Pair("kubernetes-create", "creates / bare aiohttp", ours, replace(ours, work=BARE), rate(0.85)),
        Pair("kubernetes-list", f"a cache of {objects:,} objects of 1 KB", listed, None, (memory,)),
        *(_other(name, ours) for name in OTHERS if find_spec(name)),
    ]


def _other(name: str, ours: Case) -> Pair:
    return Pair(f"kubernetes-{name}", f"creates, the runtime / {name}", ours, replace(ours, work=f"{WORK}{name}"))
