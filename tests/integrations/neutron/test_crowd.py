"""Eight processes at one subnet until it is full: nothing doubled, nothing leaked, exhausted only when that is true."""

import pytest

from tests.integrations.neutron.stage.deployment import Deployment
from tests.integrations.neutron.stage.judging import (
    EIGHT,
    FAULTS,
    Round,
    addresses_of,
    compare,
    crowd_round,
    doubled,
    judge,
    retry_kind,
)
from tests.scale import PROOF
from tests.soak import parts as soak

TIMES, CIDR, DELETES = (4, "10.0.0.0/24", 64) if PROOF else (2, "10.0.0.0/26", 16)
"""A short round; the soak empties a /24, again and again, and has ML2 in it."""

BASE = "neutron.db.db_base_plugin_v2.NeutronDbPluginV2"
"""The plugin that ML2 is made from: the same transactions around the driver, for a third of the cost."""


def test_eight_processes_share_a_subnet_to_the_last_address(deployment: Deployment) -> None:
    with deployment.one_more(core_plugin=BASE, service_plugins="") as server:
        played = crowd_round(deployment, server, TIMES, CIDR, DELETES)

    assert played.faults == []
    assert played.creates == addresses_of(CIDR) + EIGHT * TIMES


def test_a_judge_sees_an_address_that_two_ports_had_at_once() -> None:
    first = {"verb": "create", "begin": 1.0, "end": 2.0, "port": "a", "status": 201, "address": "10.0.0.2"}
    gone = {"verb": "delete", "begin": 5.0, "end": 6.0, "port": "a", "status": 204, "address": ""}
    after, during = ({**first, "port": "b", "begin": begin, "end": begin + 1} for begin in (4.5, 3.0))

    found = [doubled(events) for events in ([first, gone, after], [first, gone, during], [first, after])]

    assert found == [[], ["10.0.0.2"], ["10.0.0.2"]]


def test_a_judge_counts_what_the_books_do_not_agree_on() -> None:
    round_ = Round()
    carried = {"10.0.0.2": "port/a", "10.0.0.3": "port/b"}

    compare(
        round_, {"neutron": carried, "rows": {"10.0.0.2": "port/a"}, "ledger": {**carried, "10.0.0.4": "port/c"}}, 2
    )

    assert round_.figures["lost"] == 2
    assert len(round_.faults) == 2


def test_a_judge_counts_requests_that_were_made_again_for_an_address() -> None:
    round_ = Round()
    told = {"events": [], "asked": 1, "retries": ["RetryRequest: None", "DBDeadlock: [SQL: UPDATE quotas]"]}

    round_.take_in([told])
    judge(round_)

    assert {why: len(texts) for why, texts in round_.retries.items() if texts} == {"conflicts": 1, "deadlocks": 1}
    assert (round_.figures["failures"], round_.figures["unexplained"]) == (1, EIGHT)


def test_a_judge_allows_innodb_one_cycle_and_no_more() -> None:
    cycle = "DBDeadlock: (1213, 'Deadlock found') [SQL: INSERT IGNORE INTO tenure_allocations (address) VALUES (%s)]"
    rounds = [Round(), Round()]

    for round_, count in zip(rounds, (1, 2), strict=True):
        round_.take_in([{"events": [], "asked": 0, "retries": [cycle] * count}])
        judge(round_)

    assert [round_.figures["failures"] for round_ in rounds] == [0, 1]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("DBDeadlock: Deadlock found [SQL: INSERT INTO tenure_allocations (address) VALUES (%s)]", "conflicts"),
        ("DBDeadlock: (1213, 'x') [SQL: INSERT IGNORE INTO tenure_allocations (address) VALUES (%s)]", "innodb"),
        ("DBDeadlock: Deadlock found [SQL: DELETE FROM tenure_subnets WHERE id = %s]", "conflicts"),
        ("DBDuplicateEntry: duplicate key [SQL: INSERT INTO ipallocations (port_id) VALUES (%s)]", "conflicts"),
        ("DBDeadlock: Deadlock found [SQL: UPDATE standardattributes SET revision_number=%s]", "deadlocks"),
        ("StaleDataError: UPDATE statement on table 'standardattributes'", "others"),
    ],
)
def test_a_deadlock_over_addresses_is_a_conflict(text: str, kind: str) -> None:
    assert retry_kind(text) == kind


def test_faults_of_a_crowd_are_faults_of_a_soak() -> None:
    assert set(FAULTS) <= set(soak.FAULTS)
