"""The soak itself: it counts faults, outlives a part that fails, and writes down what it ran on."""

import json
from pathlib import Path

import pytest

from tests.soak import __main__ as soak
from tests.soak.parts import PARTS, Scale


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put three small parts in the place of the long ones."""

    def broken(seed: int, scale: Scale) -> dict[str, int]:
        raise OSError("the server did not start")

    monkeypatch.setattr("sys.argv", ["soak"])
    for name in list(PARTS):
        monkeypatch.delitem(PARTS, name)
    monkeypatch.setitem(PARTS, "good", lambda seed, scale: {"rounds": scale.rounds, "lost": 0, "seed": seed})
    monkeypatch.setitem(PARTS, "bad", lambda seed, scale: {"lost": 2, "doubled": 1})
    monkeypatch.setitem(PARTS, "broken", broken)


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize(("part", "code"), [("good", 0), ("bad", 1), ("broken", 1)])
def test_a_soak_fails_if_any_part_does(part: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "soak.json"
    monkeypatch.setattr("sys.argv", ["soak", "--part", part, "--rounds", "3", "--seed", "7", "--json", str(path)])

    assert soak.main() == code

    report = json.loads(path.read_text("utf-8"))
    assert set(report["parts"]) == {part}
    assert (report["seed"], report["rounds"]) == (7, 3)
    assert report["commit"]


@pytest.mark.usefixtures("parts")
def test_faults_are_added_up_over_all_parts() -> None:
    parts = {name: soak.run_part(name, 1, Scale(rounds=2)) for name in PARTS}

    assert soak.faults(parts) == {"lost": 2, "doubled": 1, "breaches": 0, "unexplained": 0, "failures": 1}
    assert parts["good"] | {"seconds": 0} == {"rounds": 2, "lost": 0, "seed": 1, "seconds": 0}
