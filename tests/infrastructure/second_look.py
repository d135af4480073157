"""Run what failed in a whole run once more, alone: ``python -m tests.infrastructure.second_look``.

Three workers share two cores with servers and a browser, so that a test may wait in vain for what comes a moment later.
A test that passes alone is named as unsteady, with its first failure above; it is to be mended, and stops nobody.
Races, kills and crash grids get no second look: what they find once is found.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

FAILED = Path(".pytest_cache/v/cache/lastfailed")

MOST = 5
"""More failures than this are no accident of the load."""

FOUND_ONCE = re.compile(
    r"tests/(proof|house|kernel|contract/book)/"
    r"|/[^:]*(race|kill|crash|grid|fire|storm|crowd|many_processes|seed_managers|pivot|shared_plan|move_pool)[^/:]*(/|\.py)"
)
"""The tests of what must never be, even once, and those that no load disturbs."""


def worth_a_second_look(failed: Iterable[str]) -> bool:
    """Return whether the load may explain all of these failures."""
    names = list(failed)
    return 0 < len(names) <= MOST and not any(FOUND_ONCE.search(each) for each in names)


def main() -> int:
    """Run what failed again, and return the exit code of the whole."""
    failed = list(json.loads(FAILED.read_text("utf-8"))) if FAILED.exists() else []
    if not worth_a_second_look(failed):
        return 1
    print(f"\n{len(failed)} failed; once more, alone:", *failed, sep="\n  ", flush=True)
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *failed]
    code = subprocess.run(command, check=False).returncode
    if code == 0:
        print("\nUNSTEADY, each to be mended: failed beside others, passed alone:", *failed, sep="\n  ", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
