"""A process of Neutron's: reads its site, then orders, one on a line, and answers each on a line."""

import contextlib
import os
import sys
import warnings
from typing import TextIO

from bench.neutron_jobs import ALLOCATE, GIVE_BACK, Order, Site


def main() -> None:
    """Serve the site on standard input until it ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", buffering=1)
    warnings.simplefilter("ignore")  # Neutron's libraries complain about each other
    with answers, contextlib.redirect_stdout(sys.stderr):
        serve(answers)


def serve(answers: TextIO) -> None:
    """Do what is ordered."""
    from bench.neutron_site import Server  # after the warnings are silenced

    server = Server(Site.load(sys.stdin.readline()))
    print(server.subnet, file=answers)
    for line in sys.stdin:
        order = Order.load(line)
        if order.what == ALLOCATE:
            answer = server.allocate(order.count, lowest=order.lowest).dump()
        elif order.what == GIVE_BACK:
            server.give_back()
            answer = "done"
        else:
            answer = str(server.count())
        print(answer, file=answers)


if __name__ == "__main__":
    main()
