"""One of several callers: runs command lines one after the other, each as a process of its own, and tells how they end.

It imports the command line once and forks for each call, which is a process like any other, only quicker to begin.
Reads lines of JSON, lists of words; writes a line of JSON for each: process id when it begins, exit code when it ends.
"""

import json
import os
import sys

from tenure.doors.cli.main import main


def serve() -> None:
    """Run what comes in, until nothing comes."""
    for line in sys.stdin:
        words = json.loads(line)
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            main(words)
        _tell({"pid": child})
        _, status = os.waitpid(child, 0)
        _tell({"words": words, "code": os.waitstatus_to_exitcode(status)})


def _tell(event: dict[str, object]) -> None:
    print(json.dumps(event), flush=True)


if __name__ == "__main__":
    serve()
