"""Pools that are bound to a ledger: it decides, and the objects of the cluster follow (KP18, section 8)."""

from collections.abc import Iterator

import pytest

import tenure
from tenure.integrations.kubernetes.metal3.ledger import ledger_follower
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER_API_CLAIM,
    DELETE_FOR_MOVE,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
    OWN_ADDRESS,
    WISHED_ADDRESS,
    now_text,
)
from tenure.integrations.kubernetes.runtime.resource_types import uid_of, version_of
from tests.infrastructure.free_port import free_port
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.ledger.ledger_stage import (
    BLOCK,
    NETWORK,
    SECRET_NAME,
    SPACE,
    bound_pool,
    hanging_server,
    held,
    ledger_server,
    owner,
    planned_ledger,
    say_where,
    until_held,
)
from tests.integrations.kubernetes.metal3.old_clusters import V1BETA1, cluster, install_clusters
from tests.integrations.kubernetes.metal3.serving import Namespace, RefusedByServer, operator_in, until

GRACE_S = 2.0


@pytest.fixture
def url() -> Iterator[str]:
    """Give the URL of a ledger with ten addresses."""
    with planned_ledger() as found:
        yield found


@pytest.fixture
def ledger(url: str) -> Iterator[tenure.Ledger]:
    """Give the ledger, as its own people have it."""
    with tenure.open(url) as opened:
        yield opened


@pytest.fixture
def east(kube: KubeServer, unserved: Namespace, url: str) -> Iterator[Namespace]:
    """Give a served namespace that knows where the ledger is, without a pool."""
    say_where(unserved, url)
    with operator_in(kube, unserved.name, orphan_grace_s=GRACE_S):
        yield unserved


def condition(place: Namespace, pool: str = "p") -> tuple[str, str]:
    """Return reason and message of a pool's condition."""
    found = place.status(pool).get("conditions") or [{"reason": "", "message": ""}]
    return found[0]["reason"], found[0]["message"]


def test_kp18_two_clusters_and_a_script_share_a_network_and_the_ledger_names_each(
    kube: KubeServer, east: Namespace, url: str, ledger: tenure.Ledger
) -> None:
    with fresh_namespace(kube) as name, operator_in(kube, name):
        west = Namespace(kube, name)
        say_where(west, url)
        script = ledger.allocate(NETWORK, owner="instance/web-0")
        for place, realm in ((east, "east"), (west, "west")):
            bound_pool(place, realm)
            place.claim("c1")
            place.create(
                CLUSTER_API_CLAIM, "c2", {"poolRef": {"apiGroup": "ipam.metal3.io", "kind": "IPPool", "name": "p"}}
            )
        given = {owner("east", east, "c1"): east.ip("c1"), owner("west", west, "c1"): west.ip("c1")}
        until(lambda: len(held(ledger)) == 5)

        assert held(ledger).items() >= given.items()
        assert f"east:ipaddressclaim/{east.name}/c2" in held(ledger)
        assert len(set(held(ledger).values())) == 5
        assert script.address in held(ledger).values()
        explained = str(ledger.why(west.ip("c1")))
        assert f"held by west:ipclaim/{west.name}/c1 in network {NETWORK}" in explained
        assert f"by request IPClaim {west.name}/c1" in explained
        until(lambda: east.status()["addresses"]["free"] == 5)


def test_a_pool_without_entries_gives_what_the_network_has(east: Namespace, ledger: tenure.Ledger) -> None:
    ledger.reserve(NETWORK, "10.9.0.10-10.9.0.11", reason="printers")
    ledger.preallocate(NETWORK, owner("east", east, "chosen"), "10.9.0.15")
    bound_pool(east, "east")
    east.claim("c1")
    address = east.served("c1")["spec"]
    east.claim("chosen")

    assert (address["address"], address["prefix"], address["gateway"]) == ("10.9.0.12", 24, "10.9.0.1")
    assert address["dnsServers"] == ["10.9.0.53"]
    assert east.ip("chosen") == "10.9.0.15"
    until(lambda: east.status().get("ledger", {}).get("observedAt"))
    assert east.status()["ledger"]["network"] == NETWORK


def test_what_was_granted_from_a_range_that_is_gone_goes_back_and_another_address_is_picked(
    kube: KubeServer, unserved: Namespace, url: str, ledger: tenure.Ledger
) -> None:
    """A leader died between the grant and the reservation, and the pool was cut meanwhile; nobody was told of it.

    What the people of the ledger hold for a claim counts wherever it lies, and so does what a claim was told.
    """
    say_where(unserved, url)
    pool = bound_pool(unserved, "east", "10.9.0.10-10.9.0.14")
    claims = {name: unserved.claim(name) for name in ("picked", "chosen")}
    claims["told"] = unserved.claim("told", annotations={OWN_ADDRESS: "10.9.0.16"})
    ledger.allocate(NETWORK, owner=owner("east", unserved, "chosen"), address="10.9.0.17")
    for name, address in (("picked", "10.9.0.18"), ("told", "10.9.0.16")):
        labels = {"claim-uid": uid_of(claims[name]), "claim-created": "", "pool-uid": uid_of(pool), "picked": "true"}
        ledger.allocate(NETWORK, owner=owner("east", unserved, name), address=address, labels=labels)
    with operator_in(kube, unserved.name):
        given = {name: unserved.ip(name) for name in claims}

        assert given == {"picked": "10.9.0.10", "chosen": "10.9.0.17", "told": "10.9.0.16"}
        until_held(ledger, {owner("east", unserved, name): address for name, address in given.items()})
        until(lambda: unserved.status()["addresses"].get("outside") == 2)


def test_entries_of_the_pool_narrow_the_network(east: Namespace, ledger: tenure.Ledger) -> None:
    bound_pool(east, "east", "10.9.0.18-10.9.1.5")
    for name in ("c1", "c2", "c3"):
        east.claim(name)

    assert [east.ip(name) for name in ("c1", "c2")] == ["10.9.0.18", "10.9.0.19"]
    assert (
        int(east.ip("c3").rpartition(".")[2]) > 19
    )  # entries reach beyond the network's pools, not beyond its subnets


def test_a_claim_that_is_deleted_is_released_and_its_history_stays(east: Namespace, ledger: tenure.Ledger) -> None:
    bound_pool(east, "east")
    east.claim("c1")
    address = east.ip("c1")
    assert held(ledger) == {owner("east", east, "c1"): address}
    east.delete(IP_CLAIM, "c1")
    east.gone(IP_CLAIM, "c1")

    assert held(ledger) == {}
    (told,) = ledger.history(address)
    assert (str(told.owner), told.ended_by) == (owner("east", east, "c1"), "claim deleted")
    east.delete(IP_POOL, "p")
    east.gone(IP_POOL, "p")


def test_e9_what_is_deleted_for_a_move_stays_held(
    kube: KubeServer, unserved: Namespace, url: str, ledger: tenure.Ledger
) -> None:
    """Also when the pool stays for longer than the grace period, as after a move that was killed half way.

    And an operator that has not seen the claim go knows of it, though the one that has died right after that.
    """
    say_where(unserved, url)
    bound_pool(unserved, "east")
    with operator_in(kube, unserved.name, webhooks=False):  # it looks for orphans every 30 s
        unserved.claim("c1")
        address = unserved.ip("c1")
        delete_for_move(unserved, "c1", address)
        until(lambda: "moved-from" in ledger.holding(NETWORK, address).labels, within_s=5)
        unserved.claim("c2")
        assert unserved.ip("c2") != address
    with operator_in(kube, unserved.name, webhooks=False, orphan_grace_s=GRACE_S):
        with pytest.raises(AssertionError):
            until(lambda: owner("east", unserved, "c1") not in held(ledger), within_s=3 * GRACE_S)
        assert not unserved.status().get("orphans")


def delete_for_move(place: Namespace, claim: str, address: str) -> None:
    """Delete a claim and its address as clusterctl does."""
    for kind, name in ((IP_ADDRESS, f"p-{address.replace('.', '-')}"), (IP_CLAIM, claim)):
        place.patch(kind, name, {"metadata": {"annotations": {DELETE_FOR_MOVE: ""}}})
        place.delete(kind, name)
        place.patch(kind, name, {"metadata": {"finalizers": None}})
        place.gone(kind, name)


def test_e9_nothing_is_released_that_went_unseen_while_a_cluster_beside_it_is_paused(
    kube: KubeServer, unserved: Namespace, url: str, ledger: tenure.Ledger
) -> None:
    """A move was killed after it had deleted the claim, and no operator ran; the pool itself has no cluster.

    It is listed, and its grace begins when the cluster goes on: the move is repeated after that.
    """
    install_clusters(kube)
    say_where(unserved, url)
    cluster(unserved, "blue", paused=True)
    bound_pool(unserved, "east")
    with operator_in(kube, unserved.name, webhooks=False):
        unserved.claim("c1")
        address = unserved.ip("c1")
    delete_for_move(unserved, "c1", address)
    with operator_in(kube, unserved.name, webhooks=False, orphan_grace_s=GRACE_S):
        until(lambda: [each["address"] for each in unserved.status().get("orphans") or ()] == [address])
        with pytest.raises(AssertionError):
            until(lambda: not held(ledger), within_s=2 * GRACE_S)
        unserved.patch(V1BETA1, "blue", {"spec": {"paused": False}})
        with pytest.raises(AssertionError):
            until(lambda: not held(ledger), within_s=GRACE_S / 2)
        until_held(ledger, {})


def test_e9_a_claim_that_arrives_says_so_in_the_ledger_also_while_it_is_paused(
    kube: KubeServer, unserved: Namespace, url: str, ledger: tenure.Ledger
) -> None:
    """Its cluster is paused until a move is over, which may have been killed: the source must know of it."""
    install_clusters(kube)
    say_where(unserved, url)
    cluster(unserved, "blue", paused=True)
    pool = bound_pool(unserved, "east", clusterName="blue")
    labels = {"claim-uid": "there", "claim-created": "2020-01-01T00:00:00Z", "pool-uid": "there"}
    ledger.allocate(NETWORK, owner=owner("east", unserved, "c1"), address="10.9.0.17", labels=labels)
    claim = unserved.claim("c1")
    references = [
        {"apiVersion": "ipam.metal3.io/v1alpha1", "kind": kind, "name": name, "uid": uid_of(each)}
        for kind, name, each in (("IPPool", "p", pool), ("IPClaim", "c1", claim))
    ]
    unserved.address("p-10-9-0-17", "10.9.0.17", "c1", ownerReferences=references)
    with operator_in(kube, unserved.name, webhooks=False, orphan_grace_s=GRACE_S):
        until(lambda: ledger.holding(NETWORK, "10.9.0.17").labels["pool-uid"] == uid_of(pool))

    assert ledger.holding(NETWORK, "10.9.0.17").labels["claim-uid"] == uid_of(claim)
    for kind, name, before in ((IP_POOL, "p", pool), (IP_CLAIM, "c1", claim)):
        assert version_of(unserved.get(kind, name) or {}) == version_of(before)


def test_e9_a_mark_that_is_taken_off_is_taken_back_in_the_ledger(
    kube: KubeServer, unserved: Namespace, url: str, ledger: tenure.Ledger
) -> None:
    """A move was killed between the mark and the deletion: what becomes of the claim later on is no move."""
    say_where(unserved, url)
    bound_pool(unserved, "east")
    with operator_in(kube, unserved.name, webhooks=False, orphan_grace_s=GRACE_S):
        unserved.claim("c1")
        address = unserved.ip("c1")
        unserved.patch(IP_CLAIM, "c1", {"metadata": {"annotations": {DELETE_FOR_MOVE: ""}}})
        until(lambda: "moved-from" in ledger.holding(NETWORK, address).labels)
        unserved.patch(IP_CLAIM, "c1", {"metadata": {"annotations": {DELETE_FOR_MOVE: None}}})
        until(lambda: "moved-from" not in ledger.holding(NETWORK, address).labels)


def test_a_claim_that_vanishes_is_listed_as_an_orphan_and_released_after_a_while(
    kube: KubeServer, unserved: Namespace, url: str, ledger: tenure.Ledger
) -> None:
    """It goes by force while no operator runs; a claim that is made again under its name waits for that (KD8)."""
    say_where(unserved, url)
    bound_pool(unserved, "east")
    unserved.claim("c1")
    with operator_in(kube, unserved.name, webhooks=False):
        address = unserved.ip("c1")
    for kind, name in ((IP_CLAIM, "c1"), (IP_ADDRESS, f"p-{address.replace('.', '-')}")):
        unserved.patch(kind, name, {"metadata": {"finalizers": None}})
        unserved.delete(kind, name)
        unserved.gone(kind, name)
    unserved.claim("c1")
    with operator_in(kube, unserved.name, webhooks=False, orphan_grace_s=GRACE_S):
        assert "for another claim of this name" in unserved.message("c1", "Address")
        until(lambda: [each["address"] for each in unserved.status().get("orphans") or ()] == [address])
        assert unserved.ip("c1")
        until(lambda: not unserved.status().get("orphans"))

    (first, *_) = ledger.history(address)
    assert first.ended_by == "claim gone"


def test_claims_wait_with_a_reason_while_the_ledger_is_away_and_another_secret_counts_at_once(
    east: Namespace, url: str, ledger: tenure.Ledger
) -> None:
    """A token that is exchanged for another counts without a restart (KP18); what is held stays."""
    with ledger_server(url) as server:
        where = f"{server.url}?within_s=1"
        say_where(east, where, server.token)
        bound_pool(east, "east")
        east.claim("before")
        first = east.ip("before")
        say_where(east, where, "tnr_wrong")
        until(lambda: condition(east)[0] == "LedgerUnavailable")
        east.claim("waits")
        assert east.message("waits", "The ledger of IPPool p: ")
        say_where(east, where, server.token)
        assert east.ip("waits") != first
        server.kill()
        until(lambda: condition(east)[0] == "LedgerUnavailable")
        east.claim("later")
        assert east.message("later", "The ledger of IPPool p: ")
        east.delete(IP_CLAIM, "before")
        until(lambda: ((east.get(IP_CLAIM, "before") or {}).get("status") or {}).get("errorMessage"))
        assert owner("east", east, "before") in held(ledger)
        server.start()
        east.gone(IP_CLAIM, "before")
        assert east.ip("later") != east.ip("waits")
        assert owner("east", east, "before") not in held(ledger)
        until(lambda: condition(east)[0] == "Serving")


def test_a_ledger_that_was_not_read_yet_is_no_trouble(kube: KubeServer, unserved: Namespace, url: str) -> None:
    """Neither for a new pool nor under a new leader: claims that wait cost no writes then (KP12)."""
    place = unserved
    say_where(place, url)
    with operator_in(kube, place.name):
        pool = bound_pool(place, "east", "10.9.0.10-10.9.0.10")
        place.claim("c1")
        place.ip("c1")
        waits = place.claim("waits")
        place.message("waits", "Exhausted IP Pools")
        until(lambda: condition(place)[0] == "Exhausted")
        observed = place.status()["ledger"]["observedAt"]
    until(lambda: now_text() != observed)  # it is written in whole seconds, and a new leader may need less
    with operator_in(kube, place.name):
        until(lambda: place.status()["ledger"]["observedAt"] != observed)
        place.delete(IP_CLAIM, "c1")
        place.ip("waits")
        said = {(each["reason"], each["note"]) for object in (pool, waits) for each in place.events(object)}

    assert {note for reason, note in said if reason != "Served"} == {"Exhausted IP Pools"}


def test_a_secret_that_leads_to_a_server_that_hangs_is_mended_at_once(east: Namespace, url: str) -> None:
    """The reading of a network may take two minutes; nobody waits so long for what the Secret names no more (KP18)."""
    with hanging_server() as (port, _):
        say_where(east, f"http://127.0.0.1:{port}")
        bound_pool(east, "east")
        east.claim("c1")
        east.message("c1", "The ledger of IPPool p: ")
        say_where(east, url)

        until(lambda: east.status().get("ledger", {}).get("observedAt"), within_s=8)
        assert east.ip("c1") == "10.9.0.10"


def test_a_ledger_that_hung_is_read_as_soon_as_it_answers(
    east: Namespace, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_follower, "ANSWERS_WITHIN_S", 1.0)
    with hanging_server() as (port, end), ledger_server(url) as server:
        say_where(east, f"http://127.0.0.1:{port}", server.token)
        bound_pool(east, "east")
        east.claim("c1")
        until(lambda: "did not answer" in east.message("c1", "The ledger of IPPool p: "))
        end()
        server.kill()
        server.port = port
        server.start()

        assert east.ip("c1") == "10.9.0.10"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:///ledger.db", "no URL of a PostgreSQL or a server"),
        ("http://127.0.0.1:{port}?within_s=1", ""),
        ("", "has no url"),
    ],
)
def test_a_secret_that_leads_nowhere_says_so(east: Namespace, url: str, said: str) -> None:
    say_where(east, url.format(port=free_port()))
    bound_pool(east, "east")
    east.claim("c1")

    assert said in east.message("c1", "The ledger of IPPool p: ")
    assert not east.all(IP_ADDRESS)


def test_a_pool_that_names_no_server_says_so_and_not_that_the_secret_does(east: Namespace) -> None:
    bound = {"network": NETWORK, "realm": "east", "secretName": SECRET_NAME, "server": "ftp://ledger.example"}
    east.create(IP_POOL, "p", {"namePrefix": "p", "tenure": {"ledger": bound}})
    east.claim("c1")

    east.message("c1", "The ledger of IPPool p: spec.tenure.ledger.server is no URL of a PostgreSQL or a server")


def test_what_others_release_in_the_ledger_serves_claims_that_wait(east: Namespace, ledger: tenure.Ledger) -> None:
    for number in range(10):
        ledger.allocate(NETWORK, owner=f"instance/web-{number}")
    bound_pool(east, "east")
    east.claim("c1")
    east.claim("asks", annotations={WISHED_ADDRESS: "10.9.0.13"})

    assert east.message("c1", "E") == "Exhausted IP Pools"
    assert east.message("asks", "R") == "Requested IP not available"
    ledger.release_owner("instance/web-3")
    assert east.ip("asks") == "10.9.0.13"
    ledger.release_owner("instance/web-5")
    assert east.ip("c1") == "10.9.0.15"


def test_what_is_taken_away_in_the_ledger_is_held_again_or_reported(east: Namespace, ledger: tenure.Ledger) -> None:
    """A claim is never given another address; whoever has its address in the ledger keeps it, and the pool says so."""
    bound_pool(east, "east")
    east.claim("c1")
    address = east.ip("c1")
    ledger.release(NETWORK, address, owner=owner("east", east, "c1"))
    until_held(ledger, {owner("east", east, "c1"): address})
    ledger.transfer(NETWORK, address, owner=owner("east", east, "c1"), to="instance/thief")
    until(lambda: condition(east)[0] == "LedgerConflict")

    assert f"{address} is held by instance/thief" in condition(east)[1]
    assert east.ip("c1") == address
    ledger.release_owner("instance/thief")
    until_held(ledger, {owner("east", east, "c1"): address})
    until(lambda: condition(east)[0] == "Serving")


def test_two_clusters_of_one_realm_never_share_an_address(east: Namespace, ledger: tenure.Ledger) -> None:
    """A realm that two clusters have by mistake: the second claim of a name waits, and says why."""
    bound_pool(east, "east")
    east.claim("c1")
    first = east.ip("c1")
    holding = ledger.holding(NETWORK, first)
    ledger.modify_holding(NETWORK, first, owner=holding.owner, labels={"claim-uid": "another", "pool-uid": "another"})
    east.claim("c2")
    east.ip("c2")
    ledger.allocate(NETWORK, owner=owner("east", east, "c3"), labels={"claim-uid": "another", "pool-uid": "another"})
    until(lambda: len(held(ledger)) == 3)
    east.claim("c3")

    assert "another cluster of this realm" in east.message("c3", "Address")
    assert held(ledger)[owner("east", east, "c1")] == first


def test_a_bound_pool_keeps_its_network_and_realm_while_it_has_addresses(east: Namespace) -> None:
    pool = bound_pool(east, "east")
    east.claim("c1")
    east.served("c1")
    for name in ("network", "realm"):
        with pytest.raises(RefusedByServer, match=f"spec.tenure.ledger.{name}: .*cannot be modified while"):
            east.patch(IP_POOL, "p", {"spec": {"tenure": {"ledger": {name: "other"}}}})
    with pytest.raises(RefusedByServer, match=r"spec.tenure.ledger.realm: .*must begin with a letter"):
        bound_pool(east, "-x", name="q")
    with pytest.raises(RefusedByServer, match=r"spec.tenure.external: .*cannot be used with"):
        bound_pool(east, "east", name="q", tenure={"ledger": pool["spec"]["tenure"]["ledger"], "external": True})


def test_a_new_leader_gives_a_claim_what_the_ledger_has_for_it(
    kube: KubeServer, unserved: Namespace, url: str, ledger: tenure.Ledger
) -> None:
    """As after a leader that died between the ledger's answer and the object."""
    say_where(unserved, url)
    pool = bound_pool(unserved, "east")
    claim = unserved.claim("c1", finalizers=["ipclaim.ipam.metal3.io"])
    labels = {"claim-uid": uid_of(claim), "pool-uid": uid_of(pool)}
    ledger.allocate(NETWORK, owner=owner("east", unserved, "c1"), address="10.9.0.17", labels=labels)
    with operator_in(kube, unserved.name):
        assert unserved.ip("c1") == "10.9.0.17"
        assert held(ledger) == {owner("east", unserved, "c1"): "10.9.0.17"}


def test_what_other_networks_of_the_space_hold_is_known_and_two_pools_share_a_network(
    east: Namespace, ledger: tenure.Ledger
) -> None:
    """One plan for several doors is one space: their networks lie over each other, and an address has one holder."""
    ledger.add_network("vms", space=SPACE)
    ledger.add_subnet("vms", BLOCK)
    ledger.reserve("vms", "10.9.0.12")
    for address in ("10.9.0.10", "10.9.0.11", "10.9.0.14"):
        ledger.allocate("vms", owner=f"instance/{address}", address=address)
    bound_pool(east, "east")
    bound_pool(east, "east", "10.9.0.12-10.9.0.16", name="q")
    longest = "c" * 253
    east.claim(longest)
    east.claim("c2", "q")

    assert {east.ip(longest), east.ip("c2")} == {"10.9.0.13", "10.9.0.15"}
    until(lambda: east.status()["addresses"]["free"] == 4)
    assert "network vms" in east.message(wishes(east, "10.9.0.10"), "Address")
    ledger.release_owner("instance/10.9.0.10")
    assert east.ip("wishes") == "10.9.0.10"


def wishes(place: Namespace, address: str) -> str:
    """Create a claim that brings an address along, and return its name."""
    place.claim("wishes", annotations={OWN_ADDRESS: address})
    return "wishes"


def test_ipv6_what_cools_off_and_a_network_that_is_retired(east: Namespace, ledger: tenure.Ledger) -> None:
    ledger.add_network("six")
    ledger.add_subnet("six", "2001:db8:9::/64", gateway="2001:db8:9::1")
    ledger.add_pool("six", "2001:db8:9::10", cooling_s=2)
    bound_pool(east, "east", network="six")
    east.claim("c1")
    given = east.served("c1")

    assert (given["spec"]["address"], given["spec"]["prefix"]) == ("2001:db8:9::10", 64)
    east.delete(IP_CLAIM, "c1")
    east.gone(IP_CLAIM, "c1")
    east.claim("c1")
    assert east.message("c1", "E") == "Exhausted IP Pools"
    assert [each.state for each in ledger.holdings("six")] == ["cooling"]
    assert east.ip("c1") == "2001:db8:9::10"
    ledger.retire_network("six")
    east.claim("c2")
    assert east.message("c2", "E") == "Exhausted IP Pools"
    east.delete(IP_CLAIM, "c1")
    east.gone(IP_CLAIM, "c1")
    assert [each.state for each in ledger.holdings("six")] == ["cooling"]


def test_a_token_says_what_it_may_not_and_one_for_the_network_alone_is_enough(
    east: Namespace, url: str, ledger: tenure.Ledger
) -> None:
    """A token that may only read gives nobody an address, and says so without end; what neighbours hold is refused."""
    ledger.add_network("vms", space=SPACE)
    ledger.add_subnet("vms", BLOCK)
    for number in range(10, 15):
        ledger.allocate("vms", owner=f"instance/{number}", address=f"10.9.0.{number}")
    with ledger_server(url) as server:
        say_where(east, f"{server.url}?within_s=3", server.token_for("reader", "read"))
        bound_pool(east, "east")
        east.claim("c1")
        until(lambda: "needs the scope" in east.message("c1", "The ledger of IPPool p: "))  # at first: not read yet
        until(lambda: condition(east)[0] == "LedgerUnavailable")
        with pytest.raises(AssertionError):
            until(lambda: condition(east)[0] != "LedgerUnavailable", within_s=3.0)
        say_where(east, f"{server.url}?within_s=3", server.token_for("operator", f"allocate:{NETWORK}"))

        assert east.ip("c1") == "10.9.0.15"
        assert held(ledger) == {owner("east", east, "c1"): "10.9.0.15"}


def test_a_secret_that_names_another_ledger_has_everything_held_there(east: Namespace, ledger: tenure.Ledger) -> None:
    """As after a restore into another place; there the numbers of the log are higher than those that were read."""
    bound_pool(east, "east")
    east.claim("c1")
    address = east.ip("c1")
    with planned_ledger() as url, tenure.open(url) as other:
        for _ in range(30):
            other.release(NETWORK, other.allocate(NETWORK, owner="a/1").address, owner="a/1")
        say_where(east, url)

        until_held(other, {owner("east", east, "c1"): address})


def test_claims_and_pools_wait_for_a_ledger_that_is_away_and_go_when_they_are_unbound(
    east: Namespace, url: str, ledger: tenure.Ledger
) -> None:
    bound_pool(east, "east")
    east.claim("c1")
    address = east.ip("c1")
    until(lambda: east.status().get("ledger", {}).get("observedAt"))
    say_where(east, f"http://127.0.0.1:{free_port()}?within_s=1", "tnr_none")
    until(lambda: condition(east)[0] == "LedgerUnavailable")
    east.delete(IP_POOL, "p")
    east.delete(IP_CLAIM, "c1")
    assert east.message("c1", "The ledger of IPPool p: ")
    until(lambda: condition(east)[0] == "Deleting" and "; the ledger: " in condition(east)[1])
    assert not east.all(IP_ADDRESS)

    assert held(ledger) == {owner("east", east, "c1"): address}
    east.patch(IP_POOL, "p", {"spec": {"tenure": {"ledger": None}}})
    for kind, name in ((IP_CLAIM, "c1"), (IP_POOL, "p")):
        east.gone(kind, name)
