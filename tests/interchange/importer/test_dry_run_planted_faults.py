"""Many rows with fifty faults: all are named with their lines, and nothing is written."""

import tenure
from tenure.interchange.importer.import_run import plan_import, run_import
from tests.interchange.importer.planted import planted_table, prepare
from tests.scale import runs

ROWS = runs(20_000, 100_000, proof=100_000)


async def test_a_dry_run_names_every_planted_fault_with_its_line_and_writes_nothing() -> None:
    source, wanted = planted_table(ROWS)
    async with await tenure.open_async("memory:") as ledger:
        await prepare(ledger)
        before = await ledger.last_change()

        report = await plan_import(ledger, source)

        told = {fault.place.line: (fault.field, fault.code) for fault in report.faults}
        assert told == {line: (planted.field, planted.code) for line, planted in wanted.items()}
        assert len(report.faults) == len(wanted) == 50
        assert await ledger.last_change() == before


async def test_an_import_with_faults_is_refused_whole() -> None:
    source, _ = planted_table(1000)
    async with await tenure.open_async("memory:") as ledger:
        await prepare(ledger)
        before = await ledger.last_change()

        try:
            await run_import(ledger, source)
            refused = ""
        except tenure.Invalid as error:
            refused = str(error)

        assert "nothing was written" in refused
        assert "line 21" in refused
        assert "49 more" in refused
        assert await ledger.last_change() == before


async def test_the_same_rows_without_faults_go_in(ledger: tenure.AsyncLedger) -> None:
    source, _ = planted_table(3000, faults=False)
    await prepare(ledger)
    told: list[tuple[int, int | None]] = []

    report = await run_import(ledger, source, batch=1000, progress=lambda done, total: told.append((done, total)))

    holdings = await ledger.holdings("site")
    assert report.new["holdings"] == 3000
    assert len(holdings) == 3002
    assert holdings[0].request == "import plan.csv"
    assert holdings[0].labels == {"team": "shop"}
    assert told == [(0, 3000), (1000, 3000), (2000, 3000), (3000, 3000)]
