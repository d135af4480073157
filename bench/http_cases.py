"""What is measured of the HTTP door, and what it must hold beside a bare hello on the same server."""

from collections.abc import Mapping
from dataclasses import replace

from bench.cases import SMALLER, USUAL, WIDE, Case, Pair, Promise, Scale, rate

WORK = "http-"
HELLO, ALLOCATE, KEYED = f"{WORK}hello", f"{WORK}allocate", f"{WORK}keyed"
MAP, LIST, WALK = f"{WORK}map", f"{WORK}list", f"{WORK}walk"

HELD_OF_PAGE = 60_000
FEW_TO_WALK = 1000


def is_http(pair: Pair) -> bool:
    """Tell whether a pair is one of these."""
    return pair.subject.work.startswith(WORK)


def http_pairs(tiers: Mapping[str, str], scale: Scale) -> list[Pair]:
    """List what is compared on the stores that a server is run on."""
    stores = [store for store in ("sqlite", "postgres") if store in tiers]
    return [replace(pair, name=f"http-{store}-{pair.name}") for store in stores for pair in store_pairs(store, scale)]


def store_pairs(store: str, scale: Scale) -> list[Pair]:
    """List what is compared on one store."""
    few, many = Case(store, ALLOCATE, callers=32, pool=WIDE), Case(store, ALLOCATE, callers=256, pool=WIDE)
    keyed = replace(few, work=KEYED)
    hello_few, hello_many = replace(few, work=HELLO), replace(many, work=HELLO)
    walk = Case(store, WALK, pool=WIDE, callers=1, held=scale.held, kept=True)
    pairs = [
        Pair("32", "HTTP allocate, 32 connections / hello", few, hello_few, rate(0.35)),
        Pair("256", "HTTP allocate, 256 connections / hello", many, hello_many, rate(0.40)),
        Pair("keyed", "HTTP allocate with keys, 32 connections / hello", keyed, hello_few, rate(0.30)),
        page_pair(store, "map", MAP),
        page_pair(store, "list", LIST),
    ]
    if store == "sqlite":  # the walk is the server's own business; one store shows it
        promises = (Promise("peak_mb", SMALLER, 1.25),)
        title = f"HTTP, listing {scale.held:,} holdings / {FEW_TO_WALK:,}"
        pairs.append(Pair("walk", title, walk, replace(walk, held=FEW_TO_WALK), promises))
    return pairs


def page_pair(store: str, name: str, work: str) -> Pair:
    """Compare a page of a /16 with 60,000 held with one of an empty one."""
    full = Case(store, work, pool=USUAL, callers=1, held=HELD_OF_PAGE, kept=True)
    promises = (Promise("p50_ms", SMALLER, 3.0),)
    return Pair(name, f"HTTP, {name} of a /16 with 60,000 held / empty", full, replace(full, held=0), promises)
