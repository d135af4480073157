"""Any sequence of the networks door's commands keeps what the design promises."""

from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.doors.networks.machine.instance_rules import InstanceRules
from tests.doors.networks.machine.plan_rules import PlanRules
from tests.profiles import examples


class DoorMachine(PlanRules, InstanceRules):
    """All rules together."""


def test_any_sequence_of_commands_keeps_the_invariants() -> None:
    run_state_machine_as_test(DoorMachine, settings=settings(max_examples=examples(1), stateful_step_count=30))


def test_any_sequence_of_commands_on_a_file_keeps_the_invariants() -> None:
    numbers = count()
    with TemporaryDirectory() as folder:

        class FileMachine(DoorMachine):
            url = "sqlite:"

            def place(self) -> str:
                return f"sqlite:///{Path(folder)}/{next(numbers)}.db"

        run_state_machine_as_test(FileMachine, settings=settings(max_examples=examples(0.1), stateful_step_count=25))
