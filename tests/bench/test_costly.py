"""Costly requests are listed once, sent within the server's limits, and judged by how long /healthz waited."""

from bench.__main__ import costly_requests
from bench.costly_measuring import BAR_MS, Cost, costs_table, too_long
from bench.costly_requests import requests

from tenure.doors.http.settings import Limits


def cost(healthz_ms: float) -> Cost:
    return Cost(requests()[0], 200, 0, 100_000, 1.0, 3.0, healthz_ms, 20.0)


def test_every_costly_request_has_a_name_of_its_own_and_a_body_that_is_let_in() -> None:
    names = [each.name for each in requests()]

    assert len(set(names)) == len(names)
    assert all(len(each.sent()) <= Limits().body_bytes for each in requests())


def test_words_choose_costly_requests_by_store_and_name() -> None:
    chosen = costly_requests({"sqlite": "ledger", "postgres": "ledger"}, ["costly-sqlite-diff-deep"])

    assert {store: [each.name for each in wanted] for store, wanted in chosen.items()} == {
        "sqlite": ["diff-deep"],
        "postgres": [],
    }


def test_what_holds_up_healthz_for_longer_than_the_bar_is_named() -> None:
    costs = [cost(BAR_MS), cost(BAR_MS + 1)]

    assert too_long(costs) == ["networks: /healthz waited 501 ms"]
    assert costs_table(costs)[2].startswith("| `GET /networks` |")
