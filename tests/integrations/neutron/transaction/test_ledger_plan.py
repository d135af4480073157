"""A subnet as a network of a ledger: when it goes, what others hold there stays, also what they got meanwhile."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import tenure
from tests.integrations.neutron.local_site import REALM, LocalSite, Racing, local_site

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what Neutron imports is deprecated in places
    from tenure.integrations.neutron.transaction import ledger_plan

GUEST = "instance/guest"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[LocalSite]:
    with local_site(tmp_path) as made:
        yield made


def forget(site: LocalSite) -> None:
    """Follow that the subnet is gone."""
    site.reach.ask(lambda ledger: ledger_plan.become(ledger, REALM, site.subnet.id, None))


def networks(site: LocalSite) -> dict[str, bool]:
    """Tell which networks there are, and whether they are retired."""
    return {network.name: network.retired for network in site.ledger.networks()}


def test_a_network_goes_with_all_that_the_deployment_holds_in_it(site: LocalSite) -> None:
    for number in range(3):
        site.ledger.allocate(site.network, owner=f"{REALM}:port/{number}")
    site.ledger.hold(site.network, owner=f"{REALM}:port/pending")

    forget(site)

    assert networks(site) == {}


def test_a_network_with_a_guest_in_it_is_retired(site: LocalSite) -> None:
    site.ledger.allocate(site.network, owner=f"{REALM}:port/a", address="10.0.0.2")
    site.ledger.allocate(site.network, owner=GUEST, address="10.0.0.5")

    forget(site)

    assert (networks(site), site.held()) == ({site.network: True}, {"10.0.0.5": "held"})


@pytest.mark.parametrize("pending", [False, True])
def test_a_guest_who_comes_after_the_look_keeps_the_address(site: LocalSite, pending: bool) -> None:
    site.ledger.allocate(site.network, owner=f"{REALM}:port/a", address="10.0.0.2")

    async def come(ledger: tenure.AsyncLedger) -> None:
        verb = ledger.hold if pending else ledger.allocate
        await verb(site.network, owner=GUEST, address="10.0.0.5")

    site.reach.ask(
        lambda ledger: ledger_plan.become(Racing(ledger, come), REALM, site.subnet.id, None)  # type: ignore[arg-type]
    )

    assert networks(site) == {site.network: True}
    assert site.held() == {"10.0.0.5": "pending" if pending else "held"}


def test_a_guest_in_a_subnet_that_was_added_after_the_look_keeps_the_address(site: LocalSite) -> None:
    async def come(ledger: tenure.AsyncLedger) -> None:
        await ledger.add_subnet(site.network, "10.9.0.0/29")
        await ledger.allocate(site.network, owner=GUEST, address="10.9.0.5")

    site.reach.ask(
        lambda ledger: ledger_plan.become(Racing(ledger, come), REALM, site.subnet.id, None)  # type: ignore[arg-type]
    )

    assert (networks(site), site.held()) == ({site.network: True}, {"10.9.0.5": "held"})


def test_a_port_that_let_go_after_the_look_does_not_keep_the_network(site: LocalSite) -> None:
    site.ledger.allocate(site.network, owner=f"{REALM}:port/a", address="10.0.0.2")

    async def go(ledger: tenure.AsyncLedger) -> None:
        await ledger.release(site.network, "10.0.0.2", owner=f"{REALM}:port/a")

    site.reach.ask(
        lambda ledger: ledger_plan.become(Racing(ledger, go), REALM, site.subnet.id, None)  # type: ignore[arg-type]
    )

    assert networks(site) == {}


def test_what_cools_down_keeps_no_network(site: LocalSite) -> None:
    site.ledger.modify_pool(site.network, "10.0.0.2-10.0.0.6", cooling_s=3600)
    for owner, address in ((f"{REALM}:port/a", "10.0.0.2"), (GUEST, "10.0.0.5")):
        site.ledger.allocate(site.network, owner=owner, address=address)
        site.ledger.release(site.network, address, owner=owner)
    cooling = site.held()

    forget(site)

    assert cooling == {"10.0.0.2": "cooling", "10.0.0.5": "cooling"}
    assert networks(site) == {}
