"""A crowd inside one server: workers forked after the driver was used, as Neutron forks its own, all at one network."""

import json
import logging
import os
import random
import time
import traceback
from collections.abc import Sequence
from typing import Any

from neutron_lib.db import api as db_api

from tenure.integrations.neutron.driver import TenureSubnet
from tests.integrations.neutron.stage.neutron import Neutron
from tests.integrations.neutron.stage.settings import Answer

FULL = 409


class Noting(logging.Handler):
    """Notes why Neutron makes requests again, in the words of what it caught."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []
        logger = logging.getLogger("neutron_lib.db.api")
        logger.setLevel(logging.DEBUG)
        logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Note one."""
        if "retriable" in record.msg and isinstance(record.args, tuple):
            [error] = record.args
            self.texts.append(f"{type(error).__name__}: {error}")


class Worker:
    """One process of the crowd, and what it did, when, with what result."""

    def __init__(self, neutron: Neutron, network: str) -> None:
        self._neutron = neutron
        self._network = network
        self._noting = Noting()
        self._asked = 0
        self.events: list[dict[str, Any]] = []

    def work(self, verb: str, ports: Sequence[str], times: int) -> dict[str, Any]:
        """Fill the network, change ports in it, or empty it."""
        self._count_questions()
        if verb == "fill":
            while self._create().status != FULL:
                pass
        elif verb == "churn":
            self._churn(list(ports), times)
        else:
            for port in ports:
                self._delete(port)
        return {"events": self.events, "asked": self._asked, "retries": self._noting.texts}

    def _churn(self, ports: list[str], times: int) -> None:
        chance = random.Random(os.getpid())
        for _ in range(times):
            self._delete(ports.pop(chance.randrange(len(ports))))
            made = self._create()
            if made.status == 201:
                ports.append(made.body["port"]["id"])

    def _create(self) -> Answer:
        begin = time.monotonic()
        answer = self._neutron.create_port(self._network)
        port = answer.body.get("port", {"id": "", "fixed_ips": [{"ip_address": ""}]})
        self._note("create", begin, port["id"], answer.status, port["fixed_ips"][0]["ip_address"])
        return answer

    def _delete(self, port: str) -> None:
        begin = time.monotonic()
        answer = self._neutron.delete_port(port)
        self._note("delete", begin, port, answer.status, "")

    def _note(self, verb: str, begin: float, port: str, status: int, address: str) -> None:
        end = time.monotonic()
        self.events.append(
            {"verb": verb, "begin": begin, "end": end, "port": port, "status": status, "address": address}
        )

    def _count_questions(self) -> None:
        """Count how often the driver is asked for an address."""
        allocate = TenureSubnet.allocate

        def counted(subnet: TenureSubnet, request: Any) -> str:
            self._asked += 1
            return allocate(subnet, request)

        TenureSubnet.allocate = counted  # type: ignore[method-assign, assignment]


def play(neutron: Neutron, network: str, verb: str, ports: Sequence[Sequence[str]], times: int = 0) -> list[Any]:
    """Let as many workers as there are lists of ports do something at once; return what each tells."""
    if verb == "fill":
        _use(neutron, network)
    db_api.get_context_manager().dispose_pool()  # as Neutron does before it forks
    gate, opened = os.pipe()
    workers = [_fork(neutron, network, verb, own, times, gate, opened) for own in ports]
    os.close(gate)
    os.close(opened)  # everybody starts
    return [_wait(*worker) for worker in workers]


def _use(neutron: Neutron, network: str) -> None:
    """Use the driver before anybody is forked; workers also find in their memory what it took long to compile."""
    made = neutron.create_port(network)
    if made.status == 201:
        neutron.delete_port(made.body["port"]["id"])


def _fork(
    neutron: Neutron, network: str, verb: str, ports: Sequence[str], times: int, gate: int, opened: int
) -> tuple[int, int]:
    """Fork a worker that starts when the gate opens; return its number, and where it tells."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    os.close(opened)
    status = 1
    try:
        os.read(gate, 1)
        told = Worker(neutron, network).work(verb, ports, times)
        with os.fdopen(writing, "w") as file:
            json.dump(told, file)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _wait(pid: int, reading: int) -> Any:
    with os.fdopen(reading) as file:
        text = file.read()
    _, status = os.waitpid(pid, 0)
    assert status == 0, f"a worker ended with {status}"
    return json.loads(text)
