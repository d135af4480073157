"""Taking over from Metal3's real manager, and back: no address changes, nothing is stuck (KS10)."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of, uid_of
from tenure.integrations.kubernetes.shipped_manifests import documents_of
from tests.infrastructure.kube import KubeServer, fresh_namespace, private_kube
from tests.integrations.kubernetes.go_manager import UNTHROTTLED
from tests.integrations.kubernetes.metal3.metal3_manager import (
    cluster_api_definitions,
    install_beside,
    metal3_manager,
    own_definitions,
)
from tests.integrations.kubernetes.metal3.serving import Namespace, operator_in, until

pytestmark = pytest.mark.proof

CLAIMS = 200
WITHIN_S = 120.0


def our_definitions() -> list[dict[str, Any]]:
    return documents_of(["crds"])


@pytest.fixture(params=[own_definitions, our_definitions])
def place(request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """Give a namespace of a server with Metal3's definitions, or with ours, that no manager serves yet."""
    with private_kube() as server:
        install_beside(server, [*request.param(), *cluster_api_definitions()])
        with fresh_namespace(server) as name:
            yield Namespace(server, name)


class Given(NamedTuple):
    """What a claim has: the text of its address, and the identity of the object."""

    text: str
    uid: str


def given(place: Namespace) -> dict[str, Given]:
    """Return what each claim has whose status says so and whose address says so, too."""
    addresses = {key_of(each)[1]: each for each in place.all(IP_ADDRESS)}
    found = {}
    for claim in place.all(IP_CLAIM):
        name = ((claim.get("status") or {}).get("address") or {}).get("name")
        address = addresses.get(str(name))
        if address is not None and address["spec"]["claim"]["name"] == key_of(claim)[1]:
            found[key_of(claim)[1]] = Given(address["spec"]["address"], uid_of(address))
    return found


def all_served(place: Namespace, names: Sequence[str]) -> dict[str, Given]:
    """Wait until claims are served and the pool says so; no address is given twice."""

    def look() -> dict[str, Given] | None:
        found = given(place)
        return found if found.keys() >= set(names) else None

    found = until(look, WITHIN_S)
    until(lambda: place.indexes().items() >= {name: found[name].text for name in names}.items(), WITHIN_S)
    texts = [each["spec"]["address"] for each in place.all(IP_ADDRESS)]
    assert len(texts) == len(set(texts))
    return found


def work(place: Namespace, leg: str, going: Sequence[str]) -> None:
    """Let a manager that has taken over do everything: it keeps what is there, serves new claims, releases others."""
    before = given(place)
    for name in going:
        place.delete(IP_CLAIM, name)
    new = [f"{leg}-{number}" for number in range(10)]
    for name in new:
        place.claim(name)
    kept = before.keys() - set(going)
    after = all_served(place, [*kept, *new])
    for name in going:
        place.gone(IP_CLAIM, name)

    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert len(place.all(IP_ADDRESS)) == len(kept) + len(new)
    until(lambda: set(place.indexes()) == {*kept, *new}, WITHIN_S)


def unsettled(place: Namespace) -> list[Object]:
    """Return the metadata of objects that wait to be deleted."""
    found = (each["metadata"] for kind in (IP_POOL, IP_CLAIM, IP_ADDRESS) for each in place.all(kind))
    return [each for each in found if each.get("deletionTimestamp")]


def test_ks10_metal3_gives_200_addresses_ours_takes_over_and_metal3_again(place: Namespace) -> None:
    server: KubeServer = place.server
    place.pool("p", "10.0.0.1-10.0.0.250", "10.0.2.0/24", preAllocations={"c7": "10.0.0.200"}, gateway="10.0.0.9")
    names = [f"c{number}" for number in range(CLAIMS)]
    with metal3_manager(server, *UNTHROTTLED):
        for name in names:
            place.claim(name, labels={"rack": "7"})
        first = all_served(place, names)
    assert first["c7"].text == "10.0.0.200"
    place.delete(IP_CLAIM, "c0")  # while nobody is there

    with operator_in(server, place.name):
        place.gone(IP_CLAIM, "c0")
        work(place, "ours", ["c1", "c2", "c3"])
    place.delete(IP_CLAIM, "c4")
    place.delete(IP_CLAIM, "ours-0")

    with metal3_manager(server, *UNTHROTTLED):
        for name in ("c4", "ours-0"):
            place.gone(IP_CLAIM, name)
        work(place, "theirs", ["c5", "c6", "ours-1", "ours-2"])

    with operator_in(server, place.name):
        work(place, "again", ["c8", "ours-3", "theirs-0"])
        kept = given(place)
        assert all(kept[name] == first[name] for name in first.keys() & kept.keys())
        assert unsettled(place) == []
        place.delete(IP_POOL, "p")
        for name in kept:
            place.delete(IP_CLAIM, name)
        until(lambda: not any(place.all(kind) for kind in (IP_CLAIM, IP_ADDRESS, IP_POOL)), WITHIN_S)


def test_ks10_what_ours_made_goes_under_metal3(place: Namespace) -> None:
    """Also a claim that waited under Metal3 in a full pool: ours serves it, and Metal3 lets it go (C17)."""
    server = place.server
    place.pool("p", "10.0.0.1-10.0.0.2")
    with metal3_manager(server):
        for name in ("c1", "c2"):
            place.claim(name)
            place.served(name)
        place.claim("c3")
        assert place.message("c3", "E") == "Exhausted IP Pools"
    with operator_in(server, place.name):
        place.delete(IP_CLAIM, "c1")
        assert place.ip("c3") == "10.0.0.1"
        until(lambda: set(place.indexes()) == {"c2", "c3"})
    with metal3_manager(server):
        place.delete(IP_POOL, "p")
        for name in ("c2", "c3"):
            place.delete(IP_CLAIM, name)
        for kind, name in ((IP_CLAIM, "c2"), (IP_CLAIM, "c3"), (IP_POOL, "p")):
            place.gone(kind, name)
        assert not place.all(IP_ADDRESS)
