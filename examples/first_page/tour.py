"""A guided tour: the first page and the promises, statement by statement, each run as it is shown.

The tour reads the two scripts beside it, so what you see is what runs: comments are the guide's words.
"""

import ast
import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
CHAPTERS = {"first_page.py": "The first page", "promises.py": "The promises"}
LONGEST_OUTPUT = 12

NEXT = """
That was a ledger of addresses, in one file. What to try next:

  .venv/bin/python                      import tenure, and open a ledger of your own
  .venv/bin/python examples/many_callers/many_callers.py     a thousand callers at once
  .venv/bin/python examples/one_plan/one_plan.py             two orchestrators, one address plan
  .venv/bin/tenure --help               the command line
  docs/tutorial/first-page.md           the same, at reading pace
  docs/tutorial/shared-site.md          from nothing to a shared /22, on the command line
  docs/tutorial/networks.md             networks, instances, NICs with several addresses
  docs/reference/library.md             every verb, with every option
  docs/architecture.md                  how it works inside
  make test                             every promise proven once; make proof does so on every store
"""


def steps(source: str) -> Iterator[tuple[str, str]]:
    """Cut a script into (what the comments before it say, statements up to the next comment)."""
    body = ast.parse(source).body[1:]  # without the docstring
    lines = source.splitlines()
    words: list[str] = []
    code: list[str] = []
    end = 0
    for node in body:
        before = [line for line in lines[end : node.lineno - 1] if line.startswith("#")]
        if before and (code or words):
            yield " ".join(words), "\n".join(code)
            words, code = [], []
        words += [line.removeprefix("#").strip() for line in before]
        code += lines[node.lineno - 1 : node.end_lineno]
        end = node.end_lineno or end
    yield " ".join(words), "\n".join(code)


def run(code: str, names: dict[str, object]) -> str:
    """Run statements as a script would, and return what they printed, or else what they made."""
    known = set(names)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "the tour", "exec"), names)  # noqa: S102 - our own examples, shown before they run
    if printed.getvalue():
        return printed.getvalue()
    made = [value for name, value in names.items() if name not in known and not name.startswith("_")]
    return "\n".join(shown(value) for value in made)


def shown(value: object) -> str:
    """Show what a step made, in a line or two; nothing for what speaks for itself."""
    if isinstance(value, list):
        ends = f": {value[0]} … {value[-1]}" if value else ""
        return f"{len(value)} of them{ends}"
    return str(value) if type(value).__name__ == "Holding" else ""


def shortened(text: str) -> list[str]:
    """Keep the beginning and the end of long output."""
    lines = text.splitlines()
    if len(lines) <= LONGEST_OUTPUT:
        return lines
    half = LONGEST_OUTPUT // 2
    return [*lines[:half], f"… {len(lines) - 2 * half} more …", *lines[-half:]]


def tell(number: int, words: str, code: str, output: str) -> None:
    """Print one step."""
    bold, dim, green, plain = ("\033[1m", "\033[2m", "\033[32m", "\033[0m") if sys.stdout.isatty() else ("",) * 4
    print(f"\n{bold}{number:2}{plain}  {words}")
    for line in code.splitlines():
        prompt = "..." if line.startswith((" ", "except", "else", ")")) else ">>>"
        print(f"    {dim}{prompt}{plain} {line}")
    for line in shortened(output):
        print(f"        {green}{line}{plain}".rstrip())


def main() -> None:
    """Walk through every chapter in a folder that is gone afterwards, so the tour can be repeated."""
    number = 0
    with tempfile.TemporaryDirectory(prefix="tenure-tour-") as folder, contextlib.chdir(folder):
        for file, title in CHAPTERS.items():
            print(f"\n{title}\n{'─' * len(title)}")
            names: dict[str, object] = {}
            for words, code in steps((HERE / file).read_text("utf-8")):
                number += 1
                tell(number, words, code, run(code, names))
            if file == "first_page.py":
                size = os.path.getsize("tenure.db")
                print(f"\n    (The whole ledger is tenure.db, {size // 1024} KiB. A real one stays where you put it.)")
    print(NEXT)


if __name__ == "__main__":
    main()
