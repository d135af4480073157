"""Many ports made at once: their addresses are allocated a while before the ports are there, and are not taken away."""

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

import tenure
from tenure.kernel.addressing.addresses import parse_address
from tests.integrations.neutron.maintenance.maintenance_site import Site, built, digits, kinds, long_ago
from tests.integrations.neutron.stage.kinds import LEDGER_ONCE, site_kinds

EARLY = "10.0.0.50"


@pytest.fixture(scope="module", params=site_kinds(once=LEDGER_ONCE))
def made(request: pytest.FixtureRequest) -> Iterator[tuple[Site, str]]:
    """Give a deployment that was brought in; every test leaves it as it should be."""
    with built(*request.param) as site:
        subnet = site.subnet("10.0.0.0/24", [("10.0.0.2", "10.0.0.254")], "10.0.0.1")
        site.ports(subnet, ["10.0.0.7", "10.0.0.8"])
        assert site.move_in().agreed
        yield site, subnet


def allocate_early(site: Site, subnet: str, port: str) -> None:
    """Do what a server does first when it makes many ports: commit the address of one that is not there."""
    generation = 0
    if site.settings.ledger is not None:
        with tenure.open(site.settings.ledger) as ledger:
            held = ledger.allocate(f"neutron-{subnet}", owner=f"neutron:port/{port}", address=EARLY)
            generation = held.generation
    with site.at_work(subnet) as (session, book):
        book.grant(parse_address(EARLY), f"port/{port}", generation)
        session.commit()


def extra(site: Site) -> list[str]:
    """List what is told of an address that was left behind."""
    return ["row-extra"] if site.settings.ledger is None else ["row-extra", "holding-extra"]


def test_an_address_whose_port_may_yet_come_is_told_as_in_flight_and_kept(made: tuple[Site, str]) -> None:
    site, subnet = made
    port = str(uuid4())
    allocate_early(site, subnet, port)
    before = site.everything()

    meanwhile = [site.verify(), site.reconcile(dry=True), site.reconcile()]
    untouched = site.everything()
    site.ports(subnet, [EARLY], names=[port])
    afterwards = site.verify()

    assert [kinds(report, "in-flight") for report in meanwhile] == [["row-early"]] * 3
    assert [(report.clean, len(report.found)) for report in meanwhile] == [(True, 1)] * 3
    assert untouched == before
    assert afterwards.found == []
    site.execute("DELETE FROM ipallocations WHERE port_id = :p", p=port)
    assert kinds(site.reconcile(), "repaired") == extra(site)


def test_an_early_address_that_the_ledger_lost_is_held_again_as_if_its_port_were_there(made: tuple[Site, str]) -> None:
    site, subnet = made
    port = str(uuid4())
    allocate_early(site, subnet, port)
    if site.settings.ledger is not None:
        with tenure.open(site.settings.ledger) as ledger:
            ledger.release(f"neutron-{subnet}", EARLY, owner=f"neutron:port/{port}")

    report = site.reconcile()

    assert kinds(report, "repaired") == ([] if site.settings.ledger is None else ["holding-missing"])
    assert site.rows()[subnet, digits(EARLY)][0] == f"port/{port}"
    assert site.settings.ledger is None or site.held() == site.rows()
    site.reconcile(grace_s=0)
    assert site.verify().found == []


def too_old(site: Site, subnet: str, port: str) -> None:
    site.execute("UPDATE tenure_allocations SET since_s = :s WHERE owner = :o", s=long_ago(), o=f"port/{port}")


def of_unknown_age(site: Site, subnet: str, port: str) -> None:
    site.execute("UPDATE tenure_allocations SET since_s = NULL WHERE owner = :o", o=f"port/{port}")


def port_is_there(site: Site, subnet: str, port: str) -> None:
    site.ports(subnet, ["10.0.0.99"], names=[port])
    site.execute("DELETE FROM ipallocations WHERE port_id = :p", p=port)


@pytest.mark.parametrize("happen", [too_old, of_unknown_age, port_is_there], ids=lambda happen: happen.__name__)
def test_an_address_whose_port_will_not_come_is_given_back(
    made: tuple[Site, str], happen: Callable[[Site, str, str], None]
) -> None:
    site, subnet = made
    port = str(uuid4())
    allocate_early(site, subnet, port)
    happen(site, subnet, port)

    found, repaired = site.verify(), site.reconcile()

    assert kinds(found, "found") == kinds(repaired, "repaired") == extra(site)
    assert (subnet, digits(EARLY)) not in site.rows()
    assert site.verify().found == []


def test_who_knows_that_nothing_is_in_flight_says_so(made: tuple[Site, str]) -> None:
    site, subnet = made
    allocate_early(site, subnet, str(uuid4()))

    report = site.reconcile(grace_s=0)

    assert (kinds(report, "repaired"), report.in_flight) == (extra(site), [])
    assert site.verify().found == []


def test_an_import_waits_for_no_port_since_the_servers_are_stopped(made: tuple[Site, str]) -> None:
    site, subnet = made
    allocate_early(site, subnet, str(uuid4()))

    report = site.move_in()

    assert (kinds(report, "repaired"), report.agreed) == (extra(site), True)
    assert site.verify().found == []
