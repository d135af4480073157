"""``tenure neutron`` as operators run it: with their configuration, its messages, its exit codes; killed half way."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tenure
from tenure.doors.cli.main import main
from tests.integrations.neutron.maintenance.maintenance_site import DATABASES, OURS, Site, built, digits, places

ROOT = Path(__file__).parents[4]
PATIENCE_S = 120
SECRET = "very-secret"  # noqa: S105


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Give a small deployment with a ledger that was brought in."""
    with built("postgresql", "ledger") as made:
        made.ports(made.subnet("10.0.0.0/24", [("10.0.0.2", "10.0.0.254")], "10.0.0.1"), ["10.0.0.7", "10.0.0.8"])
        assert made.move_in().agreed
        yield made


@pytest.fixture
def conf(site: Site, tmp_path: Path) -> str:
    """Give the configuration of it."""
    return written(tmp_path, site)


def written(folder: Path, site: Site, **options: str) -> str:
    """Write a configuration file."""
    settings = site.settings
    ours = {"mode": settings.mode, "ledger": settings.ledger or "", **options}
    lines = ["[database]", f"connection = {settings.database}", "[tenure]", *(f"{k} = {v}" for k, v in ours.items())]
    file = folder / "neutron.conf"
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return str(file)


def call(*words: str, folder: Path = ROOT) -> Result:
    """Run the command in this process, for which there is no other configuration in somebody's home."""
    return CliRunner().invoke(main, ["neutron", *words], env={"HOME": str(folder)})


def test_a_deployment_that_agrees_is_told_in_a_line(conf: str) -> None:
    command = [sys.executable, "-m", "tenure.doors.cli", "neutron", "verify", "--config-file", conf]

    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE_S)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "compared 2 addresses, 1 subnet: all agree\n"


def test_drift_is_told_with_findings_repaired_and_gone(site: Site, conf: str) -> None:
    [subnet] = {subnet for subnet, _ in site.rows()}
    where = {"s": subnet, "a": digits("10.0.0.7")}
    site.execute("UPDATE tenure_allocations SET owner = 'port/x' WHERE subnet_id = :s AND address = :a", **where)

    found = call("verify", "--config-file", conf)
    foreseen = call("reconcile", "--config-file", conf, "--dry-run", "--json")
    repaired = call("reconcile", "--config-file", conf)

    assert (found.exit_code, foreseen.exit_code, repaired.exit_code) == (1, 1, 0)
    assert f"row-owner: {subnet} 10.0.0.7: the row is for port/x, and port/" in found.stdout
    assert found.stdout.splitlines()[-1] == "compared 2 addresses, 1 subnet: 1 found"
    document = json.loads(foreseen.stdout)
    assert (document["mode"], document["clean"], document["addresses"]) == ("ledger", False, 2)
    assert document["counts"] == {"row-owner": 1}
    first = document["drifts"][0]
    assert (first["kind"], first["address"], first["outcome"]) == ("row-owner", "10.0.0.7", "found")
    assert repaired.stdout.splitlines()[-1] == "compared 2 addresses, 1 subnet: 1 repaired"
    assert call("verify", "--config-file", conf).exit_code == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--mode", "database"], 4, "has agreed on mode 'ledger' and realm 'neutron', not on mode 'database'"),
        (["--realm", "other"], 4, "not on mode 'ledger' and realm 'other'; `tenure neutron import` moves it"),
        (["--mode", "both"], 2, "'both' is not one of 'database', 'ledger'"),
        (["--database", f"postgresql+psycopg2://u:{SECRET}@127.0.0.1:1/n"], 6, "Neutron's database"),
        (["--database", f"mysql+pymysql://u:{SECRET}@127.0.0.1:1/n"], 6, "Neutron's database"),
        (["--database", f"nonsense://u:{SECRET}@127.0.0.1:1/n"], 2, "is not a URL of a database"),
        (["--ledger", f"postgresql://u:{SECRET}@127.0.0.1:1/n"], 6, "look at `--database` and `--ledger`"),
        (["--config-file", "missing.conf"], 2, "missing.conf"),
        (["--realm", "!"], 2, "configuration: "),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_told_without_secrets(conf: str, words: list[str], code: int, message: str) -> None:
    done = call("verify", "--config-file", conf, *words)

    assert (done.exit_code, done.stdout) == (code, "")
    assert message in done.stderr
    assert SECRET not in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_configuration_it_says_what_is_missing(tmp_path: Path) -> None:
    done = call("verify", folder=tmp_path)

    assert done.exit_code == 2
    assert "say --database URL, or --config-file FILE" in done.stderr


def test_a_database_without_tables_is_told_how_to_get_them(tmp_path: Path) -> None:
    with DATABASES["mariadb"]() as empty:
        neutrons = call("verify", "--mode", "database", "--database", empty)
    with built("postgresql", "database") as other:
        for name in reversed(OURS):
            other.execute(f"DROP TABLE {name} CASCADE")
        ours = call("verify", "--config-file", written(tmp_path, other))

    assert (neutrons.exit_code, ours.exit_code) == (3, 3)
    assert "run `neutron-db-manage --subproject tenure upgrade head`" in ours.stderr
    assert "no table 'ipallocationpools'; is this Neutron's database?" in neutrons.stderr


def test_a_foreign_holder_makes_import_and_reconcile_end_with_findings(tmp_path: Path) -> None:
    with built("mariadb", "ledger") as site:
        network = site.network()
        subnet = site.subnet("10.0.0.0/24", [("10.0.0.2", "10.0.0.254")], "10.0.0.1", network_id=network)
        site.ports(subnet, ["10.0.0.7"])
        with tenure.open(site.settings.ledger or "") as ledger:
            ledger.add_network("vms", space="site")
            ledger.add_subnet("vms", "10.0.0.0/16")
            ledger.allocate("vms", owner="instance/web-0", address="10.0.0.7")
        conf = written(tmp_path, site, space_of_network=f"{network}:site")

        done = call("import", "--config-file", conf)

        assert done.exit_code == 1
        assert f"left: address-conflict: {subnet} 10.0.0.7: neutron:port/" in done.stdout
        assert "agreed" not in done.stdout
        assert site.rows() == {}


@pytest.mark.proof
@pytest.mark.parametrize("database", ["mariadb", "postgresql"])
def test_an_import_that_was_killed_half_way_is_run_again(database: str) -> None:
    with built(database, "ledger") as site:
        for number in range(2):
            net = f"10.{number}"
            subnet = site.subnet(f"{net}.0.0/20", [(f"{net}.0.2", f"{net}.15.254")], f"{net}.0.1")
            site.ports(subnet, places(f"{net}.0.1", 1000))
        words = [
            "-m",
            "tests.integrations.neutron.maintenance.import_process",
            site.settings.database,
            site.settings.ledger or "",
        ]
        with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if int(line.split()[0]) > 1400:
                    os.kill(process.pid, signal.SIGKILL)
                    break
        half = len(site.rows()), len(site.held())

        report = site.move_in()

        assert process.returncode == -signal.SIGKILL
        assert (half[0] in (1000, 2000), 0 < half[1] < 2000) == (True, True)
        assert report.agreed
        assert 0 < report.counts["holding-missing"] <= 2000 - half[1]
        assert site.verify().found == []
        assert site.held() == site.rows()
        assert {place: owner for place, (owner, _) in site.rows().items()} == site.truth()


def test_help_loads_nothing_of_neutrons() -> None:
    code = "import sys\nfrom tenure.doors.cli.main import main\ntry:\n    main(['neutron', '--help'])\nfinally:\n    "
    code += "print(sorted({'oslo_config', 'sqlalchemy', 'neutron', 'tenure.integrations.neutron'} & set(sys.modules)))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.splitlines()[-1] == "[]"
    assert "reconcile" in done.stdout


def test_without_neutron_installed_it_says_what_to_install() -> None:
    code = "import sys\nsys.modules['oslo_config'] = None\nfrom tenure.doors.cli.main import main\n"
    code += "main(['neutron', 'verify'])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "pip install 'tenure[neutron]'" in done.stderr
