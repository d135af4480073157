"""What the operator gives its controllers, and what it asks of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from tenure.integrations.kubernetes.operator_settings import OperatorSettings
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.event_recorder import EventRecorder
from tenure.integrations.kubernetes.runtime.leader_lease import LeaderLease
from tenure.integrations.kubernetes.runtime.process_probes import Sample
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter


@dataclass
class OperatorContext:
    """What controllers are given."""

    settings: OperatorSettings
    client: ApiClient
    lease: LeaderLease
    events: EventRecorder
    meter: RuntimeMeter


class Controller(Protocol):
    """A part of the operator that looks after some kinds."""

    name: str

    async def listen(self) -> int:
        """Open what others connect to, and return its port, 0 if there is none; raise ``PortTaken`` if it cannot be."""
        ...

    async def close(self) -> None:
        """Close what ``listen`` opened."""
        ...

    def not_ready(self) -> Mapping[str, str]:
        """Return what this part still waits for: caches that are not synced, a certificate that is missing."""
        ...

    def samples(self) -> Iterable[Sample]:
        """Return the numbers of this part, such as those of ``operator_samples``."""
        ...

    async def follow(self) -> None:
        """Keep caches up to date, on every replica, until cancelled; compare them every ten minutes (KP13)."""
        ...

    async def lead(self) -> None:
        """Do the work, on the leader, until cancelled."""
        ...


class PortTaken(Exception):
    """A port cannot be listened on; says which, and ``option`` where another one can be named."""

    def __init__(self, option: str, host: str, port: int, error: OSError) -> None:
        super().__init__(f"{host}:{port} cannot be listened on: {error.strerror}")
        self.option = option
