"""Write the blocking verbs from the asynchronous ledger: same verbs, same words, no await.

Run it after changing a verb; ``--check`` fails if a file is not what it would write.
"""

import argparse
import ast
import subprocess
import sys
from pathlib import Path

SERVICE = Path(__file__).parent.parent / "src" / "tenure" / "service"
SOURCES = {
    "plan_verbs.py": "PlanVerbs",
    "holding_verbs.py": "HoldingVerbs",
    "waiting_verbs.py": "WaitingVerbs",
    "reading_verbs.py": "ReadingVerbs",
    "ledger.py": "AsyncLedger",
}

PLAN = """The ledger's verbs on the plan, for callers who block. Written by tools/make_blocking.py."""
READING = """The ledger's reading verbs for callers who block. Written by tools/make_blocking.py."""
VERBS = """The ledger's verbs for callers who block. Written by tools/make_blocking.py from the asynchronous ones."""

HEADS = {
    "blocking_plan.py": f'''"""{PLAN}"""

%s
from tenure.service.ledger import AsyncLedger
from tenure.service.portal import Portal


class BlockingPlanVerbs:
    """Every verb on the plan, run to its end."""

    def __init__(self, ledger: AsyncLedger, portal: Portal) -> None:
        self._ledger = ledger
        self._portal = portal
''',
    "blocking_reading.py": f'''"""{READING}"""

%s
from tenure.service.blocking_plan import BlockingPlanVerbs


class BlockingReadingVerbs(BlockingPlanVerbs):
    """Every verb that looks something up, run to its end."""
''',
    "blocking_verbs.py": f'''"""{VERBS}"""

%s
from tenure.service.blocking_reading import BlockingReadingVerbs


class BlockingVerbs(BlockingReadingVerbs):
    """Every verb of the asynchronous ledger, run to its end."""
''',
}
"""How each file begins; its imports go where %s stands."""

GROUPS = {
    "blocking_plan.py": ["plan_verbs.py"],
    "blocking_reading.py": ["reading_verbs.py"],
    "blocking_verbs.py": ["holding_verbs.py", "waiting_verbs.py", "ledger.py"],
}
"""Which verbs go into which file."""


def verbs(tree: ast.Module, name: str) -> list[ast.AsyncFunctionDef]:
    """Find the public verbs of a class."""
    [owner] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    found = [node for node in owner.body if isinstance(node, ast.AsyncFunctionDef)]
    return [node for node in found if not node.name.startswith("_") and node.name != "close"]


def call(verb: ast.AsyncFunctionDef) -> str:
    """Write the call that passes a verb on."""
    positional = [argument.arg for argument in verb.args.args[1:]]
    keywords = [f"{argument.arg}={argument.arg}" for argument in verb.args.kwonlyargs]
    rest = [] if verb.args.kwarg is None else [f"**{verb.args.kwarg.arg}"]
    return f"self._ledger.{verb.name}({', '.join(positional + keywords + rest)})"


def method(verb: ast.AsyncFunctionDef) -> str:
    """Write the blocking twin of a verb."""
    streams = any(isinstance(node, ast.Yield) for node in ast.walk(verb))
    assert verb.returns is not None
    returns = ast.unparse(verb.returns).replace("AsyncIterator", "Iterator")
    text = ast.get_docstring(verb, clean=False)
    runner = "iterate" if streams else "run"
    body = f"return self._portal.{runner}({call(verb)})"
    above = "".join(f"    @{ast.unparse(decorator)}\n" for decorator in verb.decorator_list)
    signature = f"{above}    def {verb.name}({ast.unparse(verb.args)}) -> {returns}:"
    return f'{signature}\n        """{text}"""\n        {body}\n'


def imports(tree: ast.Module) -> list[tuple[str, str]]:
    """List what a module imports by name, as (module, name)."""
    lines = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return [(line.module or "", alias.name) for line in lines for alias in line.names]


def render(target: str) -> str:
    """Write one file."""
    trees = {file: ast.parse((SERVICE / file).read_text("utf-8")) for file in GROUPS[target]}
    methods = [method(verb) for file, tree in trees.items() for verb in verbs(tree, SOURCES[file])]
    used = {node.id for piece in methods for node in ast.walk(ast.parse(_dedent(piece))) if isinstance(node, ast.Name)}
    lines = {"from collections.abc import Iterator"} if "Iterator" in used else set()
    for tree in trees.values():
        lines |= {f"from {module} import {name}" for module, name in imports(tree) if name in used}
    text = HEADS[target] % "\n".join(sorted(lines)) + "\n" + "\n".join(methods)
    fixed = _ruff(["check", "--select", "I,F401", "--fix", "--quiet", "--exit-zero"], target, text)
    return _ruff(["format", "--quiet"], target, fixed)


def _dedent(piece: str) -> str:
    return "class _:\n" + piece


def _ruff(arguments: list[str], target: str, text: str) -> str:
    command = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", str(SERVICE / target), "-"]
    return subprocess.run(command, input=text, text=True, capture_output=True, check=True).stdout


def main() -> int:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a file is out of date")
    texts = {target: render(target) for target in GROUPS}
    if not parser.parse_args().check:
        for target, text in texts.items():
            (SERVICE / target).write_text(text, "utf-8")
        return 0
    stale = [target for target, text in texts.items() if (SERVICE / target).read_text("utf-8") != text]
    print(f"out of date, run tools/make_blocking.py: {', '.join(stale)}" if stale else "generated files are current")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
