"""Eight processes at one /24 until it is full: nothing doubled, nothing leaked, exhausted only when that is true."""

from tests.doors.neutron.stage.deployment import Deployment
from tests.doors.neutron.stage.judging import ADDRESSES, EIGHT, crowd_round, doubled

TIMES, DELETES = 4, 64
"""A short round; the soak empties the subnet, ten times."""


def test_eight_processes_share_a_subnet_to_the_last_address(deployment: Deployment) -> None:
    played = crowd_round(deployment, TIMES, DELETES)

    assert played.faults == []
    assert played.creates == ADDRESSES + EIGHT * TIMES


def test_a_judge_sees_an_address_that_two_ports_had_at_once() -> None:
    first = {"verb": "create", "begin": 1.0, "end": 2.0, "port": "a", "status": 201, "address": "10.0.0.2"}
    gone = {"verb": "delete", "begin": 5.0, "end": 6.0, "port": "a", "status": 204, "address": ""}
    after, during = ({**first, "port": "b", "begin": begin, "end": begin + 1} for begin in (4.5, 3.0))

    found = [doubled(events) for events in ([first, gone, after], [first, gone, during], [first, after])]

    assert found == [[], ["10.0.0.2"], ["10.0.0.2"]]
