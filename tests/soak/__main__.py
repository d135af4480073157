"""``python -m tests.soak``: run the parts, tell how it goes, write down what came of it."""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# What is imported below has its counts by it. Not where a test imports this module: its children would run full counts.
if __name__ == "__main__":
    os.environ.setdefault("TENURE_SOAK", "1")

from tests.soak.parts import FAULTS, PARTS, Scale

ROOT = Path(__file__).parents[2]
REPORT = ROOT / ".cache" / "soak.json"


def read_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--rounds", type=int, default=Scale.rounds, help="rounds of each part")
    parser.add_argument("--seconds", type=float, default=Scale.seconds, help="seconds of load in a round, about")
    parser.add_argument("--seed", type=int, default=0, help="where the seeds of the rounds begin")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="only this part; may be repeated")
    parser.add_argument("--json", type=Path, default=REPORT, help="where the report goes")
    return parser.parse_args(words)


def run_part(name: str, seed: int, scale: Scale) -> dict[str, Any]:
    """Run one part; what it raises is a failure of it, and not of the parts behind it."""
    print(f"{name}:", flush=True)
    begun = time.monotonic()
    try:
        figures: dict[str, Any] = dict(PARTS[name](seed, scale))
    except Exception as error:
        traceback.print_exc()
        figures = {"failures": 1, "error": repr(error)}
    figures["seconds"] = round(time.monotonic() - begun, 1)
    print(f"  {name}: {figures}", flush=True)
    return figures


def faults(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Add up what must be zero."""
    return {fault: sum(figures.get(fault, 0) for figures in parts.values()) for fault in FAULTS}


def commit() -> str:
    """Name the commit under test; a changed tree is told."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, check=True, encoding="utf-8").stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def main() -> int:
    """Run everything that was asked for."""
    asked = read_arguments()
    scale = Scale(asked.rounds, asked.seconds)
    parts = {name: run_part(name, asked.seed, scale) for name in asked.part or PARTS}
    report = {
        "commit": commit(),
        "python": platform.python_version(),
        "seed": asked.seed,
        "rounds": scale.rounds,
        "faults": faults(parts),
        "parts": parts,
    }
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    failed = any(report["faults"].values())
    print(f"{'FAILED' if failed else 'clean'}: {report['faults']}; the figures are in {asked.json.name}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
