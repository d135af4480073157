"""Which boot of which machine a node is, and whether another machine has its name (VD3)."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tenure.integrations.vmpool.pod_surroundings import first_text
from tenure.integrations.vmpool.state.pool_notes import NodeNote

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Of the kernel, so it is the same in every container of a node, and another one after each boot."""
KERNEL_STATISTICS = Path("/proc/stat")
SYSTEM_ID = Path("/sys/class/dmi/id/product_uuid")
"""Of the hardware or the hypervisor. ``/etc/machine-id`` would not do: a container has one of its own, or a new one
each time it is started."""
# Few, since notes share the ConfigMap with the state.
EARLIER_BOOTS = 4
USUAL_LOOKS_S, LONGEST_LOOKS_S, CLAIM_MARGIN_S = 40, 3600, 10
"""How often an agent looks of which that is not noted; at most, for this purpose; and how much later it may come."""


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """A node by its name, and by what no other machine and no other boot shares with it."""

    node_name: str
    boot_id: str
    booted_at: datetime
    """By the node's own clock, which also wrote the times of its allocations; whole seconds."""
    system_id: str = ""
    """Empty where the machine does not show it, as to a process that is not root."""


def read_node_identity(
    node_name: str,
    *,
    boot_id: Path = BOOT_ID,
    statistics: Path = KERNEL_STATISTICS,
    system_id: Path = SYSTEM_ID,
) -> NodeIdentity:
    """Read what tells this boot of this node from any other; raise ``OSError`` where the kernel does not show it."""
    return NodeIdentity(
        node_name, boot_id.read_text("utf-8").strip(), _booted_at(statistics), first_text([system_id]).lower()
    )


def find_node_identity(node_name: str) -> NodeIdentity | None:
    """Return what tells this boot of this node from any other; nothing where the kernel does not show it."""
    try:
        return read_node_identity(node_name)
    except OSError:
        return None


def _booted_at(statistics: Path) -> datetime:
    """Return when the kernel was started; it counts from the clock of now, so a clock that was set later is no harm."""
    for line in statistics.read_text("utf-8").splitlines():
        if line.startswith("btime "):
            return datetime.fromtimestamp(int(line.split()[1]), UTC)
    raise OSError(f"{statistics} does not say when the node was booted")


def name_clash(noted: NodeNote | None, own: NodeIdentity) -> str:
    """Return why the node that was noted under this name is another machine; an empty text if it may be this one.

    A machine that is booted again has another boot id, and was booted after it was last seen; so a machine that was
    up already when another boot was seen under its name, or whose boot was seen before that other one, is not alone.
    """
    if noted is None or noted.boot_id == own.boot_id:
        return ""
    if noted.system_id and own.system_id and noted.system_id != own.system_id:
        return f"it was the name of the machine {noted.system_id}, and this is the machine {own.system_id}"
    if own.booted_at < noted.seen_at:
        up, seen = own.booted_at.isoformat(), noted.seen_at.isoformat()
        return f"this machine is up since {up}, and at {seen} another machine had the name (boot {noted.boot_id})"
    if own.boot_id == noted.objected_to:
        return f"the machine that has the name runs (boot {noted.boot_id}), and has objected to this one"
    if own.boot_id in noted.earlier_boots:
        return f"this boot ({own.boot_id}) had the name before another one ({noted.boot_id}), so both are running"
    return ""


def noted_again(noted: NodeNote | None, own: NodeIdentity, now: datetime, looks_every_s: int = 0) -> NodeNote:
    """Return the note of a node that is seen now."""
    if noted is None:
        return NodeNote(own.boot_id, own.system_id, now, looks_every_s=looks_every_s)
    every_s, system = looks_every_s or noted.looks_every_s, own.system_id or noted.system_id
    if noted.boot_id == own.boot_id:
        return replace(noted, system_id=system, seen_at=now, looks_every_s=every_s)
    earlier = (*noted.earlier_boots, noted.boot_id)[-EARLIER_BOOTS:]
    return NodeNote(own.boot_id, system, now, noted.recovered, earlier, every_s)


def must_ask(noted: NodeNote | None, own: NodeIdentity) -> bool:
    """Return whether a boot under a name may be that of another machine than the one that was noted under it.

    Where both show their hardware, ``name_clash`` has compared it. Where they do not, a boot that is younger than what
    was seen before looks like the same machine, booted again; the other one, if it runs, is asked before anything of
    its VMs is touched.
    """
    is_known = noted is not None and bool(noted.system_id and own.system_id)
    return noted is not None and noted.boot_id != own.boot_id and not is_known


def claim_ends(noted: NodeNote, own: NodeIdentity, now: datetime) -> datetime | None:
    """Return until when a machine that asks for the name waits for an objection; none if it has not asked yet."""
    # A claim from the future was made before the clock was set back, and is made again.
    if noted.claimant != own.boot_id or noted.claimed_at is None or noted.claimed_at > now:
        return None
    looks_s = noted.looks_every_s or USUAL_LOOKS_S
    return noted.claimed_at + timedelta(seconds=2 * min(looks_s, LONGEST_LOOKS_S) + CLAIM_MARGIN_S)
