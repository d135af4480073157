"""A ledger that knows a deployment by another number is taken over as far as that is said; what is lost is counted."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tenure
from tenure.doors.cli.main import main
from tenure.integrations.neutron.space_mapping import Spaces
from tenure.kernel.errors import Conflict
from tests.integrations.neutron.maintenance.maintenance_site import Site, built, digits, kinds

pytestmark = pytest.mark.halved

POOL = [("10.0.0.2", "10.0.0.254")]
CARRIED = ["10.0.0.1", "10.0.0.7", "10.0.0.8", "10.0.0.200"]
KNOWN = "5a3c7c3e-9d0b-4b52-8f5e-0d8c1a2b3c4d"


def assert_settled(site: Site) -> None:
    """Find everything as Neutron has it."""
    assert site.verify().found == []
    assert {place: owner for place, (owner, _) in site.rows().items()} == site.truth()
    assert site.held() == site.rows()


@contextmanager
def taken(*, knows_one: bool) -> Iterator[tuple[Site, Site]]:
    """Give a deployment with two subnets in a ledger, and a second database, which may know one of them."""
    with built("postgresql", "ledger") as site, built("mariadb", "database") as anew:
        site.ports(site.subnet("10.0.0.0/24", POOL, "10.0.0.1", id=KNOWN), CARRIED)
        site.ports(site.subnet("10.0.0.0/24", POOL, "10.0.0.1"), CARRIED[:3])
        assert site.move_in().agreed
        anew.settings = replace(site.settings, database=anew.settings.database)
        fields = {"id": KNOWN} if knows_one else {}
        anew.ports(anew.subnet("10.0.0.0/24", POOL, "10.0.0.1", **fields), CARRIED[:2])
        yield site, anew


def conf_of(folder: Path, site: Site, **options: str) -> str:
    """Write a configuration file."""
    settings = site.settings
    ours = {"mode": settings.mode, "ledger": settings.ledger or "", **options}
    lines = ["[database]", f"connection = {settings.database}", "[tenure]", *(f"{k} = {v}" for k, v in ours.items())]
    file = folder / "neutron.conf"
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return str(file)


def call(verb: str, conf: str, *words: str) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(main, ["neutron", verb, "--config-file", conf, *words])


@pytest.mark.parametrize("dry", [False, True])
def test_a_database_that_knows_none_of_the_networks_takes_nothing_over(dry: bool) -> None:
    with taken(knows_one=False) as (site, anew):
        before = site.everything(), anew.everything()

        with pytest.raises(Conflict, match=r"2 networks .* and 7 held addresses; this database has none"):
            anew.move_in(take_over=True, dry=dry)

        assert (site.everything(), anew.everything()) == before
        assert_settled(site)


def test_networks_that_hold_addresses_are_removed_only_if_that_is_said(tmp_path: Path) -> None:
    with taken(knows_one=True) as (site, anew):
        before, conf = site.everything(), conf_of(tmp_path, anew)

        foreseen = call("import", conf, "--take-over", "--dry-run")
        refused = call("import", conf, "--take-over")
        untouched = site.everything()
        told = json.loads(call("import", conf, "--take-over", "--remove-held", "--dry-run", "--json").stdout)
        done = call("import", conf, "--take-over", "--remove-held")

        assert untouched == before
        for answer in (foreseen, refused):
            assert answer.exit_code == 1
            assert "stands for no subnet of this database and holds 3 addresses; --remove-held" in answer.stdout
            assert "1 network with 3 held addresses would be REMOVED" in answer.stdout
        assert (told["removal"], told["agreed"]) == ({"networks": 1, "addresses": 3}, False)
        assert done.exit_code == 0
        assert "1 network with 3 held addresses: REMOVED" in done.stdout
        assert_settled(anew)


def test_a_database_made_anew_takes_over_and_the_former_one_is_told_so() -> None:
    with taken(knows_one=False) as (site, anew):
        report = anew.move_in(take_over=True, remove_held=True)

        assert report.agreed
        assert (report.removal, report.counts["network-extra"]) == ((2, 7), 2)
        assert_settled(anew)
        with pytest.raises(Conflict, match="another deployment of Neutron has taken over the name 'neutron'"):
            site.verify()
        with pytest.raises(Conflict, match="with `tenure neutron import --take-over`"):
            site.move_in()


def test_what_was_taken_over_by_mistake_is_taken_back_but_for_what_others_got_meanwhile() -> None:
    with built("postgresql", "ledger") as site, built("mariadb", "database") as wrong:
        network = site.network()
        shared = Spaces({network: "site"}, {}, {})
        site.settings = replace(site.settings, spaces=shared)
        subnet = site.subnet("10.0.0.0/24", POOL, "10.0.0.1", network_id=network)
        site.ports(subnet, CARRIED)
        assert site.move_in().agreed
        wrong.settings = replace(site.settings, database=wrong.settings.database)
        assert wrong.move_in(take_over=True, remove_held=True).agreed
        with tenure.open(site.settings.ledger or "") as ledger:
            ledger.add_network("vms", space="site")
            ledger.add_subnet("vms", "10.0.0.0/16")
            ledger.allocate("vms", owner="vm/1", address="10.0.0.8")

        refused = site.move_in(take_over=True)
        report = site.move_in(take_over=True, leave_conflicts=True)

        assert (refused.agreed, kinds(refused, "left")) == (False, ["address-conflict"])
        assert (report.agreed, kinds(report, "left")) == (True, ["address-conflict"])
        assert site.held().keys() == site.rows().keys() - {(subnet, digits("10.0.0.8"))}
        with tenure.open(site.settings.ledger or "") as ledger:
            assert [str(each.owner) for each in ledger.holdings("vms")] == ["vm/1"]
        assert kinds(site.verify(), "left") == kinds(site.reconcile(), "left") == ["address-conflict"]
        with tenure.open(site.settings.ledger or "") as ledger:
            ledger.release("vms", "10.0.0.8", owner="vm/1")
        assert kinds(site.reconcile(), "repaired") == ["holding-missing"]
        assert_settled(site)


def test_conflicts_are_left_by_the_command_if_that_is_said(tmp_path: Path) -> None:
    with built("mariadb", "ledger") as site:
        network = site.network()
        site.ports(site.subnet("10.0.0.0/24", POOL, "10.0.0.1", network_id=network), ["10.0.0.7", "10.0.0.8"])
        with tenure.open(site.settings.ledger or "") as ledger:
            ledger.add_network("vms", space="site")
            ledger.add_subnet("vms", "10.0.0.0/16")
            ledger.allocate("vms", owner="vm/1", address="10.0.0.7")
        conf = conf_of(tmp_path, site, space_of_network=f"{network}:site")

        refused = call("import", conf)
        foreseen = call("import", conf, "--leave-conflicts", "--dry-run")
        done = call("import", conf, "--leave-conflicts")

        assert (refused.exit_code, foreseen.exit_code, done.exit_code) == (1, 0, 0)
        assert "--leave-conflicts brings in and agrees on all but what is left" in refused.stdout
        assert "left: address-conflict" in done.stdout
        assert "agreed: every server" in done.stdout
        assert [address for _, address in site.held()] == [digits("10.0.0.8")]


def test_a_subnet_that_cannot_go_to_its_space_is_not_left_behind() -> None:
    with built("postgresql", "ledger") as site:
        network = site.network()
        site.ports(site.subnet("10.0.0.0/24", POOL, "10.0.0.1", network_id=network), CARRIED)
        assert site.move_in().agreed
        with tenure.open(site.settings.ledger or "") as ledger:
            ledger.add_network("vms", space="site")
            ledger.add_subnet("vms", "10.0.0.0/16")
            ledger.allocate("vms", owner="vm/1", address="10.0.0.7")
        site.settings = replace(site.settings, spaces=Spaces({network: "site"}, {}, {}))
        before = site.everything()

        report = site.move_in(leave_conflicts=True)

        assert (report.agreed, kinds(report, "left")) == (False, ["network-space"])
        assert site.everything() == before


def test_a_space_that_nobody_has_made_is_told(tmp_path: Path) -> None:
    with built("postgresql", "ledger") as site:
        site.move_in()
        conf = conf_of(tmp_path, site, space_of_network=f"{KNOWN}:datacenter", space_of_subnet_pool=f"{KNOWN}:lab")
        with tenure.open(site.settings.ledger or "") as ledger:
            ledger.add_network("vms", space="lab")

        text, document = call("verify", conf), json.loads(call("verify", conf, "--json").stdout)

        note = "space 'datacenter' of [tenure] space_of_… is not in the ledger yet"
        assert (text.exit_code, text.stdout.splitlines()[-1]) == (0, note)
        assert document["notes"] == [note]


@pytest.mark.parametrize("url", ["memory:", "sqlite:///{}/ledger.db", "etcd://127.0.0.1:2379/x", "nonsense"])
@pytest.mark.parametrize("verb", ["import", "verify"])
def test_a_ledger_that_servers_cannot_share_is_refused(url: str, verb: str, tmp_path: Path) -> None:
    words = ["--mode", "ledger", "--ledger", url.format(tmp_path), "--database", f"sqlite:///{tmp_path}/neutron.db"]

    done = CliRunner().invoke(main, ["neutron", verb, *words], env={"HOME": str(tmp_path)})

    assert (done.exit_code, done.stdout) == (2, "")
    assert "ledger: servers share a ledger on PostgreSQL, postgresql://" in done.stderr
    assert list(tmp_path.iterdir()) == []
