"""Requests that schemathesis makes of the OpenAPI document meet a server that keeps to it."""

import re
import subprocess
import sys
from pathlib import Path

from tests.scale import PROOF, SAMPLE

MODULE = Path(__file__).with_name("generated_requests.py")
AT_LEAST = 160 if PROOF else 160 // SAMPLE
"""How many operations are tried, at least, with right and with wrong requests: collecting nothing must not pass."""


def test_what_the_document_allows_is_understood_and_what_it_forbids_is_refused() -> None:
    # The module runs in a process of its own so that only that process makes the cases; see there.
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "-p",
        "schemathesis",
        str(MODULE),
    ]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert passed, ran.stdout
    assert int(passed[1]) >= AT_LEAST
    assert PROOF or "deselected" in ran.stdout, "`make test` tries a sample"
