"""A Neutron is brought in, compared and repaired: what Neutron's own tables say is what ours and the ledger say."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tenure.kernel.errors import Conflict
from tests.integrations.neutron.maintenance.maintenance_site import Site, built, digits, kinds, places
from tests.integrations.neutron.stage.kinds import LEDGER_ONCE, site_kinds
from tests.scale import in_proof, runs

pytestmark = pytest.mark.halved

with_every_kind = pytest.mark.parametrize("kind", site_kinds(once=LEDGER_ONCE))
ADDRESSES = runs(2_000, 10_000, proof=10_000)

POOL = [("10.0.0.2", "10.0.0.100"), ("10.0.0.120", "10.0.0.254")]


def fill(site: Site) -> tuple[str, str]:
    """Make two subnets with a few ports."""
    four = site.subnet("10.0.0.0/24", POOL, "10.0.0.1")
    site.ports(four, ["10.0.0.1", "10.0.0.7", "10.0.0.110", "10.0.0.120", "10.0.0.254"])
    six = site.subnet("2001:db8::/64", [("2001:db8::2", "2001:db8::ffff:ffff:ffff:ffff")], "2001:db8::1")
    site.ports(six, ["2001:db8::1", "2001:db8::f816:3eff:fe00:1", "2001:DB8::9"])
    return four, six


@pytest.fixture(scope="module", params=site_kinds(once=LEDGER_ONCE))
def made(request: pytest.FixtureRequest) -> Iterator[tuple[Site, str, str]]:
    """Give a deployment that was brought in; every test leaves it as it should be."""
    with built(*request.param) as site:
        four, six = fill(site)
        assert site.move_in().agreed
        yield site, four, six


def assert_settled(site: Site) -> None:
    """Find everything as Neutron has it."""
    assert site.verify().found == []
    rows = site.rows()
    assert {place: owner for place, (owner, _) in rows.items()} == site.truth()
    if site.settings.ledger is not None:
        assert site.held() == rows


@with_every_kind
def test_thousands_of_addresses_are_brought_in_and_then_there_is_nothing_to_tell(kind: tuple[str, str]) -> None:
    with built(*kind) as site:
        for number in range(3):
            net = f"10.{number}"
            subnet = site.subnet(f"{net}.0.0/20", [(f"{net}.0.2", f"{net}.15.254")], f"{net}.0.1")
            site.ports(subnet, places(f"{net}.0.1", ADDRESSES * 3 // 10))
        six = site.subnet("2001:db8::/64", [("2001:db8::2", "2001:db8::ffff:ffff:ffff:ffff")], "2001:db8::1")
        site.ports(six, places("2001:db8::1000", ADDRESSES // 10))
        before = site.everything()
        foreseen = site.move_in(dry=True)
        untouched = site.everything()

        report = site.move_in()

        assert untouched == before
        assert foreseen.counts == report.counts
        assert report.counts["row-missing"] == ADDRESSES
        assert (report.agreed, report.left, report.subnets, report.addresses) == (True, [], 4, ADDRESSES)
        assert_settled(site)


@with_every_kind
def test_an_import_that_is_run_again_changes_nothing(kind: tuple[str, str]) -> None:
    with built(*kind) as site:
        fill(site)
        site.move_in()
        before = site.everything()

        report = site.move_in()

        assert (report.found, report.agreed) == ([], True)
        assert site.everything() == before


def row_missing(site: Site, four: str, six: str) -> None:
    site.execute("DELETE FROM tenure_allocations WHERE subnet_id = :s AND address = :a", s=four, a=digits("10.0.0.7"))


def row_missing_of_an_odd_spelling(site: Site, four: str, six: str) -> None:
    address = digits("2001:db8::9")
    site.execute("DELETE FROM tenure_allocations WHERE subnet_id = :s AND address = :a", s=six, a=address)


def row_extra(site: Site, four: str, six: str) -> None:
    site.write("tenure_allocations", {"subnet_id": six, "address": digits("2001:db8::8"), "owner": "port/gone"})


def row_of_another(site: Site, four: str, six: str) -> None:
    statement = "UPDATE tenure_allocations SET owner = 'port/other' WHERE subnet_id = :s AND address = :a"
    site.execute(statement, s=four, a=digits("10.0.0.254"))


def record_missing(site: Site, four: str, six: str) -> None:
    site.execute("DELETE FROM tenure_allocations WHERE subnet_id = :s", s=six)
    site.execute("DELETE FROM tenure_subnets WHERE id = :s", s=six)


def record_extra(site: Site, four: str, six: str) -> None:
    gone = "11111111-2222-3333-4444-555555555555"
    site.write("tenure_subnets", {"id": gone, "cidr": "192.0.2.0/24", "pools": "[]", "mark": "m"})
    site.write("tenure_allocations", {"subnet_id": gone, "address": digits("192.0.2.9"), "owner": "port/gone"})


def other_gateway(site: Site, four: str, six: str) -> None:
    site.execute("UPDATE tenure_subnets SET gateway_ip = '10.0.0.254' WHERE id = :s", s=four)


def other_block(site: Site, four: str, six: str) -> None:
    site.execute("UPDATE tenure_subnets SET cidr = '10.0.0.0/23' WHERE id = :s", s=four)


def other_pools(site: Site, four: str, six: str) -> None:
    site.execute("DELETE FROM ipallocationpools WHERE subnet_id = :s AND first_ip = '10.0.0.120'", s=four)


def other_space(site: Site, four: str, six: str) -> None:
    site.execute("UPDATE tenure_subnets SET space = 'plan' WHERE id = :s", s=six)


Damage = Callable[[Site, str, str], None]
DAMAGES: dict[Damage, list[str]] = {
    row_missing: ["row-missing"],
    row_missing_of_an_odd_spelling: ["row-missing"],
    row_extra: ["row-extra"],
    row_of_another: ["row-owner"],
    record_missing: ["subnet-missing"],
    record_extra: ["subnet-extra"],
    other_gateway: ["subnet-differs"],
    other_block: ["subnet-differs"],
    other_pools: ["subnet-differs"],
    other_space: ["subnet-space"],
}
"""What is done to our tables, and the drift there; what it leads to in a ledger is another matter."""


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_drift_in_our_tables_is_found_foreseen_and_repaired(made: tuple[Site, str, str], damage: Damage) -> None:
    site, four, six = made
    damage(site, four, six)
    before = site.everything()

    found, foreseen = site.verify(), site.reconcile(dry=True)
    untouched = site.everything()
    repaired = site.reconcile()

    assert untouched == before
    in_tables = [kind for kind in kinds(found, "found") if kind.startswith(("row-", "subnet-"))]
    assert in_tables == DAMAGES[damage]
    assert kinds(foreseen, "found") == kinds(found, "found")
    assert (found.clean, foreseen.clean, repaired.clean) == (False, False, True)
    assert set(kinds(repaired, "repaired")) >= set(DAMAGES[damage])
    assert_settled(site)


def test_a_drift_says_where_it_is_what_is_and_what_should_be(made: tuple[Site, str, str]) -> None:
    site, four, six = made
    owner = site.truth()[four, digits("10.0.0.254")]
    row_of_another(site, four, six)

    drift = site.verify().found[0][0]

    assert (drift.kind, drift.subnet, drift.address, drift.repairable) == ("row-owner", four, "10.0.0.254", True)
    assert drift.text == f"the row is for port/other, and {owner} carries it"
    assert site.reconcile().clean


def test_an_address_that_no_port_carries_may_have_any_owner(made: tuple[Site, str, str]) -> None:
    site, four, _ = made
    site.execute("UPDATE ipallocations SET port_id = NULL WHERE ip_address = '10.0.0.120'")

    assert site.verify().found == []
    site.execute("DELETE FROM tenure_allocations WHERE subnet_id = :s AND address = :a", s=four, a=digits("10.0.0.120"))
    report = site.reconcile()
    assert kinds(report, "repaired")[0] == "row-missing"
    assert site.rows()[four, digits("10.0.0.120")][0] == "unnamed/10.0.0.120"
    assert site.verify().found == []


def test_what_was_not_agreed_on_is_not_repaired(made: tuple[Site, str, str]) -> None:
    site, _, _ = made
    other = Site(replace(site.settings, realm="another"), site.engine)

    with pytest.raises(Conflict, match="has agreed on mode"):
        other.reconcile()
    with built(*_kind(site)) as fresh, pytest.raises(Conflict, match="has not agreed on where addresses are kept"):
        fresh.verify()


def _kind(site: Site) -> tuple[str, str]:
    return ("mariadb" if "mysql" in site.settings.database else "postgresql", site.settings.mode)


@pytest.mark.parametrize("database", ["postgresql", in_proof("mariadb")])
def test_a_deployment_changes_its_mode_by_an_import_and_back_and_again(database: str) -> None:
    with built(database, "ledger") as site:
        four, _ = fill(site)
        in_database = Site(replace(site.settings, mode="database", ledger=None), site.engine)
        in_database.move_in()
        assert_settled(in_database)

        report = site.move_in()

        assert set(report.counts) == {"network-missing", "holding-missing"}
        assert report.agreed
        assert_settled(site)
        assert in_database.move_in().agreed
        assert_settled(in_database)
        site.ports(four, ["10.0.0.9"])
        assert kinds(in_database.reconcile(), "repaired") == ["row-missing"]
        again = site.move_in()
        assert (again.agreed, kinds(again, "repaired")) == (True, ["holding-missing"])
        assert_settled(site)
