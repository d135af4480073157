"""One of several callers: runs command lines one after the other, each as a process of its own, and tells how they end.

It imports all that a call needs once and forks for each, which is a process like any other, only quicker to begin.
Reads lines of JSON, lists of words; writes a line of JSON for each: process id when it begins, exit code when it ends.
"""

import json
import os
import sys
from contextlib import redirect_stdout
from io import StringIO

import tenure.doors.cli.commands.instance.instance_change
import tenure.stores.postgres.store
import tenure.stores.sqlite.store  # noqa: F401  # these are what a call would import
from tenure.doors.cli.main import main
from tenure.integrations.ganeti import instances

GRACE_S = 5.0
"""How long addresses stay pending beyond the time of hooks; the usual time would be waited for after every kill."""


def serve() -> None:
    """Run what comes in, until nothing comes."""
    instances.GRACE_S = GRACE_S
    with redirect_stdout(StringIO()):
        _called(["group", "list", "--store", "memory:"])  # reads what each call would read again
    for line in sys.stdin:
        words = json.loads(line)
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os._exit(_called(words))  # without the long good-bye of an interpreter that has much loaded
        _tell({"pid": child})
        _, status = os.waitpid(child, 0)
        _tell({"words": words, "code": os.waitstatus_to_exitcode(status)})


def _called(words: list[str]) -> int:
    try:
        main(words)
    except SystemExit as end:
        return int(end.code or 0)
    raise AssertionError("a command ends its process")


def _tell(event: dict[str, object]) -> None:
    print(json.dumps(event), flush=True)


if __name__ == "__main__":
    serve()
