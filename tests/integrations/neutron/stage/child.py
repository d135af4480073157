"""The child: a process with a Neutron in it that does what it is told through a pipe."""

import os
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.integrations.neutron.stage import crowd, scenes
from tests.integrations.neutron.stage.neutron import Neutron
from tests.integrations.neutron.stage.points import Points
from tests.integrations.neutron.stage.settings import DONE, FAILED, REACHED, READY, Answer, Settings


def serve(connection: Connection, settings: Settings, log: Path) -> None:
    """Start Neutron, then answer until the other side hangs up."""
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(written, 1)
    os.dup2(written, 2)
    try:
        neutron = Neutron(settings, log.parent)
    except Exception as error:
        connection.send((FAILED, _told(error)))
        return
    connection.send((READY, os.getpid()))
    answer(connection, neutron)


def answer(connection: Connection, neutron: Neutron) -> None:
    """Do one thing after the other."""

    def stop(point: str) -> None:
        connection.send((REACHED, point))
        connection.recv()

    verbs = verbs_of(neutron, Points(neutron, stop))
    while True:
        try:
            verb, words, named = connection.recv()
        except EOFError:
            return
        try:
            result = (DONE, verbs[verb](*words, **named))
        except Exception as error:
            result = (FAILED, _told(error))
        connection.send(result)


def verbs_of(neutron: Neutron, points: Points) -> dict[str, Callable[..., Any]]:
    """Return what a server can be told to do."""

    def request(*words: Any) -> Answer:
        answer = neutron.request(*words)
        points.check()
        return answer

    return {
        "request": request,
        "arm": points.arm,
        "scene": lambda name, *words: scenes.SCENES[name](neutron, *words),
        "crowd": lambda *words: crowd.play(neutron, *words),
    }


def _told(error: Exception) -> str:
    traceback.print_exception(error)
    return f"{type(error).__name__}: {error}"
