"""``docs/reference/comparison.md``: every cell of ours has a command, and what the commands name is there."""

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from tools.build_kube import find_program

from tenure.doors.cli.main import main
from tenure.integrations.kubernetes.operator_settings import OperatorSettings
from tenure.integrations.kubernetes.shipped_manifests import documents_of
from tests.house.page_player import ROOT, play
from tests.infrastructure.kube import OPERATOR, private_kube
from tests.integrations.kubernetes.cluster import install
from tests.integrations.kubernetes.metal3.serving import Namespace
from tests.integrations.kubernetes.test_operator import operator

PAGE = ROOT / "docs" / "reference" / "comparison.md"
HEAD = "| point | Tenure | Metal3 | in-cluster | Whereabouts | shown by |"
DEFINITIONS = {
    name: each["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for each in documents_of(["crds"])
    for name in (each["spec"]["names"][form] for form in ("singular", "plural"))
}
ROW = re.compile(r"^\| (?!point |---)(.+) \|$", re.MULTILINE)


def rows() -> list[list[str]]:
    """Return the cells of every row."""
    return [row.split(" | ") for row in ROW.findall(PAGE.read_text("utf-8"))]


COMMANDS = [re.fullmatch(r"`(.+)`", cells[-1]) for cells in rows()]


def field_is_there(kind: str, path: str) -> bool:
    """Return whether the definition of a kind has a field."""
    schema = DEFINITIONS[kind]
    for name in filter(None, path.split(".")):
        schema = (schema.get("items") or schema).get("properties", {}).get(name)
        if schema is None:
            return False
    return True


def kubectl_works(words: list[str]) -> bool:
    """Judge ``kubectl explain FIELD``, ``kubectl get KINDS [NAME] [-o jsonpath={.FIELD}]`` and ``kubectl tenure``."""
    verb, *rest = words
    if verb == "tenure":
        return tenure_works(["ipam", *rest])
    if verb == "explain":
        kind, _, path = rest[0].partition(".")
        return field_is_there(kind, path)
    path = next((word for word in rest if word.startswith("jsonpath=")), "jsonpath={.}")
    field = path.removeprefix("jsonpath={.").removesuffix("}")
    return verb == "get" and all(field_is_there(kind, field) for kind in rest[0].split(","))


def tenure_works(words: list[str]) -> bool:
    """Judge a command of ours by its options and arguments, which are read and not carried out.

    One that checks settings shows nothing of what they do.
    """
    if "--check" in words:
        return False
    command: click.Command = main
    context = click.Context(main, info_name="tenure")
    while isinstance(command, click.Group):
        name, *words = words
        below = command.get_command(context, name)
        assert below is not None, name
        command = below
    return bool(command.make_context(name, words, parent=context).params)


def names_in(path: Path, *, in_proof: bool) -> Iterator[str]:
    """Yield the tests of a module or folder that are run: without ``TENURE_PROOF`` those of the proof are not."""
    for module in path.rglob("test_*.py") if path.is_dir() else [path]:
        body = ast.parse(module.read_text("utf-8")).body
        marks = [
            ast.unparse(each.value) for each in body if isinstance(each, ast.Assign) and "pytestmark" in names(each)
        ]
        for test in (each for each in body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)):
            is_proof = any("mark.proof" in each for each in [*marks, *map(ast.unparse, test.decorator_list)])
            if test.name.startswith("test_") and (in_proof or not is_proof):
                yield test.name


def names(assigned: ast.Assign) -> list[str]:
    """Return the names that are assigned to."""
    return [each.id for each in assigned.targets if isinstance(each, ast.Name)]


def pytest_works(words: list[str], *, in_proof: bool = False) -> bool:
    """Judge ``.venv/bin/pytest PATH [-k PART]``: some test has that part in its name, and is run."""
    path, *more = words
    part = more[1] if more[:1] == ["-k"] else ""
    return (ROOT / path).exists() and any(part in name for name in names_in(ROOT / path, in_proof=in_proof))


def make_works(words: list[str]) -> bool:
    """Judge ``make bench ARGS="--only WORD"``: some pair that is measured has that word in its name."""
    target, variable = words
    word = variable.removeprefix("ARGS=--only ")
    cases = "".join(path.read_text("utf-8") for path in (ROOT / "bench").glob("*_cases.py"))
    pairs = re.findall(r'Pair\("([\w-]+)"', cases)
    return f"\n{target}:" in (ROOT / "Makefile").read_text("utf-8") and any(word in name for name in pairs)


WORKS: dict[str, Callable[[list[str]], bool]] = {
    "kubectl": kubectl_works,
    "tenure": tenure_works,
    ".venv/bin/pytest": pytest_works,
    "TENURE_PROOF=1": lambda words: words[0] == ".venv/bin/pytest" and pytest_works(words[1:], in_proof=True),
    "make": make_works,
    "helm": lambda words: words[0] == "template" and (ROOT / words[1] / "Chart.yaml").exists(),
    "curl": lambda words: words == [f"http://127.0.0.1:{OperatorSettings().port}/metrics"],
}


def test_every_row_has_six_cells_and_a_command() -> None:
    text = PAGE.read_text("utf-8")

    assert len(rows()) > 25
    assert [cells[0] for cells, command in zip(rows(), COMMANDS, strict=True) if len(cells) != 6 or not command] == []
    assert text.count(HEAD) == text.count("\n|---|")


@pytest.mark.parametrize("command", sorted({each[1] for each in COMMANDS if each}))
def test_what_a_command_names_is_there(command: str) -> None:
    program, *words = shlex.split(command)

    assert WORKS[program](words)


@pytest.mark.parametrize(
    "command",
    [
        "kubectl explain ippool.spec.tenure.none",
        "kubectl get ippool p -o jsonpath={.status.none}",
        ".venv/bin/pytest tests/house/test_layout.py -k test_none",
        ".venv/bin/pytest tests/integrations/kubernetes/metal3 -k ours_takes_over",
        "tenure operator --controllers metal3 --check",
        "helm template deploy/helm/none",
        'make bench ARGS="--only none"',
    ],
)
def test_a_command_that_names_what_is_not_there_would_be_found(command: str) -> None:
    program, *words = shlex.split(command)

    assert not WORKS[program](words)


@pytest.mark.proof
def test_the_commands_that_look_at_a_cluster_run(tmp_path: Path) -> None:
    """On a pool and a claim as the page names them; tests and measurements are run by themselves."""
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    commands = [each[1] for each in COMMANDS if each and not each[1].startswith((".venv/bin/pytest", "TENURE", "make"))]
    with private_kube() as server:
        install(server)
        space = Namespace(server, "default")
        space.pool("machines", "10.40.8.2-10.40.8.9")
        space.claim("web-0", "machines")
        with operator(server.kubeconfig(OPERATOR), "--no-webhooks", "--controllers", "metal3") as replica:
            assert space.served("web-0", 60)["spec"]["address"] == "10.40.8.2"
            usual = f"http://127.0.0.1:{OperatorSettings().port}"
            here = [each.replace(usual, replica.said["url"]) for each in commands]
            programs = [find_program(name).parent for name in ("kubectl", "helm")]
            played = play(here, tmp_path, *programs, KUBECONFIG=str(server.kubeconfig()))

    assert [(command, was) for command, was in zip(here, played, strict=True) if was.code != 0] == []
    assert "web-0" in played[here.index("kubectl tenure why 10.40.8.2")].printed
