"""Any sequence of the networks door's commands keeps what the design promises."""

from contextlib import ExitStack
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.infrastructure.postgres import schema_in_thread
from tests.integrations.ganeti.machine.instance_rules import InstanceRules
from tests.integrations.ganeti.machine.plan_rules import PlanRules
from tests.profiles import EXAMPLES, examples

BATCH = 9
"""From its tenth example on Hypothesis mostly varies what it had: small batches try more that is new."""


class DoorMachine(PlanRules, InstanceRules):
    """All rules together."""


def run_machine(machine: type[DoorMachine], runs: int, steps: int) -> None:
    """Run a machine so often, in batches; in a check always the same ones."""
    for first in range(0, runs, BATCH):

        class Batch(machine):  # type: ignore[misc,valid-type]
            pass

        seeded = Batch if EXAMPLES else seed(first)(Batch)
        few = settings(max_examples=min(BATCH, runs - first), stateful_step_count=steps)
        run_state_machine_as_test(seeded, settings=few)


def test_any_sequence_of_commands_keeps_the_invariants() -> None:
    run_machine(DoorMachine, examples(0.75), steps=40)


def test_any_sequence_of_commands_on_a_file_keeps_the_invariants() -> None:
    numbers = count()
    with TemporaryDirectory() as folder:

        class FileMachine(DoorMachine):
            url = "sqlite:"

            def place(self) -> str:
                return f"sqlite:///{Path(folder)}/{next(numbers)}.db"

        run_machine(FileMachine, examples(0.1), steps=25)


def test_any_sequence_of_commands_on_a_server_keeps_the_invariants() -> None:
    class ServerMachine(DoorMachine):
        url = "postgresql:"

        def place(self) -> str:
            self.schema = ExitStack()
            return self.schema.enter_context(schema_in_thread())

        def teardown(self) -> None:
            with self.schema:
                super().teardown()

    run_machine(ServerMachine, examples(0.07), steps=20)
