"""What an IPAddress may say: cases B4 to B6, and addresses that two objects would hold."""

from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.admission.ipam_admission import IpamAdmission
from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_name_of
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import kind_of
from tenure.kernel.addressing.addresses import parse_address
from tests.integrations.kubernetes.metal3.admission.admission_requests import (
    NAMESPACE,
    View,
    a_cluster_api_address,
    a_request,
    an_address,
    changed,
    errors,
    mutated,
    warnings,
)

INVALID = 'IPAddress.ipam.metal3.io "a" is invalid: '
ADDRESS = an_address("a", "10.0.0.5", "c", prefix=24)


async def test_an_address_names_pool_claim_and_address() -> None:
    """B4: one reason each, in one answer."""
    found = await errors(changed(ADDRESS, pool={}, claim=None, address=""))

    names = ("spec.pool.name", "spec.claim.name", "spec.address")
    listed = ", ".join(f'{name}: Invalid value: "": cannot be empty' for name in names)
    assert found == f"{INVALID}[{listed}]"


@pytest.mark.parametrize("text", ["banana", "10.0.0.5/24", "::ffff:10.0.0.5"])
async def test_an_address_is_an_address(text: str) -> None:
    """B4."""
    assert (await errors(changed(ADDRESS, address=text))).startswith(
        f'{INVALID}spec.address: Invalid value: "{text}": is'
    )


CHANGES: list[tuple[str, object]] = [
    ("address", "10.0.0.6"),
    ("pool", {"name": "q"}),
    ("pool", {"name": "p", "namespace": "m3"}),
    ("claim", {"name": "d"}),
    ("claim", {"name": "c", "kind": "IPClaim"}),
]


@pytest.mark.parametrize(("field", "value"), CHANGES)
async def test_address_pool_and_claim_cannot_be_modified(field: str, value: object) -> None:
    """B5."""
    found = await errors(changed(ADDRESS, **{field: value}), ADDRESS)

    assert found.startswith(f"{INVALID}spec.{field}: Invalid value: ")
    assert found.endswith(": cannot be modified")


async def test_another_spelling_of_the_address_is_the_same_address() -> None:
    before = an_address("a", "fd00::5", "c")

    assert await errors(changed(before, address="FD00:0:0::0005"), before) == ""


async def test_prefix_gateway_and_servers_may_be_modified() -> None:
    """B6."""
    after = changed(ADDRESS, prefix=16, gateway="10.0.0.1", dnsServers=["192.0.2.53"])

    assert await errors(after, ADDRESS) == ""


@pytest.mark.parametrize(
    "holder",
    [
        an_address("other", "10.0.0.5", "d"),
        an_address("other", "10.0.0.5", "c"),
        a_cluster_api_address("a", "10.0.0.5", "d"),
    ],
    ids=["another claim", "the same claim", "Cluster API's kind"],
)
async def test_an_address_is_not_held_by_two_objects(holder: dict[str, Any]) -> None:
    found = await errors(ADDRESS, view=View([holder]))

    name, claim, kind = holder["metadata"]["name"], claim_name_of(holder), kind_of(holder).claim.kind
    assert found == f'{INVALID}spec.address: Invalid value: "10.0.0.5": is held by IPAddress {name} for {kind} {claim}'


async def test_spellings_do_not_hide_a_second_holder() -> None:
    holder = an_address("other", "fd00::5", "d")

    assert "is held by IPAddress other" in await errors(an_address("a", "FD00:0::0005", "c"), view=View([holder]))


async def test_pools_of_one_range_do_not_know_each_other() -> None:
    holder = an_address("other", "10.0.0.5", "d", pool="q")

    assert await errors(ADDRESS, view=View([holder])) == ""


async def test_a_second_address_for_a_claim_is_accepted_with_a_warning() -> None:
    view = View([an_address("other", "10.0.0.6", "c"), a_cluster_api_address("third", "10.0.0.7", "c")])

    assert await warnings(ADDRESS, view=view) == ["IPClaim c has IPAddress other already"]


async def test_an_address_for_a_name_that_no_claim_can_have_is_accepted_with_a_warning() -> None:
    """KD1, KS1: the seed's example says RenderedData-1; a claim that is applied as rendereddata-1 would not get it."""
    (warning,) = await warnings(an_address("a", "10.0.0.5", "RenderedData-1"))

    assert warning == "no IPClaim can have the name RenderedData-1; the address is kept, and nobody gets it"


async def test_an_update_is_not_judged_by_other_holders() -> None:
    """Two objects that were there before the webhook can be cleaned up."""
    view = View([an_address("other", "10.0.0.5", "d")])

    assert await errors(changed(ADDRESS, prefix=16), ADDRESS, view) == ""


async def test_an_address_is_stored_as_it_is_written() -> None:
    stored, decision = await mutated(an_address("a", "FD00::0005", "c"))

    assert stored["spec"]["address"] == "FD00::0005"
    assert decision.patch == []


async def test_an_address_that_another_claim_is_about_to_get_is_refused() -> None:
    """Its object may be on its way; the same claim's is welcome (KS2)."""
    view = View(promised={parse_address("10.0.0.5"): [ClaimId("IPClaim", NAMESPACE, "c")]})

    refused = await IpamAdmission(view).validate(a_request(an_address("hand", "10.0.0.5", "vip")))
    assert "spec.address" in refused.errors[0]
    assert "is the address of IPClaim c" in refused.errors[0]
    welcome = await IpamAdmission(view).validate(a_request(an_address("hand", "10.0.0.5", "c")))
    assert not welcome.errors
