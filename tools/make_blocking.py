"""Write the blocking verbs from the asynchronous ledger: same verbs, same words, no await.

Run it after changing a verb; ``--check`` fails if the file is not what it would write.
"""

import argparse
import ast
import subprocess
import sys
from pathlib import Path

SERVICE = Path(__file__).parent.parent / "src" / "tenure" / "service" / "ledger"
SOURCE, OWNER = SERVICE / "async_ledger.py", "AsyncLedger"
TARGET = SERVICE / "blocking/verbs_sync.py"

BY_HAND = {"asked_by", "close", "inside"}
"""Verbs that the blocking ledger has in words of its own (``ledger_sync.py``)."""

HEAD = '''"""The ledger's verbs for callers who block. Written by tools/make_blocking.py from the asynchronous ones."""

%s
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.ledger.blocking.loop_thread import LoopThread


class BlockingVerbs:
    """Every verb of the asynchronous ledger, run to its end."""

    def __init__(self, ledger: AsyncLedger, portal: LoopThread) -> None:
        self._ledger = ledger
        self._portal = portal
'''
"""How the file begins; its imports go where %s stands."""

Verb = ast.AsyncFunctionDef | ast.FunctionDef


def verbs(tree: ast.Module) -> list[Verb]:
    """Find the public verbs of the ledger; those that are not awaited stream."""
    [owner] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == OWNER]
    found = [node for node in owner.body if isinstance(node, Verb)]
    return [node for node in found if not node.name.startswith("_") and node.name not in BY_HAND]


def call(verb: Verb) -> str:
    """Write the call that passes a verb on."""
    positional = [argument.arg for argument in verb.args.args[1:]]
    keywords = [f"{argument.arg}={argument.arg}" for argument in verb.args.kwonlyargs]
    rest = [] if verb.args.kwarg is None else [f"**{verb.args.kwarg.arg}"]
    return f"self._ledger.{verb.name}({', '.join(positional + keywords + rest)})"


def method(verb: Verb) -> str:
    """Write the blocking twin of a verb."""
    assert verb.returns is not None
    returns = ast.unparse(verb.returns).replace("AsyncIterator", "Iterator")
    text = ast.get_docstring(verb, clean=False)
    runner = "run" if isinstance(verb, ast.AsyncFunctionDef) else "iterate"
    body = f"return self._portal.{runner}({call(verb)})"
    above = "".join(f"    @{ast.unparse(decorator)}\n" for decorator in verb.decorator_list)
    signature = f"{above}    def {verb.name}({ast.unparse(verb.args)}) -> {returns}:"
    return f'{signature}\n        """{text}"""\n        {body}\n'


def imports(tree: ast.Module) -> list[tuple[str, str]]:
    """List what a module imports by name, as (module, name)."""
    lines = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return [(line.module or "", alias.name) for line in lines for alias in line.names]


def render() -> str:
    """Write the file."""
    tree = ast.parse(SOURCE.read_text("utf-8"))
    methods = [method(verb) for verb in verbs(tree)]
    used = {node.id for piece in methods for node in ast.walk(ast.parse(_dedent(piece))) if isinstance(node, ast.Name)}
    lines = {f"from {module} import {name}" for module, name in imports(tree) if name in used}
    lines |= {"from collections.abc import Iterator"} if "Iterator" in used else set()
    text = HEAD % "\n".join(sorted(lines)) + "\n" + "\n".join(methods)
    fixed = _ruff(["check", "--select", "I,F401", "--fix", "--quiet", "--exit-zero"], text)
    return _ruff(["format", "--quiet"], fixed)


def _dedent(piece: str) -> str:
    return "class _:\n" + piece


def _ruff(arguments: list[str], text: str) -> str:
    command = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(command, input=text, text=True, capture_output=True, check=True).stdout


def main() -> int:
    """Write the file, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the file is out of date")
    text = render()
    if not parser.parse_args().check:
        TARGET.write_text(text, "utf-8")
        return 0
    stale = TARGET.read_text("utf-8") != text
    print(f"out of date, run tools/make_blocking.py: {TARGET.name}" if stale else "generated files are current")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
