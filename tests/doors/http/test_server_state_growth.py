"""A server that keeps its ledger small, and says how large it is and how fast it grows."""

import asyncio
from pathlib import Path

import pytest

import tenure
from tests.doors.http.processes import Serving, serving, until
from tests.infrastructure.postgres import schema_in_thread

KEEP = ("--keep-changes", "0.000001")
"""A tenth of a second, in days."""

PLACE = "10.0.0.10"


async def _filled(url: str, addresses: int) -> int:
    """Fill a ledger with changes; return the number of the newest one."""
    async with await tenure.open_async(url) as ledger:
        await ledger.add_network("net1")
        await ledger.add_subnet("net1", "10.0.0.0/16")
        await ledger.add_pool("net1", "10.0.0.10-10.0.255.250")
        for owner in ("instance/first", "instance/second"):
            await ledger.allocate_many("net1", owner=owner, count=addresses)
            await ledger.release_owner(owner)
        # A server looks when it starts, and then not for a while: by then all of it must be older than what is kept.
        await asyncio.sleep(0.3)
        return await ledger.last_change()


def _oldest(server: Serving) -> int:
    """Return the number behind which the log begins."""
    answer = server.ask("GET", "/api/v1/changes?after=0")
    return int(answer.document["data"]["oldest"]) if answer.status == 410 else 0


def _tenures(server: Serving) -> list[str]:
    answer = server.ask("GET", f"/api/v1/addresses/{PLACE}/history")
    return [each["owner"] for each in answer.document["tenures"]]


def test_a_server_moves_full_pages_of_old_changes_and_history_still_tells(tmp_path: Path) -> None:
    last = asyncio.run(_filled(f"sqlite:///{tmp_path}/tenure.db", 600))

    with serving(tmp_path, *KEEP) as server:
        until(lambda: _oldest(server) == last // 1000 * 1000)
        tenures = _tenures(server)
        breaches = server.ask("POST", "/api/v1:verify", {}).document["items"]
        found = server.metrics()

    assert (tenures, breaches) == (["instance/first", "instance/second"], [])
    assert found["tenure_log_entries"] + found["tenure_archived_entries"] == found["tenure_log_seq"]


def test_two_servers_on_one_ledger_move_each_change_once(tmp_path: Path) -> None:
    with schema_in_thread() as store:
        last = asyncio.run(_filled(store, 1100))
        with serving(tmp_path, *KEEP, store=store) as server, serving(tmp_path, *KEEP, store=store) as other:
            other.token = server.token
            until(lambda: _oldest(server) == _oldest(other) == last // 1000 * 1000)
            tenures = [_tenures(each) for each in (server, other)]
            breaches = other.ask("POST", "/api/v1:verify", {}).document["items"]
            warnings = [line for each in (server, other) for line in each.lines() if "not archived" in line]

    assert tenures == [["instance/first", "instance/second"]] * 2
    assert (breaches, warnings) == ([], [])


def test_a_server_keeps_all_changes_unless_told_otherwise(tmp_path: Path) -> None:
    asyncio.run(_filled(f"sqlite:///{tmp_path}/tenure.db", 600))

    with serving(tmp_path) as server:
        assert _oldest(server) == 0
        assert server.ask("POST", "/api/v1/changes:archive", {"keep_days": 1}).document == {"moved": 0}
        moved = server.ask("POST", "/api/v1/changes:archive", {"keep_days": 0}).document["moved"]

        assert _oldest(server) == moved > 2400


def test_readiness_tells_size_and_growth(tmp_path: Path) -> None:
    last = asyncio.run(_filled(f"sqlite:///{tmp_path}/tenure.db", 600))

    with serving(tmp_path) as server:
        ready = server.ask("GET", "/readyz", token=None).document
        found = server.metrics()

    assert ready["status"] == "ready"
    assert ready["size"]["newest"] == ready["size"]["changes"] >= last
    assert (ready["size"]["archived"], ready["size"]["replies"], ready["growth"]) == (0, 0, None)
    assert ready["size"]["bytes"] > 100_000
    assert found["tenure_ledger_bytes"] == ready["size"]["bytes"]
    assert found["tenure_log_entries"] == ready["size"]["changes"]
    assert (found["tenure_archived_entries"], found["tenure_kept_replies"]) == (0, 0)


def test_readiness_says_how_fast_the_ledger_grew_since_it_was_first_looked_at(tmp_path: Path) -> None:
    asyncio.run(_filled(f"sqlite:///{tmp_path}/tenure.db", 1))

    with serving(tmp_path) as server:
        before = server.ask("GET", "/readyz", token=None).document
        wishes = {"wishes": [{"owner": f"instance/{number}"} for number in range(2000)]}
        assert server.ask("POST", "/api/v1/networks/net1:allocate_many", wishes).status == 200
        assert server.ask("POST", "/api/v1:sweep", {}).status == 200  # after which the size is read anew
        after = server.ask("GET", "/readyz", token=None).document

    grown, growth = after["size"]["newest"] - before["size"]["newest"], after["growth"]
    assert before["growth"] is None
    assert grown >= 2000
    assert 0 < growth["over_s"] < 60
    assert growth["changes_per_day"] == pytest.approx(grown * 86_400 / growth["over_s"])
    assert growth["bytes_per_day"] > 0


@pytest.mark.parametrize("value", ["-1", "x", "1e9"])
def test_what_is_no_number_of_days_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(AssertionError, match="keep-changes"), serving(tmp_path, "--keep-changes", value):
        pass
