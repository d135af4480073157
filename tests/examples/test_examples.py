"""Every example runs by itself, in an empty folder, without a word on stderr."""

import subprocess
import sys
from pathlib import Path

import pytest

import tenure

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*/*.py"))


def run(script: Path, folder: Path) -> str:
    """Run a script with warnings as errors, and return what it printed."""
    command = [sys.executable, "-W", "error", str(script)]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_there_are_examples() -> None:
    assert {script.parent.name for script in SCRIPTS} >= {"first_page", "many_callers", "one_plan", "several_processes"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_runs_and_says_something(script: Path, tmp_path: Path) -> None:
    printed = run(script, tmp_path)

    assert printed.strip()


def test_the_history_of_the_demo_company_is_in_the_order_of_time(tmp_path: Path) -> None:
    run(EXAMPLES / "demo_company" / "demo_company.py", tmp_path)

    with tenure.open(f"sqlite:///{tmp_path / 'demo.db'}") as ledger:
        times = [change.at for change in ledger.changes(after=0)]
        networks = ledger.networks()
        held = [holding for network in networks for holding in ledger.holdings(network.name)]
        histories = [ledger.history(holding.address, network=holding.network) for holding in held]
        tenures = [tenure for history in histories for tenure in history.tenures]
    assert times == sorted(times)
    assert len([tenure for tenure in tenures if tenure.until]) > 50
    assert [str(tenure) for tenure in tenures if tenure.since and tenure.until and tenure.until < tenure.since] == []
    began = {(holding.address, history.tenures[-1].since) for holding, history in zip(held, histories, strict=True)}
    assert began == {(holding.address, holding.since) for holding in held}
    weeks = (times[-1] - times[0]).days / 7
    assert weeks > 5
    assert [network.name for network in networks if network.created_us > times[100].timestamp() * 1_000_000] == []


def test_the_tour_shows_every_statement_of_the_first_page_and_what_it_gave(tmp_path: Path) -> None:
    page = (EXAMPLES / "first_page" / "first_page.py").read_text("utf-8").split('"""', 2)[2]
    statements = [line for line in page.splitlines() if line and not line.startswith("#")]

    printed = run(EXAMPLES / "first_page" / "tour.py", tmp_path)

    shown = [line.strip()[4:] for line in printed.splitlines() if line.strip().startswith((">>> ", "... "))]
    assert shown[: len(statements)] == statements
    assert "192.0.2.10 24 192.0.2.1 instance/web-0 held" in printed


def test_the_tour_can_be_repeated_because_it_leaves_nothing_behind(tmp_path: Path) -> None:
    run(EXAMPLES / "first_page" / "tour.py", tmp_path)

    assert list(tmp_path.iterdir()) == []
