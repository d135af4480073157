"""A ledger that does not say what Neutron says is put right; who is still at work, or somebody else, is left alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from uuid import uuid4

import pytest
import sqlalchemy as sa

import tenure
from tenure.integrations.neutron.maintenance import neutron_database
from tenure.integrations.neutron.space_mapping import NOTHING_SHARED, Spaces
from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.errors import Conflict
from tests.integrations.neutron.maintenance.maintenance_site import NEUTRONS, Site, built, digits, kinds
from tests.scale import in_proof

pytestmark = pytest.mark.halved

POOL = [("10.0.0.2", "10.0.0.254")]
CARRIED = ["10.0.0.1", "10.0.0.7", "10.0.0.8", "10.0.0.200"]
SPARE = "10.0.0.50"


@pytest.fixture(scope="module", params=["postgresql", in_proof("mariadb")])
def made(request: pytest.FixtureRequest) -> Iterator[tuple[Site, str]]:
    """Give a deployment with a ledger; every test leaves it as it should be."""
    with built(request.param, "ledger") as site:
        subnet = site.subnet("10.0.0.0/24", POOL, "10.0.0.1")
        site.ports(subnet, CARRIED)
        assert site.move_in().agreed
        yield site, subnet


def assert_settled(site: Site) -> None:
    """Find everything as Neutron has it."""
    assert site.verify().found == []
    assert {place: owner for place, (owner, _) in site.rows().items()} == site.truth()
    assert site.held() == site.rows()


@contextmanager
def ledger_of(site: Site) -> Iterator[tenure.Ledger]:
    """Open the ledger as somebody else."""
    with tenure.open(site.settings.ledger or "") as ledger:
        yield ledger


def name_of(subnet: str) -> str:
    return f"neutron-{subnet}"


def owner_of(ledger: tenure.Ledger, subnet: str, address: str) -> str:
    return str(ledger.holding(name_of(subnet), address).owner)


def holding_missing(ledger: tenure.Ledger, subnet: str) -> None:
    ledger.release(name_of(subnet), "10.0.0.7", owner=owner_of(ledger, subnet, "10.0.0.7"))


def holding_extra(ledger: tenure.Ledger, subnet: str) -> None:
    ledger.allocate(name_of(subnet), owner="neutron:port/gone", address=SPARE)


def pending_left(ledger: tenure.Ledger, subnet: str) -> None:
    ledger.hold(name_of(subnet), owner="neutron:port/gone", address=SPARE)


def still_pending(ledger: tenure.Ledger, subnet: str) -> None:
    owner = owner_of(ledger, subnet, "10.0.0.8")
    ledger.release(name_of(subnet), "10.0.0.8", owner=owner)
    ledger.hold(name_of(subnet), owner=owner, address="10.0.0.8", slot="0")


def of_another_port(ledger: tenure.Ledger, subnet: str) -> None:
    owner = owner_of(ledger, subnet, "10.0.0.200")
    ledger.transfer(name_of(subnet), "10.0.0.200", owner=owner, to="neutron:port/other")


def another_generation(ledger: tenure.Ledger, subnet: str) -> None:
    owner = owner_of(ledger, subnet, "10.0.0.8")
    ledger.release(name_of(subnet), "10.0.0.8", owner=owner)
    ledger.allocate(name_of(subnet), owner=owner, address="10.0.0.8")


def draining(ledger: tenure.Ledger, subnet: str) -> None:
    ledger.modify_holding(name_of(subnet), "10.0.0.8", owner=owner_of(ledger, subnet, "10.0.0.8"), state="draining")


def cooling(ledger: tenure.Ledger, subnet: str) -> None:
    ledger.release(name_of(subnet), "10.0.0.8", owner=owner_of(ledger, subnet, "10.0.0.8"), lingers_s=3600)


def another_plan(ledger: tenure.Ledger, subnet: str) -> None:
    ledger.remove_pool(name_of(subnet), "10.0.0.2-10.0.0.254")


def network_missing(ledger: tenure.Ledger, subnet: str) -> None:
    ledger.remove_network(name_of(subnet), cascade=True)


def network_extra(ledger: tenure.Ledger, subnet: str) -> None:
    gone = name_of(str(uuid4()))
    ledger.add_network(gone, labels={"neutron-plan": "m"})
    ledger.add_subnet(gone, "192.0.2.0/24")
    ledger.allocate(gone, owner="neutron:port/gone", address="192.0.2.9")


Damage = Callable[[tenure.Ledger, str], None]
DAMAGES: dict[Damage, list[str]] = {
    holding_missing: ["holding-missing"],
    holding_extra: ["holding-extra"],
    pending_left: ["holding-extra"],
    still_pending: ["holding-pending"],
    of_another_port: ["holding-owner"],
    another_generation: ["row-generation"],
    draining: ["holding-draining"],
    cooling: ["holding-missing"],
    another_plan: ["plan-differs"],
    network_missing: ["network-missing", *["holding-missing"] * 4],
    network_extra: ["network-extra"],
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_drift_in_the_ledger_is_found_foreseen_and_repaired(made: tuple[Site, str], damage: Damage) -> None:
    site, subnet = made
    with ledger_of(site) as ledger:
        damage(ledger, subnet)
    before = site.everything()

    found, foreseen = site.verify(), site.reconcile(dry=True)
    untouched = site.everything()
    repaired = site.reconcile()

    assert untouched == before
    assert kinds(found, "found") == kinds(foreseen, "found") == kinds(repaired, "repaired") == DAMAGES[damage]
    assert (found.clean, foreseen.clean, repaired.clean) == (False, False, True)
    assert_settled(site)


def test_the_networks_of_others_are_left_alone(made: tuple[Site, str]) -> None:
    site, _ = made
    with ledger_of(site) as ledger:
        ledger.add_network(f"neutron-b-{uuid4()}", labels={"neutron-plan": "m"})  # another cloud's
        ledger.add_network("neutron-external")
        ledger.add_network(f"neutron-{uuid4()}")  # made by hand: no plan of Neutron's is written on it

        report = site.reconcile()

        assert report.found == []
        others = [network.name for network in ledger.networks() if "neutron-plan" not in network.notes.labels]
        assert len(others) == 2
        for network in ledger.networks():
            if network.name.startswith("neutron-b-") or network.name in others:
                ledger.remove_network(network.name)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait only a second for open transactions of others: a test that has one waits for it several times."""
    monkeypatch.setattr(neutron_database, "PATIENCE_S", 1)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("wrote_the_row", [in_proof(False), True])
def test_what_a_server_is_still_at_work_on_is_not_touched(made: tuple[Site, str], wrote_the_row: bool) -> None:
    site, subnet = made
    with ledger_of(site) as ledger, site.at_work(subnet) as (session, book):
        held = ledger.hold(name_of(subnet), owner="neutron:port/new", address=SPARE)
        if wrote_the_row:
            book.grant(parse_address(SPARE), "port/new", held.generation)

        meanwhile = [site.verify(), site.reconcile(dry=True), site.reconcile()]
        kept = ledger.holding(name_of(subnet), SPARE)
        session.rollback()
        afterwards = site.reconcile()

    assert [kinds(report, "in-flight") for report in meanwhile] == [["holding-extra"]] * 3
    assert [report.clean for report in meanwhile] == [True] * 3
    assert (kept.state, kept.generation) == ("pending", held.generation)
    assert kinds(afterwards, "repaired") == ["holding-extra"]
    assert_settled(site)


def test_what_a_server_committed_and_did_not_come_to_confirm_is_confirmed(made: tuple[Site, str]) -> None:
    site, subnet = made
    [port] = site.ports(subnet, [SPARE])
    with ledger_of(site) as ledger:
        held = ledger.hold(name_of(subnet), owner=f"neutron:port/{port}", address=SPARE, slot="0")
    row = {"subnet_id": subnet, "address": digits(SPARE), "owner": f"port/{port}", "generation": held.generation}
    site.write("tenure_allocations", row)

    report = site.reconcile()

    assert kinds(report, "repaired") == ["holding-pending"]
    assert site.rows()[subnet, digits(SPARE)] == (f"port/{port}", held.generation)
    assert_settled(site)
    site.execute("DELETE FROM ipallocations WHERE port_id = :p", p=port)
    assert kinds(site.reconcile(), "repaired") == ["row-extra", "holding-extra"]


@pytest.mark.usefixtures("impatient")
def test_a_subnet_that_is_being_made_is_not_taken_for_one_that_is_gone(made: tuple[Site, str]) -> None:
    site, _ = made
    coming = str(uuid4())
    row = {"id": coming, "cidr": "192.0.2.0/24", "pools": "[]", "mark": "m"}
    with site.transaction() as session:
        session.execute(sa.insert(NEUTRONS["tenure_subnets"]).values(row))
        with ledger_of(site) as ledger:
            ledger.add_network(name_of(coming), labels={"neutron-plan": "m"})

        meanwhile = site.reconcile()
        session.rollback()
        afterwards = site.reconcile()

    assert kinds(meanwhile, "in-flight") == ["network-extra"]
    assert kinds(afterwards, "repaired") == ["network-extra"]
    assert_settled(site)


def test_an_address_that_somebody_else_holds_in_our_network_is_told_and_left(made: tuple[Site, str]) -> None:
    site, subnet = made
    with ledger_of(site) as ledger:
        ours = owner_of(ledger, subnet, "10.0.0.7")
        ledger.transfer(name_of(subnet), "10.0.0.7", owner=ours, to="instance/thief")
        ledger.allocate(name_of(subnet), owner="instance/guest", address=SPARE)

        report = site.reconcile()

        assert [(drift.kind, drift.address, drift.repairable) for drift in report.left] == [
            ("address-conflict", "10.0.0.7", False)
        ]
        assert (report.clean, kinds(report, "repaired")) == (False, [])
        assert owner_of(ledger, subnet, "10.0.0.7") == "instance/thief"
        assert owner_of(ledger, subnet, SPARE) == "instance/guest"  # where no port is, he is in nobody's way
        ledger.release(name_of(subnet), "10.0.0.7", owner="instance/thief")
        ledger.release(name_of(subnet), SPARE, owner="instance/guest")
    assert kinds(site.reconcile(), "repaired") == ["holding-missing"]
    assert_settled(site)


@pytest.fixture(params=["postgresql", in_proof("mariadb")])
def sharing(request: pytest.FixtureRequest) -> Iterator[tuple[Site, str]]:
    """Give a Neutron whose network is mapped to a space in which another orchestrator holds addresses."""
    with built(request.param, "ledger") as site:
        network = site.network()
        subnet = site.subnet("10.0.0.0/24", POOL, "10.0.0.1", network_id=network)
        site.ports(subnet, CARRIED)
        with ledger_of(site) as ledger:
            ledger.add_network("vms", space="site")
            ledger.add_subnet("vms", "10.0.0.0/16")
            ledger.allocate("vms", owner="instance/web-0", address="10.0.0.8")
        site.settings = replace(site.settings, spaces=Spaces({network: "site"}, {}, {}))
        yield site, subnet


def test_an_import_into_a_shared_space_is_refused_while_an_address_has_another_holder(
    sharing: tuple[Site, str],
) -> None:
    site, _ = sharing
    before = site.everything()

    report = site.move_in()

    [drift] = report.left
    assert (drift.kind, drift.address, report.agreed) == ("address-conflict", "10.0.0.8", False)
    assert "instance/web-0 holds it in the shared space" in drift.text
    assert site.everything() == before
    with pytest.raises(Conflict, match="has not agreed"):
        site.reconcile()
    with ledger_of(site) as ledger:
        ledger.release("vms", "10.0.0.8", owner="instance/web-0")
    assert site.move_in().agreed
    assert_settled(site)
    with ledger_of(site) as ledger, pytest.raises(tenure.AddressInUse):
        ledger.allocate("vms", owner="instance/web-0", address="10.0.0.8")


def test_a_subnet_follows_the_configuration_to_another_space_by_an_import(sharing: tuple[Site, str]) -> None:
    site, _ = sharing
    shared = site.settings
    site.settings = replace(shared, spaces=NOTHING_SHARED)
    assert site.move_in().agreed
    site.settings = shared

    refused = site.move_in()
    with ledger_of(site) as ledger:
        ledger.release("vms", "10.0.0.8", owner="instance/web-0")
    moved = site.move_in()

    assert [drift.kind for drift in refused.left] == ["network-space"]
    assert "instance/web-0 holds 10.0.0.8 there" in refused.left[0].text
    assert kinds(moved, "repaired") == ["subnet-space", "network-space", *["holding-missing"] * 4]
    assert_settled(site)


def test_a_subnet_with_servers_at_work_is_not_moved_to_another_space(sharing: tuple[Site, str]) -> None:
    site, _ = sharing
    shared = site.settings
    site.settings = replace(shared, spaces=NOTHING_SHARED)
    assert site.move_in().agreed
    site.settings = shared
    held = site.held()

    report = site.reconcile()

    [drift] = report.left
    assert (drift.kind, drift.repairable) == ("network-space", False)
    assert "`tenure neutron import` moves it" in drift.text
    assert site.held() == held


def test_a_whole_prefix_that_somebody_holds_in_the_shared_space_is_in_the_way_of_each_address_in_it() -> None:
    with built("postgresql", "ledger") as site:
        network = site.network()
        site.settings = replace(site.settings, spaces=Spaces({network: "site"}, {}, {}))
        pool = [("2001:db8::2", "2001:db8::ffff:ffff:ffff:ffff")]
        subnet = site.subnet("2001:db8::/64", pool, "2001:db8::1", network_id=network)
        site.ports(subnet, ["2001:db8::9"])
        with ledger_of(site) as ledger:
            ledger.add_network("sites", space="site")
            ledger.add_subnet("sites", "2001:db8::/56", unit=64)
            ledger.allocate("sites", owner="instance/router", address="2001:db8::")

        report = site.move_in()

        assert [(drift.kind, drift.address) for drift in report.left] == [("address-conflict", "2001:db8::9")]
        assert "instance/router holds it" in report.left[0].text


def test_two_subnets_of_one_space_cannot_have_the_same_address() -> None:
    with built("postgresql", "ledger") as site:
        networks = [site.network(), site.network()]
        site.settings = replace(site.settings, spaces=Spaces(dict.fromkeys(networks, "site"), {}, {}))
        for network in networks:
            site.ports(site.subnet("10.0.0.0/24", POOL, "10.0.0.1", network_id=network), ["10.0.0.7"])

        report = site.move_in()

        assert [(drift.kind, drift.address) for drift in report.left] == [("address-conflict", "10.0.0.7")]
        assert "holds it in the shared space" in report.left[0].text
        assert not report.agreed


def test_a_row_that_does_not_know_its_generation_is_no_drift_and_learns_it(made: tuple[Site, str]) -> None:
    site, _ = made
    known = site.rows()
    site.execute("UPDATE tenure_allocations SET generation = 0")

    verified, foreseen = site.verify(), site.reconcile(dry=True)
    unknown = {generation for _, generation in site.rows().values()}
    reconciled = site.reconcile()

    assert verified.found == foreseen.found == reconciled.found == []
    assert (unknown, site.rows()) == ({0}, known)


def test_a_ledger_that_knows_the_realm_of_another_deployment_is_not_touched(made: tuple[Site, str]) -> None:
    site, _ = made
    before = site.everything()
    kind = "mariadb" if "mysql" in site.settings.database else "postgresql"
    with built(kind, "database") as other:
        other.settings = replace(other.settings, mode="ledger", ledger=site.settings.ledger)
        with pytest.raises(Conflict, match="another deployment of Neutron as 'neutron'"):
            other.move_in()

    assert site.everything() == before
    assert_settled(site)
