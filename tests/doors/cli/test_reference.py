"""The help texts, the reference and the commands say the same; the examples in them run."""

import inspect
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tenure.doors.cli.framework.exit_codes import EXIT_MEANINGS, EXITS
from tenure.doors.cli.main import main
from tenure.doors.cli.output.json_keys import ANSWERS
from tests.doors.cli.deployment_site import build_work
from tests.doors.cli.site import Site

ROOT = Path(__file__).parents[3]
READING = {"show", "search", "history", "why", "watch", "verify", "completion"}

FOLLOWED_BY_FINDINGS = {"audit": 1}
"""Examples whose sources do not agree, as the site has it."""

KUBECONFIG = {
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://cluster.example.org:6443"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
}


TEMPLATE = {
    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
    "kind": "Metal3DataTemplate",
    "metadata": {"name": "nodepool-1"},
    "spec": {
        "clusterName": "cluster-1",
        "metaData": {"objectNames": [{"key": "hostname", "object": "baremetalhost"}]},
        "networkData": {"networks": {"ipv4": [{"id": "a", "link": "eno1", "ipAddressFromIPPool": "pool-1"}]}},
    },
}


def leaves(group: click.Group, above: click.Context, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command that does something, with the words that lead to it."""
    for name in group.list_commands(above):
        command = group.get_command(above, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, above, *path, name)
        else:
            yield (*path, name), command


COMMANDS = dict(leaves(main, click.Context(main)))


def examples(command: click.Command) -> list[list[str]]:
    """Read the examples out of a help text."""
    _, _, lines = inspect.cleandoc(command.help or "").partition("For example:\n")
    return [shlex.split(line)[1:] for line in lines.splitlines()]


EXAMPLES = [words for command in COMMANDS.values() for words in examples(command)]
IN_A_CLUSTER = [
    words for words in EXAMPLES if words[0] == "vmpool" and words[1] != "manifests" and "--check" not in words
]
"""Examples that tests/integrations/vmpool/test_vmpool_commands.py runs, on a real API server."""
ON_POOLS = [words for words in EXAMPLES if words[0] == "ipam"]
"""Examples that tests/integrations/kubernetes/metal3/ledger/test_ipam_commands.py runs there."""
HERE = [words for words in EXAMPLES if words not in IN_A_CLUSTER + ON_POOLS]


@pytest.fixture(scope="module")
def built_examples(built_deployments: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build what the examples speak of: the site, machines and deployments on it, and work that goes on."""
    folder = tmp_path_factory.mktemp("examples") / "site"
    shutil.copytree(built_deployments, folder)
    build_work(Site(folder))
    (folder / "admin.conf").write_text(json.dumps(KUBECONFIG), "utf-8")
    (folder / "template.yaml").write_text(json.dumps(TEMPLATE), "utf-8")
    return folder


@pytest.fixture
def site(built_examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Give a copy of what the examples speak of, and stand in its folder."""
    folder = tmp_path / "examples"
    shutil.copytree(built_examples, folder)
    monkeypatch.chdir(folder)
    return Site(folder)


def test_the_reference_is_what_the_commands_say() -> None:
    command = [sys.executable, str(ROOT / "tools" / "make_cli_reference.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "the page is current\n")


def test_every_command_of_the_issue_is_there() -> None:
    wanted = (
        "network instance node group subnet pool reserve allocate release hold confirm cancel transfer show search "
        "history why watch "
        "import export audit backup restore copy verify sweep waiting render bench completion deployment"
    )

    assert set(wanted.split()) <= {path[0] for path in COMMANDS}


def test_every_command_has_a_line_of_help_and_an_example_of_itself() -> None:
    first = {path: inspect.cleandoc(command.help or "").partition("\n\n")[0] for path, command in COMMANDS.items()}

    assert [path for path, line in first.items() if not line.endswith(".") or "\n" in line] == []
    assert [path for path, command in COMMANDS.items() if not examples(command)] == []
    assert [
        words for path, command in COMMANDS.items() for words in examples(command) if tuple(words[: len(path)]) != path
    ] == []


def test_help_shows_every_option_of_a_command_and_those_that_go_anywhere(site: Site) -> None:
    missing = []
    for path, command in COMMANDS.items():
        shown = site.text(*path, "--help")
        options = [flag for parameter in command.params for flag in parameter.opts if flag.startswith("--")]
        missing += [(path, flag) for flag in [*options, "--store", "--json", "--no-color"] if flag not in shown]

    assert len(COMMANDS) > 100
    assert missing == []


@pytest.mark.sampled
@pytest.mark.parametrize("words", HERE, ids=" ".join)
def test_an_example_runs(words: list[str], site: Site) -> None:
    result = site.call(*words)

    assert result.exit_code == FOLLOWED_BY_FINDINGS.get(words[0], 0), result.output


@pytest.mark.sampled
@pytest.mark.parametrize("words", HERE, ids=" ".join)
def test_an_example_answers_with_json(words: list[str], site: Site) -> None:
    result = site.call(*(word for word in words if word != "--json"), "--json")

    assert result.exit_code == FOLLOWED_BY_FINDINGS.get(words[0], 0), result.output
    for document in result.stdout.splitlines() if words[0] == "watch" else [result.stdout]:
        json.loads(document)


@pytest.mark.parametrize("words", [words for words in EXAMPLES if words[0] in READING], ids=" ".join)
def test_json_may_be_asked_for_before_the_command_or_behind_it(words: list[str], site: Site) -> None:
    plain = [word for word in words if word != "--json"]

    assert site.text("--json", *plain) == site.text(*plain, "--json")


def test_json_may_be_asked_for_between_noun_and_verb(site: Site) -> None:
    assert site.text("network", "--json", "list") == site.text("network", "list", "--json")


def test_the_tour_in_the_main_help_runs_in_order(site: Site) -> None:
    outputs = [site.text(*words) for words in examples(main)]

    assert outputs[3] == "203.0.113.10 held by instance/web-0 in net3\n"
    assert "held 1" in outputs[4]


def test_every_verb_of_a_noun_of_several_files_is_in_its_help_and_in_the_reference(site: Site) -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")

    for noun in ("network", "instance", "deployment", "vmpool", "ipam"):
        shown = site.text(noun, "--help")
        for verb in (path[1] for path in COMMANDS if path[0] == noun):
            assert f"\n  {verb} " in shown
            assert f"\n### tenure {noun} {verb}\n" in page


def test_every_command_tells_what_it_answers() -> None:
    told = " ".join(ANSWERS)

    assert [path for path in COMMANDS if path[0] not in told] == []


def test_every_exit_code_that_can_happen_is_explained() -> None:
    assert set(EXITS.values()) <= EXIT_MEANINGS.keys()
    page = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
    assert all(f"| {code} | {meaning} |" in page for code, meaning in EXIT_MEANINGS.items())
