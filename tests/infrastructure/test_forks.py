"""Children of the fork server have what they need before they begin: else each of them imports it anew."""

import gc
import sys
from multiprocessing.connection import Connection

from tests.infrastructure.forks import FORKS, PRELOADED


def say_what_is_there(pipe: Connection) -> None:
    """Send the names of the wanted modules that are there already, and how many objects no collector visits."""
    pipe.send(([name for name in PRELOADED if name in sys.modules], gc.get_freeze_count()))
    pipe.close()


def test_a_child_begins_with_everything_imported() -> None:
    ours, theirs = FORKS.Pipe()
    child = FORKS.Process(target=say_what_is_there, args=[theirs])
    child.start()
    there, frozen = ours.recv()
    child.join()

    assert there == [*PRELOADED]
    assert frozen > 100_000
