"""Which address a claim gets, and what the objects say of it: cases C of the conformance list."""

import contextlib
import random
import time

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    ADDRESS_FINALIZER,
    CLAIM_FINALIZER,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
    MADE_FOR,
    OWN_ADDRESS,
    POOL_FINALIZER,
    annotations_of,
)
from tenure.integrations.kubernetes.runtime.resource_types import uid_of
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.serving import Namespace, RefusedByServer, operator_in, until
from tests.scale import runs


def test_c1_c2_a_claim_gets_the_first_address_and_the_objects_say_so(served: Namespace) -> None:
    pool = served.pool("p", "10.0.0.10-10.0.0.12", prefix=24, gateway="10.0.0.1", dnsServers=["10.0.0.53"])
    served.claim("c1", labels={"rack": "7"})
    address = served.served("c1")
    claim = served.get(IP_CLAIM, "c1")
    assert claim is not None

    assert address["metadata"]["name"] == "p-10-0-0-10"
    assert address["spec"] == {
        "address": "10.0.0.10", "pool": {"name": "p", "namespace": served.name},
        "claim": {"name": "c1", "namespace": served.name},
        "prefix": 24, "gateway": "10.0.0.1", "dnsServers": ["10.0.0.53"],
    }  # fmt: skip
    owners = address["metadata"]["ownerReferences"]
    assert [(each["kind"], each["name"], each["uid"]) for each in owners] == [
        ("IPPool", "p", uid_of(pool)),
        ("IPClaim", "c1", uid_of(claim)),
    ]
    assert not any(each.get("controller") or each.get("blockOwnerDeletion") for each in owners)
    assert address["metadata"]["labels"] == {"rack": "7"}
    assert address["metadata"]["finalizers"] == [ADDRESS_FINALIZER]
    assert address["metadata"]["annotations"] == {MADE_FOR: f"{served.name}/c1"}
    assert claim["status"]["address"] == {"name": "p-10-0-0-10", "namespace": served.name}
    assert "errorMessage" not in claim["status"]
    assert claim["metadata"]["finalizers"] == [CLAIM_FINALIZER]
    until(lambda: annotations_of(served.get(IP_CLAIM, "c1") or claim).get(OWN_ADDRESS) == "10.0.0.10")  # a bit later
    until(lambda: served.indexes() == {"c1": "10.0.0.10"})
    stored = served.get(IP_POOL, "p")
    assert stored is not None
    assert stored["metadata"]["finalizers"] == [POOL_FINALIZER]
    assert stored["status"]["lastUpdated"]
    until(lambda: not served.status().get("reserving"))
    counts = {"total": 3, "free": 2, "used": 1, "kept": 0, "usedPercent": 33, "outside": 0, "waiting": 0}
    assert served.status()["addresses"] == counts
    assert served.status()["conditions"][0]["reason"] == "Serving"


def test_c4_random_gives_different_addresses_of_the_range(served: Namespace) -> None:
    served.pool("p", "10.0.0.1-10.0.0.254", allocationStrategy="random")
    for number in range(50):
        served.claim(f"c{number}")
    given = [served.ip(f"c{number}") for number in range(50)]

    assert len(set(given)) == 50
    assert all(each.startswith("10.0.0.") for each in given)
    assert given != sorted(given, key=lambda each: int(each.rsplit(".", 1)[1]))


@pytest.mark.parametrize("strategy", ["sequential", "random"])
def test_c5_the_second_entry_is_used_when_the_first_is_full(served: Namespace, strategy: str) -> None:
    served.pool("p", "10.0.9.9-10.0.9.9", "10.0.0.1-10.0.0.9", allocationStrategy=strategy)
    served.claim("c1")
    assert served.ip("c1") == "10.0.9.9"
    served.claim("c2")
    assert served.ip("c2").startswith("10.0.0.")


def test_c7_a_subnet_alone_begins_behind_its_address_and_keeps_the_last_one_back(served: Namespace) -> None:
    served.pool("p", "192.168.1.1/30", gateway="192.168.1.2")
    served.pool("q", "192.168.1.1/29")
    served.claim("c1")
    served.claim("d1", "q")
    assert served.message("c1", "Exh") == "Exhausted IP Pools"
    assert served.ip("d1") == "192.168.1.2"


def test_kd9_reserved_addresses_are_given_where_the_pool_says_so(served: Namespace) -> None:
    served.pool("p", "192.168.1.1/30", gateway="192.168.1.2", tenure={"reservedAddresses": "give"})
    served.claim("c1")
    served.claim("c2")
    assert {served.ip("c1"), served.ip("c2")} == {"192.168.1.2", "192.168.1.3"}


def test_c8_c16_a_start_in_a_subnet_runs_to_its_last_address_and_then_the_pool_is_full(served: Namespace) -> None:
    entry = {"start": "10.0.0.250", "subnet": "10.0.0.0/24"}
    served.create(IP_POOL, "p", {"namePrefix": "p", "pools": [entry]})
    for number in range(7):
        served.claim(f"c{number}")
        if number < 6:
            assert served.ip(f"c{number}") == f"10.0.0.{250 + number}"
    assert served.message("c6", "E") == "Exhausted IP Pools"
    assert served.served("c0")["spec"]["prefix"] == 24


def test_c9_c10_a_pre_allocation_is_kept_for_its_claim(served: Namespace) -> None:
    served.pool("p", "10.0.0.10-10.0.0.13", preAllocations={"c9": "10.0.0.10", "nobody": "10.0.0.12"})
    served.claim("c1")
    assert served.ip("c1") == "10.0.0.11"
    served.claim("c9")
    assert served.ip("c9") == "10.0.0.10"
    served.claim("c2")
    assert served.ip("c2") == "10.0.0.13"
    until(lambda: served.indexes() == {"c1": "10.0.0.11", "c9": "10.0.0.10", "c2": "10.0.0.13"})


def test_c12_c13_c14_c15_an_address_can_be_asked_for(served: Namespace) -> None:
    served.pool("p", "10.0.0.1-10.0.0.99", gateway="10.0.0.1", preAllocations={"both": "10.0.0.6", "x": "10.0.0.7"})
    served.claim("c12", annotations={"ipAddress": "10.0.0.77"})
    assert served.ip("c12") == "10.0.0.77"
    served.create(IP_CLAIM, "field", {"pool": {"name": "p"}, "tenure": {"address": "10.0.0.78"}})
    assert served.ip("field") == "10.0.0.78"

    for name, wish in {"taken": "10.0.0.77", "kept": "10.0.0.7", "gateway": "10.0.0.1"}.items():
        served.claim(name, annotations={"ipAddress": wish})
        assert served.message(name, "R") == "Requested IP not available"
    served.create(IP_CLAIM, "wants-field", {"pool": {"name": "p"}, "tenure": {"address": "10.0.0.77"}})
    assert served.message("wants-field", "R") == "Requested IP 10.0.0.77 is held by IPClaim c12"
    served.claim("c14", annotations={"ipAddress": "10.0.7.7"})
    assert served.message("c14", "R") == "Requested IP 10.0.7.7 is out of range of IPPool p"
    served.claim("both", annotations={"ipAddress": "10.0.0.5"})
    assert served.message("both", "P") == "PreAllocation and requested ip address are conflicting"

    served.delete(IP_CLAIM, "c12")
    assert served.ip("taken") == "10.0.0.77"


def test_c17_a_full_pool_serves_in_the_order_of_arrival_as_soon_as_there_is_room(served: Namespace) -> None:
    """Nobody touches the claims; claims for one address hold up nobody (KD10)."""
    served.pool("p", "10.0.0.1-10.0.0.2")
    for name in ("c1", "c2"):
        served.claim(name)
        served.served(name)
    served.claim("first", annotations={"ipAddress": "10.0.0.2"})
    time.sleep(1.1)  # the time of creation counts seconds
    served.claim("z-second")
    time.sleep(1.1)
    served.claim("a-third")
    for name in ("z-second", "a-third"):
        assert served.message(name, "E") == "Exhausted IP Pools"
    until(lambda: served.status()["addresses"]["waiting"] == 3)
    assert served.status()["conditions"][0]["reason"] == "Exhausted"

    served.delete(IP_CLAIM, "c1")
    assert served.ip("z-second") == "10.0.0.1"
    assert "errorMessage" not in (served.get(IP_CLAIM, "z-second") or {})["status"]
    pools = [{"start": "10.0.0.1", "end": "10.0.0.3"}]
    served.patch(IP_POOL, "p", {"spec": {"pools": pools}})
    assert served.ip("a-third") == "10.0.0.3"
    assert served.message("first", "R") == "Requested IP not available"


def test_c20_c21_ipv6_addresses_and_their_names(served: Namespace) -> None:
    served.pool("p", "fd00::ff-fd00::1ff")
    served.claim("c1")
    assert served.served("c1")["metadata"]["name"] == "p-fd00--ff"
    served.claim("c2")
    assert served.served("c2")["metadata"]["name"] == "p-fd00--100"
    served.pool("q", "2001:db8::-2001:db8::1")
    served.claim("d1", "q")
    assert served.served("d1")["metadata"]["name"] == "q-2001-db8"


def test_c28_a_claim_for_a_pool_of_another_namespace_is_not_served(kube: KubeServer, served: Namespace) -> None:
    served.pool("p", "10.0.0.1-10.0.0.9")
    with fresh_namespace(kube) as other:
        served.create(IP_CLAIM, "c1", {"pool": {"name": "p", "namespace": other}})
        assert "another namespace" in served.message("c1", "IPPool p")


def test_c30_a_claim_waits_for_its_pool(served: Namespace) -> None:
    claim = served.claim("c1")
    assert claim["metadata"]["finalizers"] == [CLAIM_FINALIZER]
    said = served.message("c1", "IPPool")
    assert said == "IPPool p does not exist; the claim is served as soon as it does"
    (event,) = until(lambda: served.events(claim))
    assert (event["reason"], event["note"], event["type"]) == ("NotServed", said, "Warning")
    served.pool("p", "10.0.0.1-10.0.0.9")
    assert served.ip("c1") == "10.0.0.1"
    assert "errorMessage" not in (served.get(IP_CLAIM, "c1") or {})["status"]


def test_c32_an_address_made_by_hand_is_never_given_to_another(served: Namespace) -> None:
    """It counts by what it says, not by its name (KS3), and shows in the status within a second."""
    served.pool("p", "10.0.0.1-10.0.0.2")
    served.address("any-name", "10.0.0.1", "nobody")
    until(lambda: served.status().get("foreign"), 1.0)
    assert served.status()["foreign"] == [{"address": "10.0.0.1", "name": "any-name", "claim": "nobody"}]
    assert served.indexes() == {}
    served.claim("c1")
    assert served.ip("c1") == "10.0.0.2"
    served.claim("c2")
    assert served.message("c2", "E") == "Exhausted IP Pools"


def test_two_pools_of_one_prefix_share_their_names_and_do_not_loop(served: Namespace) -> None:
    served.pool("p", "10.0.0.1-10.0.0.2", namePrefix="same")
    served.pool("q", "10.0.0.1-10.0.0.2", namePrefix="same")
    served.claim("c1", "p")
    assert served.ip("c1") == "10.0.0.1"
    served.claim("d1", "q")
    assert served.ip("d1") == "10.0.0.2"
    served.delete(IP_CLAIM, "c1")
    served.gone(IP_ADDRESS, "same-10-0-0-1")
    served.claim("d2", "q")
    assert served.ip("d2") == "10.0.0.1"


def test_c31_a_crash_between_the_address_and_the_claims_status_is_mended(kube: KubeServer, unserved: Namespace) -> None:
    with operator_in(kube, unserved.name):
        unserved.pool("p", "10.0.0.1-10.0.0.9")
        unserved.claim("c1")
        unserved.served("c1")
        until(unserved.indexes)
    unserved.patch(IP_CLAIM, "c1", {"status": {"address": None}}, "status")
    with operator_in(kube, unserved.name):
        assert unserved.ip("c1") == "10.0.0.1"
    assert len(unserved.all(IP_ADDRESS)) == 1


def test_ks2_addresses_made_by_hand_at_the_moment_of_a_pick_never_double_one(served: Namespace) -> None:
    """Under names of their own, so that no name is a lock; some are refused, since the address is promised by then."""
    served.pool("p", "10.0.0.1-10.0.1.250")
    chance = random.Random(7)
    for number in range(runs(25, soak=300, proof=80)):
        held = {each["spec"]["address"] for each in served.all(IP_ADDRESS)}
        free = next(ip for ip in (f"10.0.{n // 250}.{n % 250 + 1}" for n in range(500)) if ip not in held)
        served.claim(f"c{number}")
        time.sleep(chance.random() * 0.04)
        with contextlib.suppress(RefusedByServer):
            served.address(f"h{number}", free, f"d{number}")
        served.claim(f"d{number}")
        for name in (f"c{number}", f"d{number}"):
            served.served(name)
    addresses = [each["spec"]["address"] for each in served.all(IP_ADDRESS)]

    assert len(addresses) == len(set(addresses))
    claims = served.all(IP_CLAIM)
    assert len({each["status"]["address"]["name"] for each in claims}) == len(claims)
