"""What is measured on Kubernetes: the runtime beside a bare session and other clients, and claims beside Metal3's."""

from dataclasses import replace
from importlib.util import find_spec

from bench.cases import SMALLER, Case, Pair, Promise, rate

WORK = "kubernetes-"
OURS, BARE, LISTED = f"{WORK}ours", f"{WORK}bare", f"{WORK}listed"
ADDRESSES = f"{WORK}addresses"
CLAIMS_WORK = f"{WORK}claims-"
CLAIMS_OURS, CLAIMS_METAL3, CLAIMS_UNTHROTTLED = (
    CLAIMS_WORK + name for name in ("ours", "metal3", "metal3-unthrottled")
)
OTHERS = ("kubernetes_asyncio", "lightkube")
"""Clients that people write controllers with, where they are installed (``make bench`` does); no bar is put on them."""

STORE = "kubernetes"
TASKS = 32
WRITES = 1000
OBJECTS = 20_000
CLAIMS = 500
IN_FLIGHT = 64
"""As many requests as the operator has in flight: what creating addresses alone is measured with (KD15)."""
KB_AN_OBJECT = 3.0
"""With objects of 1 KB: what an object may cost in a cache."""


def is_kubernetes(pair: Pair) -> bool:
    """Say whether a pair is one of these."""
    return pair.subject.work.startswith(WORK)


def is_claims(pair: Pair) -> bool:
    """Say whether a pair is about claims that operators serve."""
    return pair.subject.work.startswith(CLAIMS_WORK)


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
        *_claim_pairs(CLAIMS // 10 if quick else CLAIMS),
    ]


def _claim_pairs(count: int) -> list[Pair]:
    """List what serving claims of one pool is compared with; the bars are not set yet."""
    ours = Case(STORE, CLAIMS_OURS, "sequential", callers=TASKS, count=count)
    shipped, unthrottled = (replace(ours, work=work) for work in (CLAIMS_METAL3, CLAIMS_UNTHROTTLED))
    creates = Case(STORE, ADDRESSES, callers=IN_FLIGHT, count=count)
    return [
        Pair("kubernetes-claims", f"{count} claims / creates of IPAddress", ours, creates),
        Pair("kubernetes-claims-metal3", "claims / Metal3 as shipped", ours, shipped),
        Pair("kubernetes-claims-unthrottled", "claims / Metal3, no limit", ours, unthrottled),
    ]


def _other(name: str, ours: Case) -> Pair:
    return Pair(f"kubernetes-{name}", f"creates, the runtime / {name}", ours, replace(ours, work=f"{WORK}{name}"))
