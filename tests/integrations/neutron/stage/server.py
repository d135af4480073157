"""A Neutron process as tests see it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.infrastructure.forks import FORKS
from tests.integrations.neutron.stage import entry
from tests.integrations.neutron.stage.settings import DONE, FAILED, PROJECT, REACHED, READY, Answer, Settings, port_of

PATIENCE_S = 400


class Refused(Exception):
    """A server did not start, or could not do what it was told; with its own words."""


class Server:
    """One process of Neutron's, told through a pipe what to do."""

    def __init__(self, settings: Settings, log: Path) -> None:
        self._log = log
        self._connection, theirs = FORKS.Pipe()
        self._process = FORKS.Process(target=entry.serve, args=(theirs, settings, log), daemon=True)
        self._process.start()
        theirs.close()
        try:
            self.pid: int = self._receive(READY)
        except Refused:
            self.close()
            raise

    def request(self, method: str, path: str, body: Any = None) -> Answer:
        """Ask Neutron for something."""
        return Answer(*self.tell("request", method, path, body))

    def network(self) -> str:
        """Make a network, and return its number."""
        answer = self.request("POST", "networks", {"network": {"name": "net", "tenant_id": PROJECT}})
        assert answer.status == 201, answer
        return str(answer.body["network"]["id"])

    def subnet(self, network: str, cidr: str = "10.0.0.0/24", **fields: Any) -> Answer:
        """Ask for a subnet."""
        version = 6 if ":" in cidr else 4
        subnet = {"network_id": network, "cidr": cidr, "ip_version": version, "tenant_id": PROJECT, **fields}
        return self.request("POST", "subnets", {"subnet": subnet})

    def port(self, network: str, *addresses: str, **fields: Any) -> Answer:
        """Ask for a port, at these addresses or any."""
        return self.request("POST", "ports", {"port": port_of(network, *addresses, **fields)})

    def delete_port(self, port: str) -> Answer:
        """Ask for the end of a port."""
        return self.request("DELETE", f"ports/{port}")

    def arm(self, point: str, what: str, **when: Any) -> None:
        """Let something happen at a point of what is asked for next."""
        self.tell("arm", point, what, **when)

    def scene(self, name: str, *words: Any) -> Any:
        """Play a scene in the process."""
        return self.tell("scene", name, *words)

    def tell(self, verb: str, *words: Any, **named: Any) -> Any:
        """Have something done, and return what came of it."""
        self.begin(verb, *words, **named)
        return self.end()

    def begin(self, verb: str, *words: Any, **named: Any) -> None:
        """Have something done, and do not wait."""
        self._connection.send((verb, words, named))

    def end(self) -> Any:
        """Wait for what was begun."""
        return self._receive(DONE)

    def reached(self) -> str:
        """Wait until the process stops at a point."""
        return str(self._receive(REACHED))

    def go_on(self) -> None:
        """Let the process leave the point at which it stopped."""
        self._connection.send(None)

    def kill(self) -> None:
        """Kill the process where it stands, and wait until it is gone."""
        self._process.kill()
        self._process.join(PATIENCE_S)

    def close(self) -> None:
        """End the process, if it lives."""
        self._connection.close()
        self._process.join(PATIENCE_S)
        if self._process.is_alive():
            self.kill()
        self._process.close()

    def _receive(self, wanted: str) -> Any:
        if not self._connection.poll(PATIENCE_S):
            raise Refused(f"no answer after {PATIENCE_S} s; see {self._log}")
        kind, value = self._connection.recv()
        if kind == FAILED:
            raise Refused(value)
        assert kind == wanted, (kind, value)
        return value


@contextmanager
def started(settings: Settings, log: Path) -> Iterator[Server]:
    """Give a server that has started, and end it."""
    server = Server(settings, log)
    try:
        yield server
    finally:
        server.close()
