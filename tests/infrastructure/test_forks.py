"""Children of the fork server have what they need before they begin: else each of them imports it anew."""

import sys
from multiprocessing.connection import Connection

from tests.infrastructure.forks import FORKS, PRELOADED


def say_what_is_there(pipe: Connection) -> None:
    """Send the names of the wanted modules that are there already."""
    pipe.send([name for name in PRELOADED if name in sys.modules])
    pipe.close()


def test_a_child_begins_with_everything_imported() -> None:
    ours, theirs = FORKS.Pipe()
    child = FORKS.Process(target=say_what_is_there, args=[theirs])
    child.start()
    there = ours.recv()
    child.join()

    assert there == [*PRELOADED]
