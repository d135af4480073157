"""Write docs/reference/cli.md from the commands themselves: help texts, arguments, options, exit codes, documents.

Run it after changing a command; ``--check`` fails if the page is not what it would write.
"""

import argparse
import inspect
from collections.abc import Iterator
from pathlib import Path

import click

from tenure.doors.cli.framework.click_base import EVERYWHERE
from tenure.doors.cli.framework.exit_codes import EXIT_MEANINGS
from tenure.doors.cli.main import SECTIONS, main
from tenure.doors.cli.output.json_keys import ANSWERS, DOCUMENTS

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"

HEAD = """# Reference: the command line

Written by `tools/make_cli_reference.py` from the commands themselves and compared by a test. `tenure COMMAND --help`
says the same.

Which ledger: `--store URL`, else the variable `TENURE_STORE`, else `sqlite:///tenure.db`; URLs are listed in
[stores](stores.md). Answers go to standard output: tables for people, with `--json` documents for scripts. Errors go to
standard error as `tenure: message` and a hint on what to do next; with `--json` as
`{"error": {"code", "message", "field", …, "hint"}}`. Codes and data are those of [errors](errors.md), and three
more: `usage` for a command line that cannot be read, `file` for a file that cannot, `output` for an answer that cannot
be written. Warnings go to standard error as `tenure: warning: message`; with `--json` into the answer, under
`warnings`. A missing SQLite file is made by `network add`, `network import-ganeti`, `group add`,
`deployment upload-config` and `apply`, `import`, `restore`, `copy`, `serve` and `bench` only. Colours and progress
appear on a terminal only. Times are ISO 8601 in UTC.

A cloud config or manifest that is wrong is told with all its faults, one a line: document, line, column, path, message,
BOSH's name and number; with `--json` in the error, as a list of faults under `faults`.

Fields of `-o` are listed in [network-fields](network-fields.md), hooks and their variables in [hooks](hooks.md).
"""

COMPLETION = """## Completion

```sh
eval "$(tenure completion bash)"        # in ~/.bashrc; likewise zsh in ~/.zshrc
```

```fish
tenure completion fish | source         # in ~/.config/fish/config.fish
```

Names of networks, subnets, pools, instances, nodes, groups and deployments are completed from the store, if it answers
within two seconds.
"""


def page() -> str:
    """Write the whole page."""
    pieces = [HEAD, "## Options anywhere\n", "They may stand before a command or behind it.\n", _options(EVERYWHERE)]
    pieces += ["## Exit codes\n", "| code | meaning |\n|---|---|", *_exit_rows(), ""]
    context = click.Context(main, info_name="tenure")
    for title, names in SECTIONS.items():
        pieces.append(f"## {title}\n")
        for name in names:
            command = main.get_command(context, name)
            assert command is not None
            pieces += _command(command, context, name)
    pieces += [COMPLETION, *_documents()]
    return "\n".join(pieces).rstrip("\n") + "\n"


def _exit_rows() -> Iterator[str]:
    return (f"| {code} | {meaning} |" for code, meaning in EXIT_MEANINGS.items())


def _command(command: click.Command, above: click.Context, name: str) -> Iterator[str]:
    """Write a command: how it is called, what it does, an example, its options; then its verbs."""
    context = click.Context(command, parent=above, info_name=name)
    yield f"### {context.command_path}\n"
    words, _, examples = inspect.cleandoc(command.help or "").replace("\b\n", "").partition("For example:\n")
    if not isinstance(command, click.Group):
        yield f"```text\n{context.command_path} {' '.join(command.collect_usage_pieces(context))}\n```\n"
    yield words.strip() + "\n"
    if not isinstance(command, click.Group):
        yield f"```sh\n{inspect.cleandoc(examples)}\n```\n"
    if own := [p for p in command.params if isinstance(p, click.Option)]:
        yield _options(own)
    if isinstance(command, click.Group):
        for verb in command.list_commands(context):
            below = command.get_command(context, verb)
            assert below is not None
            yield from _command(below, context, verb)


def _options(options: list[click.Option]) -> str:
    rows = (option.get_help_record(click.Context(main)) for option in options)
    lines = [f"| `{_cell(row[0])}` | {_cell(row[1])} |" for row in rows if row is not None]
    return "\n".join(["| option | meaning |", "|---|---|", *lines]) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _documents() -> Iterator[str]:
    yield "## JSON documents\n"
    yield "Keys are stable: new ones may be added, none is renamed or removed.\n"
    yield "| command | answers |\n|---|---|"
    for commands, answer in ANSWERS.items():
        yield f"| {', '.join(f'`{command}`' for command in commands.split(', '))} | {answer} |"
    for name, keys in DOCUMENTS.items():
        yield f"\n### Document: {name}\n\n| key | meaning |\n|---|---|"
        yield from (f"| `{key}` | {meaning} |" for key, meaning in keys.items())


def run() -> int:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the page is out of date")
    text = page()
    if not parser.parse_args().check:
        PAGE.write_text(text, "utf-8")
        return 0
    current = PAGE.exists() and PAGE.read_text("utf-8") == text
    print("the page is current" if current else "out of date, run tools/make_cli_reference.py")
    return 0 if current else 1


if __name__ == "__main__":
    raise SystemExit(run())
