"""Taking over from the in-cluster provider's real manager, and back: no address changes, and never two write (KD12)."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER_API_ADDRESS,
    CLUSTER_API_CLAIM,
    GLOBAL_POOL,
    IN_CLUSTER_POOL,
    IP_POOL,
    PREFIX_POOL,
    text,
)
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, key_of, uid_of
from tests.infrastructure.kube import fresh_namespace, private_kube
from tests.integrations.kubernetes.metal3.in_cluster.in_cluster_stage import (
    PoolUser,
    in_cluster_manager,
    install_in_cluster,
    our_definitions,
    their_definitions,
)
from tests.integrations.kubernetes.metal3.serving import Namespace, OperatorThread, settings_for, until

pytestmark = pytest.mark.proof

CLAIMS, FEWER = 200, 40
WITHIN_S = 180.0
CONTROLLERS = ("metal3", "capi", "in-cluster")


@contextmanager
def user_of(kinds: Sequence[dict[str, Any]]) -> Iterator[PoolUser]:
    """Give a user of a server with definitions of the provider's kinds that no manager serves yet."""
    with private_kube() as server:
        install_in_cluster(server, kinds)
        with fresh_namespace(server) as name:
            yield PoolUser(Namespace(server, name))


@pytest.fixture(params=[their_definitions, our_definitions])
def user(request: pytest.FixtureRequest) -> Iterator[PoolUser]:
    """Give a user of the provider's own definitions, or of ours."""
    with user_of(request.param()) as found:
        yield found


def given(user: PoolUser) -> dict[str, tuple[str, str]]:
    """Return the address and the identity of its object, for each claim whose status names it."""
    found = {key_of(each)[1]: each for each in user.space.all(CLUSTER_API_ADDRESS)}
    named = {
        key_of(claim)[1]: found.get(text(claim, "status", "addressRef", "name"))
        for claim in user.space.all(CLUSTER_API_CLAIM)
    }
    return {name: (text(each, "spec", "address"), uid_of(each)) for name, each in named.items() if each is not None}


def all_served(user: PoolUser, names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Wait until claims are served; no address is given twice."""

    def look() -> dict[str, tuple[str, str]] | None:
        found = given(user)
        return found if found.keys() >= set(names) else None

    found = until(look, WITHIN_S)
    texts = [text(each, "spec", "address") for each in user.space.all(CLUSTER_API_ADDRESS)]
    assert len(texts) == len(set(texts))
    return found


def gone(user: PoolUser, name: str) -> None:
    """Wait until a claim is gone."""
    until(lambda: user.space.get(CLUSTER_API_CLAIM, name) is None, WITHIN_S)


def work(user: PoolUser, leg: str, going: Sequence[str], type: ResourceType) -> None:
    """Let whoever has taken over do everything: keep what is there, serve new claims, release others."""
    before = given(user)
    for name in going:
        user.space.delete(CLUSTER_API_CLAIM, name)
    new = [f"{leg}-{number}" for number in range(10)]
    for name in new:
        user.claim(name, "p", type)
    kept = before.keys() - set(going)
    after = all_served(user, [*kept, *new])
    for name in going:
        gone(user, name)

    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    until(lambda: user.counts("p", type).get("used") == len(kept) + len(new), WITHIN_S)
    assert len(user.space.all(CLUSTER_API_ADDRESS)) == len(kept) + len(new)


ADDRESSES = {
    "addresses": ["10.0.0.0/22"], "prefix": 22, "gateway": "10.0.0.1", "excludedAddresses": ["10.0.0.50-10.0.0.59"],
}  # fmt: skip
PREFIXES = {"prefixes": ["fd00::/54"], "allocationPrefixLength": 64, "excludedPrefixes": ["fd00:0:0:50::/60"]}


def test_25_the_provider_gives_200_addresses_ours_takes_over_and_the_provider_again(user: PoolUser) -> None:
    hand_over(user, IN_CLUSTER_POOL, ADDRESSES, CLAIMS)


@pytest.mark.parametrize(
    ("type", "spec"), [(GLOBAL_POOL, ADDRESSES), (PREFIX_POOL, PREFIXES)], ids=["global", "prefixes"]
)
def test_25_so_it_is_with_pools_of_the_whole_cluster_and_with_prefixes(type: ResourceType, spec: Object) -> None:
    with user_of(their_definitions()) as user:
        hand_over(user, type, spec, FEWER)


def hand_over(user: PoolUser, type: ResourceType, spec: Object, claims: int) -> None:
    """Let the provider give addresses of a pool, ours take over, the provider again, and ours once more."""
    server = user.space.server
    names = [f"c{number}" for number in range(claims)]
    with in_cluster_manager(server):
        user.create(type, "p", spec)
        for name in names:
            user.claim(name, "p", type)
        first = all_served(user, names)
    user.space.delete(CLUSTER_API_CLAIM, "c0")  # while nobody is there

    ours = OperatorThread(server, settings_for(server, controllers=CONTROLLERS), webhooks=True)
    ours.start()
    gone(user, "c0")
    work(user, "ours", ["c1", "c2", "c3"], type)
    ours.stop()
    user.space.delete(CLUSTER_API_CLAIM, "ours-0")

    with in_cluster_manager(server):
        gone(user, "ours-0")
        work(user, "theirs", ["c4", "ours-1"], type)

    ours = OperatorThread(server, settings_for(server, controllers=CONTROLLERS), webhooks=True)
    ours.start()
    work(user, "again", ["c5", "ours-2", "theirs-0"], type)
    kept = given(user)
    assert all(kept[name] == first[name] for name in first.keys() & kept.keys())
    for name in kept:
        user.space.delete(CLUSTER_API_CLAIM, name)
    until(lambda: not user.space.all(CLUSTER_API_CLAIM) and not user.space.all(CLUSTER_API_ADDRESS), WITHIN_S)
    user.space.delete(type, "p")
    until(lambda: not user.space.all(type), WITHIN_S)
    ours.stop()


def test_kd12_beside_the_providers_manager_ours_leaves_its_kinds_alone_and_serves_the_others(user: PoolUser) -> None:
    """The manager is noticed by what it writes; where ours was faster, it writes nothing, so claims go on coming."""
    server = user.space.server
    user.pool("p", "10.0.0.10-10.0.0.250")
    user.space.pool("m", "10.1.0.1-10.1.0.9")
    ours = OperatorThread(server, settings_for(server, controllers=CONTROLLERS))
    controller = ours.start()
    claims: list[str] = []

    def noticed() -> str | None:
        claims.append(f"c{len(claims)}")
        user.claim(claims[-1], "p")
        time.sleep(0.5)
        return controller.not_ready().get("another controller of in-cluster pools")

    with in_cluster_manager(server):
        reason = until(noticed, WITHIN_S)
        claims.append("last")
        user.claim("last", "p")
        all_served(user, claims)
        user.space.claim("m1", "m")

        assert "the in-cluster provider's manager wrote the status of InClusterIPPool" in reason
        assert user.space.ip("m1") == "10.1.0.1"
        assert user.space.get(IP_POOL, "m") is not None
        assert len({address for address, _ in given(user).values()}) == len(claims)
    ours.stop()
