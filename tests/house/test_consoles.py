"""Pages are played in a shell as a reader would paste them: what they show is printed, what they do not show works.

Every block of commands is played, here or where ``ELSEWHERE`` says; a line that no test can run is in ``UNPLAYED`` with
the reason. A new block is played because it is there, so it works or fails a test.
"""

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors.cli.test_reference import EXAMPLES
from tests.house.page_player import (
    PAGES,
    PASTED,
    ROOT,
    Command,
    Played,
    blocks_of,
    commands_of,
    goes_on,
    has_commands,
    lines_of,
    play,
    wrongs,
)
from tests.house.page_surroundings import MAKERS, surroundings_of
from tests.infrastructure.quick_tenure import quick_path

ELSEWHERE = {
    "README.md": "test_first_steps.py plays it beside `make run`, with the real programs",
    "docs/howto/kubernetes.md": "tests/integrations/kubernetes/test_first_page.py plays it with kubectl and helm",
    "docs/tutorial/kubernetes.md": "tests/integrations/kubernetes/test_first_page.py plays it with a real kubectl",
    "docs/tutorial/metal3-machine.md": "tests/integrations/kubernetes/metal3_data/test_machine_page.py plays it",
    "docs/tutorial/two-clusters.md": "tests/integrations/kubernetes/test_two_clusters_page.py plays it",
    "docs/howto/vm-pool.md": "tests/integrations/vmpool/test_vm_pool_page.py plays it with a real kubectl",
    "docs/howto/vm-pool-sizing.md": "tests/integrations/vmpool/test_vm_pool_page.py plays it",
    "docs/tutorial/vm-pool.md": "tests/integrations/vmpool/test_vm_pool_page.py plays it with a real kubectl",
    "docs/reference/cli.md": "tests/doors/cli/test_reference.py runs each example on a site of its own",
}
"""Pages that another test plays."""

UNPLAYED = {
    "README.md": {
        "make run": "test_first_steps.py runs what it runs, and plays the page beside it",
        "make test": "it is this very run",
        "tenure manifests": "it needs a cluster: tests/integrations/kubernetes/test_first_page.py plays the tutorial",
        "tenure operator": "it needs a cluster: tests/integrations/kubernetes/test_first_page.py plays the tutorial",
        "tenure vmpool": "it needs a cluster: tests/integrations/vmpool/test_vm_pool_page.py plays it",
        "kubectl create namespace": "it needs a cluster: tests/integrations/vmpool/test_vm_pool_page.py plays it",
    },
    "docs/howto/neutron.md": {
        "pip install": "it takes packages from an index",
        "neutron-db-manage": "it needs a whole Neutron's tables: tests/integrations/neutron/test_migration.py runs it",
    },
    "docs/howto/serve.md": {"pip install": "it takes packages from an index"},
}
"""Lines of pages, by how they begin, that cannot be played, and why."""

KINDS = PASTED | {"", "fish", "ini", "json", "py", "python", "text", "toml", "yaml"}
"""The kinds of blocks: what is pasted into a shell is called by one of two names."""

REFERENCE = ROOT / "docs" / "reference" / "cli.md"
PLAYED = [page for page in PAGES if has_commands(page) and page.relative_to(ROOT).as_posix() not in ELSEWHERE]
NEUTRON = ("tenure.integrations.neutron.maintenance.run", "tenure.integrations.neutron.maintenance.neutron_settings")


def name_of(page: Path) -> str:
    """Name a page by its path."""
    return page.relative_to(ROOT).as_posix()


def playable(name: str) -> list[Command]:
    """Return the commands of a page that can be played."""
    never = tuple(UNPLAYED.get(name, ()))
    return [
        each for each in commands_of((ROOT / name).read_text("utf-8")) if not (never and each.text.startswith(never))
    ]


@pytest.fixture(scope="module")
def front() -> Iterator[Path]:
    """Give programs that are quick to begin."""
    with quick_path() as folder:
        yield folder


@pytest.fixture(scope="module")
def neutrons_front() -> Iterator[Path]:
    """Give the same with a Neutron in it, which takes seconds to import."""
    with quick_path(*NEUTRON) as folder:
        yield folder


@pytest.mark.parametrize("page", PLAYED, ids=name_of)
def test_commands_print_what_the_page_says(
    page: Path, tmp_path: Path, front: Path, request: pytest.FixtureRequest
) -> None:
    if page.name == "neutron.md":
        front = request.getfixturevalue("neutrons_front")
    with surroundings_of(name_of(page), tmp_path) as here:
        expected = here.around(playable(name_of(page)))

        played = play([command.text for command in expected], tmp_path, front, **here.environment)

    assert wrongs(expected, played, here.findings) == []


def test_the_tutorials_are_among_the_pages() -> None:
    tutorials = ROOT / "docs" / "tutorial"

    assert {tutorials / "shared-site.md", tutorials / "networks.md", tutorials / "deployments.md"} <= set(PLAYED)


def test_examples_of_the_reference_are_read_by_a_shell_as_the_test_that_runs_them_reads_them() -> None:
    blocks = [text for kind, text in blocks_of(REFERENCE.read_text("utf-8")) if kind == "sh" and "eval" not in text]
    spoken = "tenure() { printf '%s\\0' \"$@\"; printf '\\n'; }\n" + "".join(blocks)

    read = subprocess.run(["bash", "-e"], input=spoken, capture_output=True, text=True, check=True).stdout

    assert [line.split("\0")[:-1] for line in read.splitlines()] == EXAMPLES


def test_completion_is_switched_on_as_the_reference_says(tmp_path: Path, front: Path) -> None:
    [line] = [each.text for each in commands_of(REFERENCE.read_text("utf-8")) if "eval" in each.text]

    switched_on, asked = play([line, "complete -p tenure"], tmp_path, front)

    assert (switched_on.code, asked.code) == (0, 0)
    assert "tenure" in asked.printed


def test_what_is_not_played_is_on_its_page() -> None:
    lines = {name: [each.text for each in commands_of((ROOT / name).read_text("utf-8"))] for name in UNPLAYED}
    missing = [
        (name, begin)
        for name, never in UNPLAYED.items()
        for begin in never
        if not any(line.startswith(begin) for line in lines[name])
    ]

    assert missing == []
    assert [name for name in (*ELSEWHERE, *MAKERS) if not has_commands(ROOT / name)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_block_says_of_which_kind_it_is(page: Path) -> None:
    assert {kind for kind, _ in blocks_of(page.read_text("utf-8"))} <= KINDS


def test_a_file_that_a_page_shows_is_saved_where_it_stands(tmp_path: Path) -> None:
    show, file = "```console\n$ cat a.yml\n{}```\n\n", "# a.yml\nx: $HOME\n"
    page = show.format("") + f"```yaml\n{file}```\n\n" + show.format(file)
    expected = commands_of(page)

    missing, _, shown = play([command.text for command in expected], tmp_path)

    assert "No such file" in missing.printed
    assert shown.printed == expected[-1].prints == file


def test_a_block_in_a_list_is_found_and_a_line_that_goes_on_is_one_command() -> None:
    page = "1. First:\n\n   ```sh\n   echo a \\\n     b\n   echo c   # why\n   ```\n"

    assert commands_of(page) == [Command("echo a \\\n  b"), Command("echo c   # why")]


def test_a_command_that_fails_or_prints_something_else_is_found(tmp_path: Path) -> None:
    page = "```sh\ntrue\nfalse\n```\n\n```console\n$ echo a\nb\n```\n"
    expected = commands_of(page)

    found = wrongs(expected, play([command.text for command in expected], tmp_path))

    assert found == ["$ false\n[1]", "$ echo a\na\n[0]"]
    assert wrongs([*expected, Command("echo c")], [Played("", 0)] * 2)[-1] == "$ echo c\nwas not reached"


def test_a_server_that_is_not_in_the_background_is_stopped() -> None:
    assert goes_on("tenure serve     # as it is")
    assert not goes_on("tenure serve --check")
    assert not goes_on("tenure serve > log &")
    assert shlex.split(lines_of("tenure serve\n")[0]) == ["tenure", "serve"]
