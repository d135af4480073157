"""Ports for servers that tests start, kill and start again where they were."""

import contextlib
import random
import socket

BELOW_OUTGOING = range(10_000, 32_000)
"""Linux gives outgoing connections ports from 32,768 on: while a server is away, its port must not be given to them."""


def free_port() -> int:
    """Find a port that is free, and is given to no outgoing connection while a server that was killed is away."""
    while True:
        port = random.SystemRandom().choice(BELOW_OUTGOING)
        with contextlib.suppress(OSError), socket.socket() as found:
            found.bind(("127.0.0.1", port))
            return port
