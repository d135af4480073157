"""What an operator is started with."""

import os
import socket
from dataclasses import dataclass, field


@dataclass(frozen=True)
class OperatorSettings:
    """Settings of ``tenure operator``; the command line has an option for each."""

    kubeconfig: str | None = None
    context: str | None = None
    namespaces: tuple[str, ...] = ()
    """Namespaces to work in; none: the whole cluster."""
    controllers: tuple[str, ...] = ()
    own_namespace: str = "default"
    """Where the Lease and the Secret of the certificate are."""
    lease: str = "tenure-operator"
    identity: str = field(default_factory=lambda: f"{socket.gethostname()}_{os.getpid()}")
    host: str = "127.0.0.1"
    port: int = 8081
    """For health, readiness and metrics; 0 takes a free one."""
