"""Addresses from pools in files: what the operator would give, and never what another claim holds."""

from pathlib import Path
from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3_data.offline.filed_pools import FiledPools
from tenure.integrations.kubernetes.metal3_data.template.machine_facts import PoolAddress
from tenure.integrations.kubernetes.metal3_data.template.needed_addresses import NeededAddress
from tenure.integrations.kubernetes.metal3_data.template.template_model import PoolReference
from tenure.kernel.errors import Invalid, TenureError
from tests.integrations.kubernetes.metal3_data.offline.files import Object, an_address, an_object, filed

NEEDED = NeededAddress(PoolReference("p", path="spec.x"))
RANGE = {"start": "10.0.0.1", "end": "10.0.0.4"}


def pools(folder: Path, *objects: Object, **spec: Any) -> FiledPools:
    """Return a pool of four addresses, of which the first is the gateway, beside other objects."""
    written = {"pools": [RANGE], "prefix": 24, "gateway": "10.0.0.1", **spec}
    return FiledPools(filed(folder, an_object("IPPool", "p", written), *objects))


def test_the_first_address_is_given_that_is_neither_held_nor_fixed_nor_the_gateway(tmp_path: Path) -> None:
    held = an_address("a", "10.0.0.2", "other")
    found = pools(tmp_path, held, preAllocations={"c": "10.0.0.3"}, dnsServers=["10.0.0.53"])

    assert found.address_for(NEEDED, "new") == PoolAddress("10.0.0.4", 24, "10.0.0.1", ("10.0.0.53",))
    assert found.address_for(NEEDED, "c").address == "10.0.0.3"
    with pytest.raises(Invalid, match="pool 'p': Exhausted IP Pools"):
        found.address_for(NEEDED, "further")


def test_a_fixed_address_that_another_claim_holds_is_refused(tmp_path: Path) -> None:
    found = pools(tmp_path, an_address("a", "10.0.0.3", "other"), preAllocations={"c": "10.0.0.3"})

    with pytest.raises(Invalid, match=r"pool 'p': 10\.0\.0\.3 is fixed for claim 'c', and claim 'other' holds it"):
        found.address_for(NEEDED, "c")


def test_a_fixed_address_outside_the_ranges_is_given_with_a_note(tmp_path: Path) -> None:
    """The design's own pool has such ones; the operator gives them only where it is allowed (A10)."""
    fixed = {"preAllocations": {"c": "10.0.0.9"}}
    found = pools(tmp_path, **fixed)
    allowed = pools(tmp_path, **fixed, tenure={"outsidePreAllocations": "allow"})

    assert found.address_for(NEEDED, "c").address == allowed.address_for(NEEDED, "c").address == "10.0.0.9"
    assert found.notes[0].startswith("pool 'p': 10.0.0.9 is fixed, but outside the ranges: the operator gives it only")
    assert allowed.notes == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"pools": [{"start": "x"}]}, "IPPool 'p': spec.pools[0].start: is not a valid IP address"),
        ({"tenure": {"external": True}}, "others make its addresses: give it with --pool p=ADDRESS/PREFIX"),
        (
            {"tenure": {"ledger": {"network": "n", "realm": "r", "secretName": "s"}}},
            "its addresses are in a ledger: give one with --pool p=ledger:n",
        ),
    ],
)
def test_a_pool_from_which_nothing_is_picked_says_so(tmp_path: Path, spec: Object, message: str) -> None:
    with pytest.raises(Invalid) as raised:
        pools(tmp_path, **spec).address_for(NEEDED, "c")

    assert message in raised.value.message


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (an_address("a", "nowhere", "c"), "IPAddress 'a': spec.address: must be an IP address, not 'nowhere'"),
        (an_address("a", 7, "other"), "IPAddress 'a': spec.address: must be an IP address, not 7"),
        (an_address("a", "10.0.0.2", "c", prefix="24"), "IPAddress 'a': spec.prefix: must be a whole number, not '24'"),
        (an_address("a", "10.0.0.2", "c", gateway=["x"]), "IPAddress 'a': spec.gateway: must be an IP address"),
        (an_address("a", "10.0.0.2", "c", dnsServers="x"), "IPAddress 'a': spec.dnsServers: must be a list, not 'x'"),
        (
            an_address("a", "10.0.0.2", "c", dnsServers=["x"]),
            "IPAddress 'a': spec.dnsServers[0]: must be an IP",
        ),
    ],
)
def test_an_address_object_that_says_none_is_refused(tmp_path: Path, address: Object, message: str) -> None:
    found = pools(tmp_path, address)

    with pytest.raises(Invalid) as raised:
        found.address_for(NEEDED, "c")
    assert raised.value.message.startswith(message)


def test_a_claim_with_two_addresses_is_refused(tmp_path: Path) -> None:
    found = pools(tmp_path, an_address("a", "10.0.0.2", "c"), an_address("b", "10.0.0.3", "c"))

    with pytest.raises(Invalid, match="files: claim 'c' has several addresses: a, b"):
        found.address_for(NEEDED, "c")


def test_a_pool_of_another_provider_gives_what_its_address_object_says(tmp_path: Path) -> None:
    needed = NeededAddress(PoolReference("q", "ipam.cluster.x-k8s.io", "InClusterIPPool", path="spec.x"))
    spec = {"address": "10.9.0.4", "prefix": 20, "claimRef": {"name": "c"}, "poolRef": {"name": "q"}}
    found = pools(tmp_path, an_object("IPAddress", "c", spec))

    assert found.address_for(needed, "c") == PoolAddress("10.9.0.4", 20)
    with pytest.raises(TenureError, match=r"spec\.x: there is no pool 'q'"):
        found.address_for(needed, "d")
