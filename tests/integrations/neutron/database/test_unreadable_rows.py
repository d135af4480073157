"""A row that makes no sense is told by its table and subnet; all others are compared, and ours are written anew."""

import json
from collections.abc import Callable, Iterator

import pytest

from tests.integrations.neutron.maintenance.maintenance_site import Site, built, digits, kinds, site_of
from tests.integrations.neutron.stage.deployment import Deployment
from tests.integrations.neutron.stage.kinds import LEDGER_ONCE, each_once, site_kinds, some
from tests.scale import in_proof

pytestmark = pytest.mark.halved

KINDS = site_kinds(("postgresql", "ledger"), ("mariadb", "ledger"), ("mariadb", "database"), once=LEDGER_ONCE)
CARRIED = ["10.60.0.7", "10.60.0.8", "10.60.0.9"]


@pytest.fixture(scope="module", params=KINDS)
def made(request: pytest.FixtureRequest) -> Iterator[tuple[Site, str, str]]:
    """Give a deployment with two subnets; every test leaves it as it should be."""
    with built(*request.param) as site:
        subnet = site.subnet("10.60.0.0/24", [("10.60.0.2", "10.60.0.254")], "10.60.0.1")
        other = site.subnet("10.61.0.0/24", [("10.61.0.2", "10.61.0.254")], "10.61.0.1")
        site.ports(subnet, CARRIED)
        site.ports(other, ["10.61.0.7", "10.61.0.8"])
        assert site.move_in().agreed
        yield site, subnet, other


def assert_settled(site: Site) -> None:
    """Find everything as Neutron has it."""
    assert site.verify().found == []
    rows = site.rows()
    assert {place: owner for place, (owner, _) in rows.items()} == site.truth()
    assert site.settings.ledger is None or site.held() == rows


def lose_a_row(site: Site, subnet: str) -> None:
    """Let something else be wrong, too."""
    where = {"s": subnet, "a": digits("10.61.0.8")}
    site.execute("DELETE FROM tenure_allocations WHERE subnet_id = :s AND address = :a", **where)


def no_address(site: Site, subnet: str) -> None:
    change = "UPDATE tenure_allocations SET address = 'zz' WHERE subnet_id = :s AND address = :a"
    site.execute(change, s=subnet, a=digits("10.60.0.8"))


def longer_than_an_address(site: Site, subnet: str) -> None:
    change = "UPDATE tenure_allocations SET address = '040a3c000800' WHERE subnet_id = :s AND address = :a"
    site.execute(change, s=subnet, a=digits("10.60.0.8"))


def no_json(site: Site, subnet: str) -> None:
    site.execute("UPDATE tenure_subnets SET pools = 'nojson' WHERE id = :s", s=subnet)


def no_pools(site: Site, subnet: str) -> None:
    site.execute("UPDATE tenure_subnets SET pools = '5' WHERE id = :s", s=subnet)


def backwards(site: Site, subnet: str) -> None:
    pools = '[["10.60.0.9", "10.60.0.2"]]'
    site.execute("UPDATE tenure_subnets SET pools = :p WHERE id = :s", p=pools, s=subnet)


def no_block(site: Site, subnet: str) -> None:
    site.execute("UPDATE tenure_subnets SET cidr = '10.60.0.0/99' WHERE id = :s", s=subnet)


def no_gateway(site: Site, subnet: str) -> None:
    site.execute("UPDATE tenure_subnets SET gateway_ip = 'x' WHERE id = :s", s=subnet)


OF_OURS: dict[Callable[[Site, str], None], tuple[list[str], str]] = {
    no_address: (["row-unreadable", "row-missing"], "in table tenure_allocations address is 'zz' ("),
    longer_than_an_address: (
        ["row-unreadable", "row-missing"],
        "in table tenure_allocations address is '040a3c000800' (",
    ),
    no_json: (["subnet-unreadable"], "in table tenure_subnets pools is 'nojson' ("),
    no_pools: (["subnet-unreadable"], "in table tenure_subnets pools is '5' ("),
    backwards: (["subnet-unreadable"], "range runs backwards"),
    no_block: (["subnet-unreadable"], "in table tenure_subnets cidr is '10.60.0.0/99' ("),
    no_gateway: (["subnet-unreadable"], "in table tenure_subnets gateway_ip is 'x' ("),
}


@pytest.mark.parametrize("damage", OF_OURS, ids=lambda damage: damage.__name__)
def test_a_row_of_ours_that_cannot_be_read_is_told_and_written_anew(
    made: tuple[Site, str, str], damage: Callable[[Site, str], None]
) -> None:
    site, subnet, other = made
    expected, text = OF_OURS[damage]
    damage(site, subnet)
    lose_a_row(site, other)
    before = site.everything()

    found, foreseen = site.verify(), site.reconcile(dry=True)
    untouched = site.everything()
    repaired = site.reconcile()

    assert untouched == before
    of_subnet = [drift for drift, _ in found.found if drift.subnet == subnet]
    assert [drift.kind for drift in of_subnet] == expected
    assert text in of_subnet[0].text
    assert kinds(foreseen, "found") == kinds(found, "found") == kinds(repaired, "repaired")
    assert [drift.kind for drift, _ in found.found if drift.subnet == other] == ["row-missing"]
    assert (found.clean, repaired.clean, found.subnets, found.addresses) == (False, True, 2, 5)
    assert_settled(site)


def test_an_unreadable_record_of_a_subnet_that_neutron_does_not_have_is_removed(made: tuple[Site, str, str]) -> None:
    site, _, _ = made
    gone = "11111111-2222-3333-4444-555555555555"
    site.write("tenure_subnets", {"id": gone, "cidr": "no", "pools": "no", "mark": "m"})

    found, repaired = site.verify(), site.reconcile()

    assert kinds(found, "found") == kinds(repaired, "repaired") == ["subnet-extra"]
    assert_settled(site)


def test_an_address_of_neutrons_that_cannot_be_read_is_left_and_its_port_loses_nothing(
    made: tuple[Site, str, str],
) -> None:
    site, subnet, other = made
    change = "UPDATE ipallocations SET ip_address = :new WHERE ip_address = :old"
    site.execute(change, old="10.60.0.9", new="10.60.0.999")
    lose_a_row(site, other)
    rows = site.rows()

    found, repaired = site.verify(), site.reconcile()
    kept = site.rows()

    [drift] = found.left
    assert (drift.kind, drift.subnet, drift.repairable) == ("row-unreadable", subnet, False)
    assert "in Neutron's own table ipallocations ip_address is '10.60.0.999'" in drift.text
    assert kinds(found, "found")[0] == kinds(repaired, "repaired")[0] == "row-missing"
    assert [each.text for each in repaired.left] == [drift.text]
    assert kept[subnet, digits("10.60.0.9")] == rows[subnet, digits("10.60.0.9")]
    assert site.settings.ledger is None or site.held() == kept
    site.execute(change, old="10.60.0.999", new="10.60.0.9")
    assert_settled(site)


def neutrons_block(site: Site, subnet: str, wrong: bool) -> None:
    cidr = "10.60.0.0/99" if wrong else "10.60.0.0/24"
    site.execute("UPDATE subnets SET cidr = :c WHERE id = :s", c=cidr, s=subnet)


def neutrons_pool(site: Site, subnet: str, wrong: bool) -> None:
    first = "10.60.0.x" if wrong else "10.60.0.2"
    site.execute("UPDATE ipallocationpools SET first_ip = :f WHERE subnet_id = :s", f=first, s=subnet)


@pytest.mark.parametrize(("damage", "table"), [(neutrons_block, "subnets"), (neutrons_pool, "ipallocationpools")])
def test_a_subnet_of_neutrons_that_cannot_be_read_is_left_and_its_addresses_are_compared(
    made: tuple[Site, str, str], damage: Callable[[Site, str, bool], None], table: str
) -> None:
    site, subnet, other = made
    damage(site, subnet, True)
    where = {"s": subnet, "a": digits("10.60.0.8")}
    site.execute("DELETE FROM tenure_allocations WHERE subnet_id = :s AND address = :a", **where)
    lose_a_row(site, other)

    found, repaired = site.verify(), site.reconcile()

    [drift] = found.left
    assert (drift.kind, drift.subnet) == ("subnet-unreadable", subnet)
    assert f"in Neutron's own table {table} " in drift.text
    assert kinds(found, "left") == kinds(repaired, "left") == ["subnet-unreadable"]
    missing = [each.subnet for each, outcome in repaired.found if (each.kind, outcome) == ("row-missing", "repaired")]
    assert sorted(missing) == sorted([subnet, other])
    damage(site, subnet, False)
    assert_settled(site)


def test_an_address_outside_of_its_subnet_is_left_by_all_and_nothing_is_written_for_it(
    made: tuple[Site, str, str],
) -> None:
    site, subnet, _ = made
    [port] = site.ports(subnet, ["10.99.0.9"])
    before = site.everything()

    reports = [site.verify(), site.reconcile(dry=True), site.reconcile()]

    for report in reports:
        [(drift, outcome)] = report.found
        assert (drift.kind, drift.address, outcome) == ("address-outside", "10.99.0.9", "left")
        assert f"port/{port} carries it, and it is outside of the subnet 10.60.0.0/24;" in drift.text
    assert site.everything() == before
    site.execute("DELETE FROM ipallocations WHERE port_id = :p", p=port)
    assert_settled(site)


def test_a_record_that_is_missing_is_told_once_with_what_hangs_on_it(made: tuple[Site, str, str]) -> None:
    site, subnet, _ = made
    site.execute("DELETE FROM tenure_allocations WHERE subnet_id = :s", s=subnet)
    site.execute("DELETE FROM tenure_subnets WHERE id = :s", s=subnet)

    reports = [site.verify(), site.reconcile(dry=True), site.reconcile()]

    for report in reports:
        [(drift, _)] = report.found
        assert (drift.kind, drift.subnet) == ("subnet-missing", subnet)
        assert drift.text.endswith("lack this subnet 10.60.0.0/24, and a row for each of its addresses (3)")
    assert_settled(site)


@each_once
def test_a_server_that_cannot_read_the_record_of_a_subnet_says_so(deployment: Deployment) -> None:
    network, subnet = deployment.subnet("10.62.0.0/24")
    site = site_of(deployment.settings.database, deployment.settings.mode, None, deployment.engine)
    before = json.dumps([["10.62.0.2", "10.62.0.254"]])
    write = "UPDATE tenure_subnets SET pools = :p WHERE id = :s"

    site.execute(write, p="nojson", s=subnet)
    refused = deployment.server.port(network)
    site.execute(write, p=before, s=subnet)
    made = deployment.server.port(network)

    assert (refused.status, made.status) == (503, 201)
    assert f"cannot read its record of subnet {subnet} in table tenure_subnets" in str(refused.body)


@some(("database", "mariadb"))
def test_a_server_that_cannot_read_a_row_says_so_instead_of_giving_away_what_it_stands_for(
    deployment: Deployment,
) -> None:
    network, subnet = deployment.subnet("10.63.0.0/24")
    site = site_of(deployment.settings.database, "database", None, deployment.engine)
    site.write("tenure_allocations", {"subnet_id": subnet, "address": "zz", "owner": "port/x"})

    refused = deployment.server.port(network)
    site.execute("DELETE FROM tenure_allocations WHERE subnet_id = :s", s=subnet)
    made = deployment.server.port(network)

    assert (refused.status, made.status) == (503, 201)
    assert f"cannot read its record of subnet {subnet} in table tenure_allocations" in str(refused.body)


@pytest.mark.parametrize("kind", [("postgresql", "ledger"), in_proof(("mariadb", "database"))], ids="-".join)
def test_an_import_is_refused_by_what_cannot_be_read_in_neutron_unless_it_is_to_be_left(kind: tuple[str, str]) -> None:
    with built(*kind) as site:
        site.ports(site.subnet("10.60.0.0/24", [("10.60.0.2", "10.60.0.254")], "10.60.0.1"), CARRIED)
        blind = site.subnet("10.61.0.0/24", [("10.61.0.2", "10.61.0.x")], "10.61.0.1")
        site.execute("UPDATE ipallocations SET ip_address = '10.60.0.999' WHERE ip_address = '10.60.0.9'")

        refused = site.move_in()
        untouched = site.rows()
        left = site.move_in(leave_conflicts=True)

        assert (refused.agreed, untouched, left.agreed) == (False, {}, True)
        assert sorted(drift.kind for drift in left.left) == ["row-unreadable", "subnet-unreadable"]
        assert {drift.subnet for drift in left.left if drift.kind == "subnet-unreadable"} == {blind}
        assert {address for _, address in site.rows()} == {digits("10.60.0.7"), digits("10.60.0.8")}
        assert site.settings.ledger is None or site.held() == site.rows()
