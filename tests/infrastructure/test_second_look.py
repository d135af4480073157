"""A second look is for what the load explains alone."""

import pytest

from tests.infrastructure.second_look import MOST, worth_a_second_look

BROWSER = "tests/doors/http/web/browser/test_page.py::test_a"


def test_few_failures_that_wait_for_something_are_run_again() -> None:
    assert worth_a_second_look([BROWSER])
    assert worth_a_second_look(["tests/integrations/kubernetes/test_two_replicas.py::test_killed_grid[race]"])


@pytest.mark.parametrize(
    "name",
    [
        "tests/proof/test_fill.py::test_a",
        "tests/proof/fire/test_rules.py::test_a",
        "tests/house/test_layout.py::test_a",
        "tests/contract/book/test_races.py::test_a[sqlite]",
        "tests/integrations/kubernetes/metal3/test_crash_grid.py::test_a",
        "tests/integrations/kubernetes/metal3/test_operator_kill.py::test_a",
        "tests/integrations/bosh/kills/test_deploy.py::test_a",
        "tests/integrations/vmpool/test_many_processes.py::test_a",
    ],
)
def test_what_must_never_be_is_found_the_first_time(name: str) -> None:
    assert not worth_a_second_look([name])
    assert not worth_a_second_look([BROWSER, name])


def test_neither_nothing_nor_many_failures_are_run_again() -> None:
    assert not worth_a_second_look([])
    assert not worth_a_second_look([f"{BROWSER}[{number}]" for number in range(MOST + 1)])
