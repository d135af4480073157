"""The benchmark's parts work: every load runs on a small scale and is counted. How fast is not asked here."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from bench.__main__ import main, read_arguments, sweep
from bench.cases import FILLS, SPARSE, Case, Pair, Promise, Scale, pairs_for, rate
from bench.crew import Sample, WorkerFailed, run_crew
from bench.filling import scattered, usable
from bench.jobs import Job
from bench.measuring import Bench, Measured
from bench.picture import draw
from bench.places import Places
from bench.report import all_hold, promises_table

from bench import drivers

SMALL = "10.0.0.0/24"
TIERS = {"sqlite": "ledger", "postgres": "ledger"}

LOADS = [
    Case("sqlite", "engine", "lowest"),
    Case("postgres", "engine", pool=SMALL, held=127, networks=2, callers=4, count=50),
]
MORE_LOADS = [
    Case("memory", "engine"),
    Case("sqlite", "book", pool=SMALL, callers=2, count=20),
    Case("sqlite", "raw"),
    Case("sqlite", "engine", servers=2, callers=3),
    Case("sqlite", "stream", pool=SPARSE, held=300, kept=True),
    Case("sqlite", "opening", "lowest", pool=SPARSE, held=300, kept=True),
    Case("postgres", "raw"),
    Case("postgres", "engine", "lowest", servers=2, callers=3),
    Case("postgres", "engine", pool=SPARSE, held=300, kept=True),
    Case("postgres", "stream", pool=SPARSE, held=300, kept=True),
    Case("postgres", "opening", "random", pool=SPARSE, held=300, kept=True),
]


@pytest.fixture
async def places() -> AsyncIterator[Places]:
    async with Places() as opened:
        yield opened


def sample(rate: float = 1000.0, *, seconds: float = 1.0, peak_mb: float = 30.0) -> Sample:
    return Sample(1000, rate, seconds, 10.0, 10.0, 1.0, 2.0, peak_mb)


@pytest.mark.parametrize("loads", [LOADS, pytest.param(MORE_LOADS, marks=pytest.mark.proof)], ids=["some", "more"])
async def test_a_load_runs_in_processes_of_its_own_and_finds_its_rows_in_the_store(
    places: Places, loads: list[Case]
) -> None:
    async with Bench(places, 0.1) as bench:
        samples = {case: await bench.measure(case) for case in loads}

    assert all(each.rate > 0 and each.client_us >= 0 and each.peak_mb > 1 for each in samples.values())
    assert {case: samples[case].count for case in loads if case.count} == {
        case: case.count * case.networks for case in loads if case.count
    }
    assert {samples[case].count for case in loads if case.work in ("stream", "opening")} <= {1}


async def test_the_driver_of_the_store_is_measured_on_the_statement_of_the_store(places: Places) -> None:
    figures = await drivers.measure(places, "asyncpg", 16, 0.05)

    assert figures.rows_per_s > 0


async def test_the_postgres_that_is_measured_makes_its_commits_durable(places: Places) -> None:
    facts = await places.postgres_facts()

    assert {name: facts[name] for name in ("fsync", "full_page_writes", "synchronous_commit")} == {
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
    }


def test_a_measured_process_that_fails_ends_the_run(capfd: pytest.CaptureFixture[str]) -> None:
    job = Job("engine", "sqlite", "nowhere:", Case("sqlite", "engine").plan, None, 1, 1.0, 1, "b0")

    with pytest.raises(WorkerFailed):
        run_crew([job], lambda: 0.0)

    assert "names no store" in capfd.readouterr().err


def test_a_run_tells_people_and_programs_what_it_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = tmp_path / "bench.json"
    words = ["--rounds", "2", "--seconds", "0.05", "--held", "200", "--only", "sqlite-open", "--no-bars"]

    code = main([*words, "--json", str(told)])

    assert code == 0
    document = json.loads(told.read_text("utf-8"))
    assert [pair["name"] for pair in document["pairs"]] == ["sqlite-open-lowest", "sqlite-open-random"]
    assert [len(pair["subject"]["rounds"]) for pair in document["pairs"]] == [2, 2]
    assert {"cores", "python", "commit"} <= document["facts"].keys()
    assert "open with 200 held, lowest: memory" in capsys.readouterr().out


def test_the_bars_are_those_that_were_promised() -> None:
    bars = {
        (pair.name, promise.measure): (promise.relation, promise.limit)
        for pair in pairs_for(TIERS, Scale())
        for promise in pair.promises
    }

    assert bars == {
        ("postgres-random-16", "rate"): (">=", 1.0),
        ("postgres-random-256", "rate"): (">=", 2.0),
        ("postgres-keyed-16", "rate"): (">=", 1.0),
        ("postgres-keyed-256", "rate"): (">=", 1.5),
        ("sqlite-keyed-16", "rate"): (">=", 1.0),
        ("sqlite-keyed-256", "rate"): (">=", 1.5),
        ("postgres-lowest-16", "rate"): (">=", 1.0),
        ("postgres-lowest-4x16", "rate"): (">=", 0.5),
        ("postgres-full", "rate"): (">=", 0.8),
        ("postgres-million", "rate"): (">=", 0.85),
        ("sqlite-random-16", "rate"): (">=", 1.0),
        ("sqlite-lowest-16", "rate"): (">=", 1.0),
        ("postgres-nics", "rate"): (">=", 0.8),
        ("sqlite-nics", "rate"): (">=", 0.8),
        **{
            (f"{store}-open-{policy}", measure): bar
            for store in ("sqlite", "postgres")
            for policy in ("lowest", "random")
            for measure, bar in {"seconds": ("<=", 10.0), "peak_mb": ("<", 500.0)}.items()
        },
    }


@pytest.mark.parametrize(("reached", "verdict"), [(999.0, "BELOW"), (1000.0, "ok")])
def test_a_rate_below_its_bar_is_told_and_fails_the_run(reached: float, verdict: str) -> None:
    pair = Pair("p", "engine / raw", Case("sqlite", "engine"), Case("sqlite", "raw"), rate(1.0))
    measured = Measured(pair, [sample(), sample(9999.0), sample(1.0)], [sample(reached), sample(8.0), sample(1e6)])

    assert all_hold([measured]) == (verdict == "ok")
    assert promises_table([measured])[-1].endswith(verdict)


def test_memory_is_judged_by_itself() -> None:
    pair = Pair("p", "open", Case("sqlite", "opening"), None, (Promise("peak_mb", "<", 500.0, relative=False),))

    assert not all_hold([Measured(pair, [], [sample(peak_mb=500.0)])])
    assert all_hold([Measured(pair, [], [sample(peak_mb=499.0)])])


@pytest.mark.parametrize(("pool", "held"), [(SMALL, 241), (SPARSE, 1000)])
def test_a_pool_is_filled_with_different_addresses_of_its_own_the_same_every_time(pool: str, held: int) -> None:
    places = list(scattered(pool, held, 1))

    assert len(set(places)) == held
    assert max(places) - min(places) < usable(pool)
    assert places == list(scattered(pool, held, 1))


def test_the_picture_covers_every_fill_and_its_bursts_leave_half_of_what_is_free() -> None:
    cases = [pair.subject for pair in sweep(Scale())]

    assert len(cases) == 2 * len(FILLS)
    assert {round(case.fill * 100) for case in cases} == set(FILLS)
    assert all(case.count and 2 * case.count <= usable(case.pool) - case.held for case in cases)


def test_the_same_figures_give_the_same_small_picture(tmp_path: Path) -> None:
    rates = {"random": [float(100 - fill) for fill in FILLS], "lowest": [50.0 for _ in FILLS]}
    for name in ("one.svg", "two.svg"):
        draw(FILLS, rates, 70.0, tmp_path / name)

    drawn = (tmp_path / "one.svg").read_bytes()
    assert drawn == (tmp_path / "two.svg").read_bytes()
    assert b"<svg" in drawn
    assert b"date>" not in drawn
    assert len(drawn) < 60_000


@pytest.mark.parametrize("words", [["--rounds", "0"], ["--seconds", "0"], ["--held", "-1"]])
def test_a_run_of_nothing_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_arguments(words)

    assert "must be positive" in capsys.readouterr().err
