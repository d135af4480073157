"""The benchmark of the Neutron door works: every driver runs on a small scale and is counted. How fast is not asked."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from bench.__main__ import main
from bench.cases import Case
from bench.crew import Sample, WorkerFailed
from bench.measuring import Measured, RowsLost
from bench.neutron_cases import NeutronScale, case, neutron_pairs
from bench.neutron_crew import Child
from bench.neutron_jobs import ALLOCATE, DATABASE, LEDGER, STOCK, Order, Site
from bench.neutron_measuring import NeutronBench, tell
from bench.neutron_places import NeutronPlaces
from bench.places import Places
from bench.report import all_hold, promises_table

SMALL = NeutronScale(ours=6, stock_empty=4, stock_full=2, pool="10.0.0.0/24")
TIERS = {"sqlite": "ledger", "postgres": "ledger"}
DATABASES = ["sqlite", "postgres", "mariadb"]


@pytest.fixture
async def bench() -> AsyncIterator[NeutronBench]:
    async with Places() as places, NeutronPlaces(places) as neutron_places, NeutronBench(neutron_places) as opened:
        yield opened


@pytest.mark.proof
async def test_each_driver_allocates_in_processes_of_neutrons_and_gives_everything_back(bench: NeutronBench) -> None:
    stock, full = case("sqlite", STOCK, 50, SMALL), case("postgres", LEDGER, 90, replace(SMALL, ours=10))
    cases = [stock, case("sqlite", DATABASE, 90, SMALL), full, replace(full, servers=2)]
    samples = {each: await bench.measure(each) for each in cases}
    again = await bench.measure(replace(stock, policy="lowest"))

    assert [samples[each].count for each in cases] == [2, 6, 10, 20]
    assert again.count == 2
    assert all(each.rate > 0 and each.client_us > 0 for each in samples.values())
    assert samples[replace(full, servers=2)].store_us > 0  # told in hundredths of a second: few calls may take none


@pytest.mark.proof
async def test_a_row_that_is_not_there_ends_the_run(bench: NeutronBench) -> None:
    filled = case("sqlite", DATABASE, 50, SMALL)
    await bench.measure(filled)
    [child] = await bench.crew(filled)
    tell([child], Order(ALLOCATE, 1))

    with pytest.raises(RowsLost):
        await bench.measure(filled)


@pytest.mark.proof
def test_a_process_of_neutrons_that_fails_ends_the_run(capfd: pytest.CaptureFixture[str]) -> None:
    child = Child(Site(LEDGER, "sqlite://", "10.0.0.0/24", 0))
    try:
        with pytest.raises(WorkerFailed):
            child.subnet()
    finally:
        child.end()

    assert "[tenure] ledger is not set" in capfd.readouterr().err


@pytest.mark.proof
def test_a_run_names_the_pairs_of_neutron_and_measures_only_those_that_are_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = tmp_path / "bench.json"

    code = main(["--quick", "--no-bars", "--only", "neutron-sqlite-database-fill", "--json", str(told)])

    assert code == 0
    document = json.loads(told.read_text("utf-8"))
    [pair] = document["pairs"]
    assert (pair["name"], pair["subject"]["fill"]) == ("neutron-sqlite-database-fill", 0.9)
    assert [promise["limit"] for promise in pair["promises"]] == [0.8]
    assert {"commit", "neutron"} <= document["facts"].keys()
    assert "Neutron, mode database, 90 % full / empty" in capsys.readouterr().out


def test_the_bars_are_those_that_were_promised() -> None:
    bars = {
        (pair.name, promise.measure): (promise.relation, promise.limit)
        for pair in neutron_pairs(DATABASES, TIERS, NeutronScale())
        for promise in pair.promises
    }

    modes = [(database, mode) for database in DATABASES for mode in ("database", "ledger")]
    assert bars == {
        **{(f"neutron-{database}-{mode}-0", "rate"): (">=", 1.0) for database, mode in modes},
        **{(f"neutron-{database}-{mode}-50", "rate"): (">=", 60.0) for database, mode in modes},
        **{(f"neutron-{database}-{mode}-90", "rate"): (">=", 60.0) for database, mode in modes},
        **{(f"neutron-{database}-{mode}-fill", "rate"): (">=", 0.8) for database, mode in modes},
        **{
            (f"neutron-{database}-{mode}-4", "cpu_us"): ("<=", 1.25) for database, mode in modes if database != "sqlite"
        },
    }


def test_without_postgres_only_the_mode_without_a_ledger_is_measured() -> None:
    works = {pair.subject.work for pair in neutron_pairs(["sqlite"], {"sqlite": "ledger"}, SMALL)}

    assert works == {"neutron-database"}


@pytest.mark.parametrize(("spent", "verdict"), [(125.0, "ok"), (126.0, "ABOVE")])
def test_all_cpu_of_an_allocation_counts_the_servers_as_well(spent: float, verdict: str) -> None:
    [pair] = [each for each in neutron_pairs(["postgres"], TIERS, SMALL) if each.name == "neutron-postgres-ledger-4"]
    measured = Measured(pair, [sample(60.0, 40.0)], [sample(60.0, spent - 60.0)])

    assert all_hold([measured]) == (verdict == "ok")
    assert promises_table([measured])[-1].endswith(verdict)


def test_every_case_is_on_the_subnet_that_was_promised() -> None:
    cases: set[Case] = set()
    for pair in neutron_pairs(DATABASES, TIERS, NeutronScale()):
        cases |= {pair.subject, pair.base} - {None}  # type: ignore[arg-type]

    assert {each.pool for each in cases} == {"10.0.0.0/16"}
    assert {round(each.fill * 100) for each in cases} == {0, 50, 90}


def sample(client_us: float, store_us: float) -> Sample:
    return Sample(1000, 100.0, 1.0, client_us, store_us, 1.0, 2.0, 30.0)
