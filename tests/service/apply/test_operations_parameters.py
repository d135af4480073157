"""The parameters of allocate, hold and claim are those of ``Allocate``: every door takes each, and passes it on."""

import asyncio
import inspect
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

import msgspec
import pytest
from click.testing import CliRunner

import tenure
from tenure.doors.cli.commands import allocate
from tenure.doors.cli.main import main
from tenure.doors.http.routes.claim_routes import AskedClaim
from tenure.doors.http.routes.holding_routes import OneWish, wished_claim
from tenure.service.allocator.claim import Claim
from tenure.service.apply.operations import (
    Allocate,
    AllocateKeywords,
    AllocateRun,
    ClaimKeywords,
    GroupKeywords,
    keywords_of,
    read_claim,
)
from tenure.service.ledger.engine_ledger import EngineLedger
from tenure.wire.request_bodies import read_body

SAMPLES: Mapping[str, Mapping[str, Any]] = {
    "slot": {"slot": "eth0"},
    "address": {"address": "192.0.2.7"},
    "pool": {"pool": "pool1"},
    "subnet": {"subnet": "subnet1"},
    "policy": {"policy": "random"},
    "reserved": {"reserved": "allow", "address": "192.0.2.7"},
    "labels": {"labels": {"team": "shop"}},
    "description": {"description": "front"},
    "carrier": {"carrier": "vm-17"},
    "plan": {"plan": "deployment-7"},
    "request": {"request": "ticket-1"},
    "pending": {"pending": True},
    "lasts_s": {"lasts_s": 60.0, "pending": True},
    "zone": {"zone": "z1"},
    "family": {"family": "ipv6"},
}
"""Every parameter but network, owner and key with a value that is not its default, and what must be said with it."""

OPTIONS: Mapping[str, str] = {"labels": "--label=team=shop", "lasts_s": "--lasts=60", "pending": ""}
"""How the command line says what it does not say as ``--name=value``."""

VERBS: Mapping[str, tuple[type[Any], set[str]]] = {
    "allocate": (AllocateKeywords, {"owner", "key", "wait_s"}),
    "hold": (AllocateKeywords, {"owner", "key", "wait_s", "lasts_s"}),
    "claim": (ClaimKeywords, {"owner", "key", "wait_s", "patience_s"}),
    "allocate_many": (GroupKeywords, {"owners", "owner", "count", "contiguous", "slot", "key"}),
}
"""Which keywords each verb takes, and its own."""


@pytest.fixture
def arrived(monkeypatch: pytest.MonkeyPatch) -> list[Claim]:
    """Return the claims that arrive; each is refused before anything is asked of a store."""
    claims: list[Claim] = []

    async def refuse(self: EngineLedger, claim: Claim, wait_s: float) -> tenure.Holding:
        claims.append(claim)
        raise tenure.Conflict("nothing is served here")

    monkeypatch.setattr(EngineLedger, "serve", refuse)
    return claims


def meant(words: Mapping[str, Any], key: str | None = None) -> Claim:
    """Return the claim that words mean."""
    return Allocate(network="net1", owner="vm/a", key=key, **words).claim()


def verb_for(words: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return which verb says this, and how."""
    said = dict(words)
    return ("hold" if said.pop("pending", False) else "allocate"), said


def test_every_parameter_has_a_sample_here() -> None:
    assert set(SAMPLES) == {each.name for each in fields(Allocate)} - {"network", "owner", "key"}


def test_every_parameter_can_be_said_to_a_verb() -> None:
    said = AllocateKeywords.__optional_keys__ | ClaimKeywords.__optional_keys__

    assert said == set(SAMPLES)


@pytest.mark.parametrize("keywords", [AllocateKeywords, ClaimKeywords, GroupKeywords])
def test_keywords_are_of_the_types_that_the_definition_has(keywords: type[Any]) -> None:
    defined = get_type_hints(Allocate)

    assert get_type_hints(keywords) == {name: defined[name] for name in keywords.__optional_keys__}


def test_addresses_in_a_row_take_what_is_said_of_a_group() -> None:
    own = {"network", "owners", "slots"}

    assert {each.name for each in fields(AllocateRun)} - own == GroupKeywords.__optional_keys__


@pytest.mark.parametrize("kind", [tenure.AsyncLedger, tenure.Ledger])
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_verb_shows_every_parameter_with_type_and_default(kind: type[Any], verb: str) -> None:
    keywords, own = VERBS[verb]
    defined = {each.name: each for each in fields(Allocate)}
    shown = inspect.signature(getattr(kind, verb)).parameters

    assert set(shown) == {"self", "network"} | own | keywords.__optional_keys__
    assert all(each.kind is not each.VAR_KEYWORD for each in shown.values())
    for name in keywords.__optional_keys__ - own:
        assert (shown[name].default, shown[name].annotation) == (defined[name].default, defined[name].type)
        assert defined[name].default is not MISSING


@pytest.mark.parametrize(
    ("verb", "wrong"),
    [
        ("allocate", "adress"), ("allocate", "pending"), ("allocate", "lasts_s"), ("hold", "pending"), ("hold", "x"),
        ("claim", "address"), ("claim", "reserved"), ("allocate_many", "address"), ("allocate_many", "description"),
    ],
)  # fmt: skip
def test_a_keyword_that_a_verb_does_not_take_is_named(verb: str, wrong: str) -> None:
    async def asked() -> None:
        async with await tenure.open_async("memory:") as ledger:
            await getattr(ledger, verb)("net1", owner="vm/a", **{wrong: None})

    with pytest.raises(TypeError, match=f"unexpected keyword argument '{wrong}'"):
        asyncio.run(asked())
    with tenure.open("memory:") as ledger, pytest.raises(TypeError, match=f"unexpected keyword argument '{wrong}'"):
        getattr(ledger, verb)("net1", owner="vm/a", **{wrong: None})


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_parameter_makes_another_claim_and_another_mark(name: str) -> None:
    plain = {each: value for each, value in SAMPLES[name].items() if each != name}

    assert meant(SAMPLES[name]) != meant(plain if name != "pending" else {})
    assert meant(SAMPLES[name], "k1").body != meant(plain if name != "pending" else {}, "k1").body


@pytest.mark.parametrize("key", [None, "k1"])
@pytest.mark.parametrize("name", ["", *sorted(SAMPLES)])
def test_the_library_passes_every_parameter_on(arrived: list[Claim], name: str, key: str | None) -> None:
    words = SAMPLES.get(name, {})
    verb, said = verb_for(words)

    with tenure.open("memory:") as ledger, pytest.raises(tenure.Conflict):
        getattr(ledger, verb)("net1", owner="vm/a", key=key, **said)

    assert arrived == [meant(words, key)]
    assert arrived == [read_claim("net1", "vm/a", key=key, **words)]


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_command_line_passes_every_parameter_on(arrived: list[Claim], name: str) -> None:
    verb, said = verb_for(SAMPLES[name])
    options = [OPTIONS.get(each, f"--{each}={value}") for each, value in said.items()]

    done = CliRunner().invoke(main, ["--store=memory:", verb, "net1", "vm/a", *options])

    assert arrived == [meant(SAMPLES[name])], done.output


def test_the_command_line_says_which_parameters_are_for_one_address_alone() -> None:
    of_each = GroupKeywords.__optional_keys__ | {"slot"}

    assert set(allocate.ONLY_ONE) == AllocateKeywords.__optional_keys__ - of_each | {"wait_s"}


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_what_the_client_writes_the_server_reads_as_the_same(name: str) -> None:
    claim = meant(SAMPLES[name])
    written = msgspec.json.encode(keywords_of(claim))

    assert wished_claim("net1", msgspec.json.decode(written, type=OneWish), None) == claim
    if name in ClaimKeywords.__optional_keys__:
        assert read_body(Allocate, msgspec.json.decode(written, type=AskedClaim), network="net1").claim() == claim
