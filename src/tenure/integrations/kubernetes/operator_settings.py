"""What an operator is started with."""

import os
import secrets
import socket
from dataclasses import dataclass, field

from tenure.integrations.kubernetes.runtime.leader_lease import LeaseTimes


def own_identity() -> str:
    """Return a name for this process that no other replica has: containers share host names and process numbers."""
    return f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"


@dataclass(frozen=True)
class OperatorSettings:
    """Settings of ``tenure operator``; the command line has an option for each but those of lease and marks."""

    kubeconfig: str | None = None
    context: str | None = None
    namespaces: tuple[str, ...] = ()
    """Namespaces to work in; none: the whole cluster."""
    controllers: tuple[str, ...] = ()
    own_namespace: str = "default"
    """Where the Lease and the Secret of the certificate are."""
    lease: str = "tenure-operator"
    identity: str = field(default_factory=own_identity)
    """What this replica is called in the Lease; two replicas of one name would both lead."""
    lease_times: LeaseTimes = field(default_factory=LeaseTimes)
    host: str = "127.0.0.1"
    port: int = 8081
    """For health, readiness and metrics; 0 takes a free one."""
    metrics_auth: bool = False
    """Whether ``/metrics`` is answered only to callers whose token may get it (KP14)."""
    webhooks: bool = True
    """Whether this operator judges objects; without it another one does, such as Metal3's own."""
    webhook_host: str = "127.0.0.1"
    webhook_port: int = 9443
    """0 takes a free one."""
    webhook_certificates: str = ""
    """A folder in which others keep the certificate of the webhooks; empty: the operator makes it (KP1)."""
    default_strategy: str = "sequential"
    """The strategy of pools that name none (KS6)."""
    allow_outside: bool = False
    """Whether pre-allocations may lie outside the entries of pools that say nothing of it (A10)."""
    watch_filter: str = ""
    """Look after objects with this value of the label ``cluster.x-k8s.io/watch-filter`` only (E7)."""
    orphan_grace_s: float = 600.0
    """After how long an address without a claim is released."""
    claims_by_host: bool = False
    """Whether claims that are made for machines are named by their hosts (KS7)."""
    render_like_capm3: bool = False
    """Whether only what CAPM3 renders is rendered: nothing for ``dnsServersFromIPPool`` in metadata."""
    stale_mark_s: float = 120.0
    """After how long the mark of a move is taken off an object that nobody deletes."""
