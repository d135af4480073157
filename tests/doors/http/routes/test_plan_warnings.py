"""Edits of the plan over HTTP say what they did beside what was asked: in the document, or in the head of a 204."""

import json
from types import SimpleNamespace

import pytest

from tenure.doors.http.routing import etags
from tenure.doors.http.routing.etags import LONGEST_WARNINGS, warnings_text
from tests.doors.http.plan import ANY, good, lay
from tests.doors.http.stage import Client

pytestmark = pytest.mark.asyncio(loop_scope="module")

NET1 = "/networks/net1"


async def test_lifting_more_than_is_reserved_says_so_in_the_head(admin: Client) -> None:
    await lay(admin)
    await good(admin, "POST", f"{NET1}/reserved", {"range": "192.0.2.200-192.0.2.201"})

    partly = await good(admin, "DELETE", f"{NET1}/reserved/192.0.2.200-192.0.2.210", headers=ANY)
    await good(admin, "POST", f"{NET1}/reserved", {"range": "192.0.2.200"})
    wholly = await good(admin, "DELETE", f"{NET1}/reserved/192.0.2.200", headers=ANY)

    assert (partly.status, partly.body) == (204, b"")
    assert json.loads(partly.headers["X-Warnings"]) == ["192.0.2.202-192.0.2.210 was not reserved"]
    assert "X-Warnings" not in wholly.headers


async def test_a_pool_that_goes_from_under_holdings_says_how_many_stay(admin: Client) -> None:
    await lay(admin)
    held = (await good(admin, "POST", f"{NET1}:allocate", {"owner": "vm/warned"})).json["address"]

    answer = await good(admin, "DELETE", f"{NET1}/pools/{held}", headers=ANY)

    assert json.loads(answer.headers["X-Warnings"]) == [
        f"of {held}, which lies in no pool any more, 1 is held and stays held"
    ]


async def test_a_new_subnet_says_which_addresses_it_keeps_away(admin: Client) -> None:
    await lay(admin)
    papers = [("cluster", "cluster", {}), ("node", "node9", {"group": "g", "uuid": "u", "primary_ip": "10.9.0.9"})]
    operations = [{"op": "write_paper", "kind": k, "name": n, "document": d} for k, n, d in papers]
    await good(admin, "POST", ":apply", {"operations": operations})

    added = (await good(admin, "POST", f"{NET1}/subnets", {"cidr": "10.9.0.0/24"})).json
    gone = [{"op": "remove_paper", "kind": "node", "name": "node9", "revision": 1}]
    await good(admin, "POST", ":apply", {"operations": gone})

    assert added["warnings"] == ["10.9.0.9 is kept away from picking: it is an address of node node9"]
    assert (added["cidr"], added["pools"]) == ("10.9.0.0/24", [])


async def test_a_head_carries_as_many_warnings_as_it_can() -> None:
    many = [f"warning {number} – {'x' * 100}" for number in range(100)]

    text = warnings_text(many)
    told = json.loads(text)

    assert text.isascii()
    assert len(text) <= LONGEST_WARNINGS
    assert told[:-1] == many[: len(told) - 1]
    assert told[-1] == f"and {100 - len(told) + 1} more"
    assert json.loads(warnings_text(["y" * 9000])) == ["1 warnings"]


async def test_what_is_written_of_many_warnings_does_not_grow_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [f"10.0.{number // 256}.{number % 256} was not reserved" for number in range(3000)]
    written: list[int] = []

    def dumps(value: object) -> str:
        text = json.dumps(value)
        written.append(len(text))
        return text

    monkeypatch.setattr(etags, "json", SimpleNamespace(dumps=dumps))
    text = warnings_text(many)

    assert len(text) > LONGEST_WARNINGS - 100
    assert sum(written) < 2 * LONGEST_WARNINGS


@pytest.mark.sampled
@pytest.mark.parametrize("room", range(30))
async def test_no_warning_is_dropped_that_a_head_can_carry(room: int) -> None:
    rest = LONGEST_WARNINGS - len(json.dumps(["", "b", "c"]))
    all_fit = ["a" * (rest - room), "b", "c"]
    one_too_many = ["a" * (rest + 1 + room), "b", "c"]

    assert json.loads(warnings_text(all_fit)) == all_fit
    assert json.loads(warnings_text(one_too_many))[-1] in ("and 1 more", "and 2 more", "3 warnings")
    assert len(warnings_text(one_too_many)) <= LONGEST_WARNINGS
