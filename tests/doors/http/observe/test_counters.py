"""Metrics: right after known requests, the same from every worker, told to whoever may read."""

import json
import re
import socket
import time
from pathlib import Path
from typing import Any

import psutil
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from tenure.doors.http.access.auth_cache import KEPT_S
from tenure.doors.http.non_api.prometheus import counted
from tenure.doors.http.observe.counters import COUNTED, READ, CounterRows, SeriesType, ServerCounters, make_rows
from tenure.doors.http.routes.route_table import ENDPOINTS
from tenure.kernel.errors import PoolExhausted
from tests.doors.http.processes import serving, until

ROOT = Path(__file__).parents[4]
NAMES = re.compile(r"tenure_\w+")
ALLOCATE = 'method="POST",route="/api/v1/networks/{network}:allocate"'


def test_the_numbers_are_right_after_known_requests(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.lay_out(block="10.0.0.0/29", pool="10.0.0.2-10.0.0.4")
        for owner in ("a", "b", "c", "d", "a"):
            server.allocate(f"instance/{owner}")
        server.ask("POST", "/api/v1/networks/net1:claim", {"owner": "instance/late"})
        taken = {"owner": "instance/x", "address": "10.0.0.2"}
        server.ask("POST", "/api/v1/networks/net1:allocate", taken)
        server.ask("POST", "/api/v1/networks/net1/holdings/10.0.0.3:release", {"owner": "instance/b"})
        found = server.metrics()

    assert found[f'tenure_http_requests_total{{{ALLOCATE},status="2xx"}}'] == 4
    assert found[f'tenure_http_requests_total{{{ALLOCATE},status="4xx"}}'] == 2
    assert found[f"tenure_http_request_duration_seconds_count{{{ALLOCATE}}}"] == 6
    assert found[f'tenure_http_request_duration_seconds_bucket{{le="+Inf",{ALLOCATE}}}'] == 6
    assert 0 < found[f"tenure_http_request_duration_seconds_sum{{{ALLOCATE}}}"] < 60
    assert found["tenure_http_requests_in_flight"] == 1
    assert found['tenure_conflicts_total{code="pool_exhausted"}'] == found["tenure_pool_exhausted_total"] == 1
    assert found['tenure_conflicts_total{code="address_in_use"}'] == 1
    assert found["tenure_allocations_total"] == 3
    assert found["tenure_releases_total"] == 1
    assert sum(found[f'tenure_batch_size_count{{kind="{kind}"}}'] for kind in ("grant", "lane")) >= 3
    assert found["tenure_store_up"] == 1
    assert found["tenure_log_seq"] > 5
    assert found["tenure_networks"] == 1


def test_the_ledger_is_told_as_it_stands(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.lay_out(block="10.0.0.0/29", pool="10.0.0.2-10.0.0.5")
        server.ask("POST", "/api/v1/networks/net1/reserved", {"range": "10.0.0.5"}, If_Match="*")
        for owner in ("a", "b", "c"):
            server.allocate(f"instance/{owner}")
        server.ask("POST", "/api/v1/networks/net1:claim", {"owner": "instance/late"})
        full = server.metrics()
        server.ask("POST", "/api/v1/networks/net1:withdraw", {"owner": "instance/late"})
        release = {"owner": "instance/b", "lingers_s": 600}
        server.ask("POST", "/api/v1/networks/net1/holdings/10.0.0.3:release", release)
        server.ask("POST", "/api/v1/networks/net1/holdings/10.0.0.4:release", {"owner": "instance/c"})
        later = server.metrics()

    names = ("held_units", "free_units", "cooling_units", "reserved_units", "utilisation_ratio")
    where = 'family="ipv4",network="net1"'
    assert [full[f"tenure_network_{name}{{{where}}}"] for name in names] == [3, 0, 0, 1, 1.0]
    assert [later[f"tenure_network_{name}{{{where}}}"] for name in names] == [1, 1, 1, 1, 2 / 3]
    assert [found['tenure_network_waiting_claims{network="net1"}'] for found in (full, later)] == [1, 0]


def test_families_have_numbers_of_their_own(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.lay_out(block="10.0.0.0/29", pool="10.0.0.2-10.0.0.3")
        server.ask("POST", "/api/v1/networks/net1/subnets", {"cidr": "2001:db8::/64"}, If_Match="*")
        server.ask("POST", "/api/v1/networks/net1/pools", {"range": "2001:db8::/64"}, If_Match="*")
        for owner in ("a", "b", "c"):
            server.allocate(f"instance/{owner}")
        found = server.metrics()

    ratios = [
        found[f'tenure_network_utilisation_ratio{{family="{family}",network="net1"}}'] for family in ("ipv4", "ipv6")
    ]
    assert (ratios[0], 0 < ratios[1] < 1e-15) == (1.0, True)


def test_both_forms_of_exposition_can_be_read(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.lay_out()
        text = server.ask("GET", "/metrics")
        opened = server.ask("GET", "/metrics", Accept="application/openmetrics-text; version=1.0.0")

    assert text.headers["content-type"].startswith("text/plain")
    assert opened.headers["content-type"].startswith("application/openmetrics-text")
    families = {family.name: family.type for family in read_text(text.body.decode())}
    assert {family.name for family in read_openmetrics(opened.body.decode())} == {  # type: ignore[no-untyped-call]
        name.removesuffix("_total") if kind == "counter" else name for name, kind in families.items()
    }
    assert all(name.startswith("tenure_") for name in families)


def test_metrics_are_for_readers(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        nobody, reader = server.ask("GET", "/metrics", token=None), server.ask("GET", "/metrics")

    assert [answer.status for answer in (nobody, reader)] == [401, 200]


def test_metrics_are_for_everybody_on_this_machine_where_that_was_asked_for(tmp_path: Path) -> None:
    with serving(tmp_path, "--anonymous") as server:
        here = server.ask("GET", "/metrics", token=None)
        proxied = server.ask("GET", "/metrics", token=None, X_Forwarded_For="198.51.100.7")

    assert [answer.status for answer in (here, proxied)] == [200, 401]


def test_a_server_elsewhere_tells_its_numbers_only_with_a_token(tmp_path: Path) -> None:
    address = _own_address()
    with serving(tmp_path, "--host", address) as server:
        stranger, reader = server.ask("GET", "/metrics", token=None), server.ask("GET", "/metrics")

    assert [stranger.status, reader.status] == [401, 200]


def test_paths_that_nobody_knows_make_no_series(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.metrics()
        before = set(server.metrics())
        for number in range(50):
            server.ask("GET", f"/nowhere/{number}")
            server.ask("GET", f"/api/v1/nowhere/{number}")
        added = set(server.metrics()) - before

    assert {name.partition("{")[2].partition("status")[0] for name in added} <= {
        'method="any",route="other",',
        *(name.partition("{")[2] for name in added if "other" in name),
    }


def test_a_worker_that_takes_over_a_row_goes_on_counting_in_it(tmp_path: Path) -> None:
    file = tmp_path / "counts"
    make_rows(file, 2, ENDPOINTS)
    first, other = (ServerCounters(CounterRows(str(file), 2, row)) for row in (0, 1))
    for meter in (first, other):
        meter.know(ENDPOINTS)
        meter.begin()
        meter.end(b"/healthz", ENDPOINTS[0], 409, 0.003, PoolExhausted("net1", None))
        meter.begin()

    second = ServerCounters(CounterRows(str(file), 2, 0))
    second.know(ENDPOINTS)
    totals = second.totals()

    assert totals[second.cells.plain["exhausted"]] == 2
    assert totals[second.cells.plain["in_flight"]] == 1  # what the dead one worked on is gone with it


def test_every_metric_has_names_of_its_own() -> None:
    every = [*COUNTED, *READ]

    assert len({series.title for series in every}) == len(every)
    assert all(len({series.name for series in table}) == len(table) for table in (COUNTED, READ))
    single = [series for series in COUNTED if series.type is not SeriesType.HISTOGRAM and not series.by_route]
    assert len(ServerCounters().cells.plain) == sum(len(series.values) for series in single)


def test_what_is_counted_by_a_name_is_shown_in_its_series() -> None:
    meter = ServerCounters()
    meter.know(ENDPOINTS)
    for number, name in enumerate(meter.cells.plain, start=1):
        meter.count(name, number)
    shown = {sample: value for family in counted(meter) for sample, value in _samples(family) if family.name in _SINGLE}

    assert list(shown.values()) == [*range(1, len(meter.cells.plain) + 1)]
    assert shown["tenure_http_requests_in_flight", ()] == meter.totals()[meter.cells.plain["in_flight"]]
    refused = meter.totals()[meter.cells.plain["refused_streams_token"]]
    assert shown["tenure_refused_total", ("streams", "token")] == refused


_SINGLE = {series.title for series in COUNTED if series.type is not SeriesType.HISTOGRAM and not series.by_route}


def _samples(family: Metric) -> list[tuple[tuple[str, tuple[str, ...]], float]]:
    return [((sample.name, tuple(sample.labels.values())), sample.value) for sample in family.samples]


def _own_address() -> str:
    """Find an address of this machine that is not loopback."""
    every = [each for card in psutil.net_if_addrs().values() for each in card]
    found = [each.address for each in every if each.family is socket.AF_INET and not each.address.startswith("127.")]
    return str(found[0])


def test_a_store_that_is_gone_is_told_and_the_rest_still_answers(tmp_path: Path, fragile_postgres: Any) -> None:
    with serving(tmp_path, store=f"{fragile_postgres.url}&schema=m") as server:
        server.lay_out()
        fragile_postgres.kill()
        until(lambda: server.ask("GET", "/readyz").status == 503)
        time.sleep(KEPT_S)  # until nobody who came in before is known without asking the store
        found, alive = server.metrics(), server.ask("GET", "/healthz").status
        fragile_postgres.start()
        until(lambda: server.ask("GET", "/readyz").status == 200)
        again = server.metrics()

    assert (found["tenure_store_up"], alive, again["tenure_store_up"]) == (0, 200, 1)
    assert not [name for name in found if name.startswith("tenure_network_")]


def test_the_dashboard_asks_only_for_metrics_that_there_are(tmp_path: Path) -> None:
    dashboard = json.loads((ROOT / "deploy" / "grafana-dashboard.json").read_text("utf-8"))
    page = (ROOT / "docs" / "howto" / "serve.md").read_text("utf-8")
    asked = {
        name for panel in dashboard["panels"] for target in panel["targets"] for name in NAMES.findall(target["expr"])
    }
    with serving(tmp_path) as server:
        server.lay_out()
        told = {name.partition("{")[0] for name in server.metrics()}

    assert asked
    assert asked - told == set()
    plain = {re.sub("_(bucket|count|sum)$", "", name) for name in told}
    assert [name for name in plain if f"`{name}`" not in page and f"`…_{name.split('_', 2)[-1]}`" not in page] == []
