"""What ``tenure neutron`` says when it cannot begin: which database or ledger, why, and nothing is made on the way."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tenure.doors.cli.main import main
from tenure.wiring import is_there
from tests.infrastructure import postgres
from tests.integrations.neutron.maintenance.maintenance_site import Site, built

SECRET = "very-secret"  # noqa: S105


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Give a small deployment with a ledger that was brought in."""
    with built("mariadb", "ledger") as made:
        made.ports(made.subnet("10.0.0.0/24", [("10.0.0.2", "10.0.0.254")], "10.0.0.1"), ["10.0.0.7", "10.0.0.8"])
        assert made.move_in().agreed
        yield made


def call(site: Site, verb: str, *words: str, **other: str) -> Result:
    """Run the command on a deployment, with another database or ledger where one is said."""
    said = {"database": site.settings.database, "ledger": site.settings.ledger or "", "mode": "ledger", **other}
    options = [word for name, value in said.items() for word in (f"--{name}", value)]
    return CliRunner().invoke(main, ["neutron", verb, *options, *words], env={"HOME": "nowhere"})


def other_schema(site: Site) -> str:
    """Name a schema beside that of the ledger, in which there is nothing."""
    return f"{site.settings.ledger}_mistyped"


@pytest.mark.parametrize("words", [("verify",), ("reconcile",), ("reconcile", "--dry-run"), ("import", "--dry-run")])
def test_a_ledger_that_is_not_there_is_told_and_not_made(site: Site, words: tuple[str, str]) -> None:
    url = other_schema(site)

    done = call(site, *words, ledger=url)

    assert (done.exit_code, done.stdout) == (3, "")
    assert "no ledger 'postgresql:///postgres (schema " in done.stderr
    assert "_mistyped)'; only `tenure neutron import` makes a new one" in done.stderr
    assert not asyncio.run(is_there(url))
    assert asyncio.run(is_there(site.settings.ledger or ""))


@pytest.mark.parametrize("verb", ["verify", "reconcile", "import"])
def test_a_file_that_is_not_there_is_told_and_not_made(site: Site, verb: str, tmp_path: Path) -> None:
    done = call(site, verb, database=f"sqlite:///{tmp_path}/nix.db")

    assert (done.exit_code, done.stdout) == (3, "")
    assert "nix.db'; there is no such file" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_ledger_until_somebody_makes_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"

    before = asyncio.run(is_there(url))
    CliRunner().invoke(main, ["--store", url, "network", "add", "net"])

    assert (before, asyncio.run(is_there(url)), asyncio.run(is_there("memory:"))) == (False, True, True)


def test_an_unknown_database_is_told_in_its_own_words_without_the_drivers(site: Site) -> None:
    url = site.settings.database
    name = url.partition("?")[0].rpartition("/")[2]

    done = call(site, "verify", database=url.replace(name, "nodb"))

    assert done.exit_code == 6
    assert "Neutron's database mysql+pymysql://localhost/nodb: Unknown database 'nodb'" in done.stderr
    assert "pymysql.err" not in done.stderr


def test_a_ledger_that_cannot_be_reached_is_named(site: Site) -> None:
    done = call(site, "verify", ledger=f"postgresql://u:{SECRET}@127.0.0.1:1/n?schema=plan")

    assert done.exit_code == 6
    assert "the ledger postgresql://127.0.0.1:1/n (schema plan): cannot reach PostgreSQL: " in done.stderr
    assert SECRET not in done.stderr


def test_a_driver_that_is_missing_is_told_in_a_line() -> None:
    code = "import sys\nsys.modules['pymysql'] = None\nfrom tenure.doors.cli.main import main\n"
    code += "main(['neutron', 'verify', '--mode', 'database', '--database', 'mysql+pymysql://u@127.0.0.1/n'])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "database: the driver pymysql that this URL needs is missing: pip install pymysql" in done.stderr
    assert "Traceback" not in done.stderr


def test_only_an_import_tells_whether_it_agreed(site: Site) -> None:
    documents = {verb: json.loads(call(site, verb, "--json").stdout) for verb in ("verify", "reconcile", "import")}

    assert {verb: document.get("agreed") for verb, document in documents.items()} == {
        "verify": None,
        "reconcile": None,
        "import": True,
    }
    assert "agreed" not in documents["verify"]


def test_a_new_ledger_is_made_by_the_import_itself() -> None:
    with built("postgresql", "database") as fresh, postgres.schema_in_thread() as url:
        fresh.ports(fresh.subnet("10.0.0.0/24", [("10.0.0.2", "10.0.0.254")], "10.0.0.1"), ["10.0.0.7"])

        refused = call(fresh, "import", "--dry-run", ledger=f"{url}_new")
        made = call(fresh, "import", ledger=f"{url}_new")

        assert (refused.exit_code, made.exit_code) == (3, 0)
        assert "agreed: every server" in made.stdout
