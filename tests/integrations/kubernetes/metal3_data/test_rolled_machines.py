"""Machines are deleted and made again with the same names: addresses come back where asked for, nothing is left."""

import pytest

from tests.integrations.kubernetes.metal3_data.machine_park import MachinePark
from tests.integrations.kubernetes.metal3_data.rolled_machines import roll


def test_machines_are_rolled_while_a_leader_is_killed(bare_park: MachinePark) -> None:
    roll(bare_park, 6, kills=1)


@pytest.mark.proof
def test_two_hundred_machines_are_rolled_while_leaders_are_killed(bare_park: MachinePark) -> None:
    roll(bare_park, 200, kills=5)
