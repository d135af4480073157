"""Moving out: a ledger written as a configuration, with everything that the file it came from said beside."""

from collections.abc import Callable

from tenure.integrations.ganeti.files.file_model import (
    INSTANCES,
    NETWORKS,
    REVISED,
    SECTIONS,
    TODAY,
    ClusterConfiguration,
    Form,
    Json,
)
from tenure.integrations.ganeti.files.ledger_snapshot import Snapshot, check_units, read_ledger
from tenure.integrations.ganeti.files.unknown_fields import NESTS, restored
from tenure.integrations.ganeti.files.unknown_fields_papers import FILE, Plain, plain_objects
from tenure.integrations.ganeti.files.write_documents import nics_not_today, not_today, odd_today
from tenure.integrations.ganeti.machine_model import Master
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.errors import Conflict, Invalid
from tenure.kernel.names import shown
from tenure.service.ledger.async_ledger import AsyncLedger

Warn = Callable[[str], object]

NO_FILE: Json = {"kept": {"serial_no": 1}, "absent": [], "null": []}
"""What is kept of the whole file in a ledger that no file was brought into."""


async def export_cluster(ledger: AsyncLedger, form: Form, *, warn: Warn | None = None) -> Json:
    """Write a ledger's networks, groups, nodes and instances as a configuration of one form.

    Conflict names everything that today's form cannot say; ``warn`` is told what it can say and Ganeti would refuse.
    """
    if form not in (TODAY, REVISED):
        raise Invalid(f"form: {shown(form)} is none of {TODAY}, {REVISED}", field="form")
    snapshot = await read_ledger(ledger)
    check_units(snapshot.networks.values())
    if form == TODAY:
        check_today(snapshot.cluster, warn)
    return write_snapshot(snapshot, form)


def check_today(cluster: ClusterConfiguration, warn: Warn | None = None) -> None:
    """Raise if today's form cannot say a cluster; with all reasons."""
    reasons = [reason for network in cluster.networks for reason in not_today(network)]
    reasons += [reason for instance in cluster.instances for reason in nics_not_today(instance)]
    if reasons:
        raise Conflict(f"today's form cannot say this: {'; '.join(reasons)}", field="form")
    if warn is not None:
        for network in cluster.networks:
            for text in odd_today(network):
                warn(text)


def write_snapshot(snapshot: Snapshot, form: Form) -> Json:
    """Write the whole file: plain objects with their rests put back, and what is in no section."""
    sections: dict[str, Json] = {section: {} for section in SECTIONS}
    # Papers that no object claims below are of objects that the ledger no longer has: a change of the file, too.
    changed, gone = False, set(snapshot.kept) - {FILE}
    for plain in plain_objects(snapshot.cluster, form):
        kept = snapshot.kept.get(plain.paper, {})
        document = restored(kept.get("rest", {}), plain.document, NESTS[plain.section])
        if kept.get("digest") != plain.digest:
            document.update(_raised(document, plain, snapshot))
        sections[plain.section][plain.name if kept.get("by_name") else plain.uuid] = document
        changed = changed or kept.get("held") != plain.held
        gone.discard(plain.paper)
    whole = snapshot.kept.get(FILE, NO_FILE)
    made = {**whole["kept"], **_said(sections, whole)}
    if not _has_master(made.get("cluster") or {}, snapshot.master):
        made["cluster"] = _with_master(made.get("cluster") or {}, snapshot.master)
        changed = True
    if (changed or gone) and FILE in snapshot.kept:
        made["serial_no"] = _next(made.get("serial_no"))
    return made


def _has_master(cluster: Json, master: Master) -> bool:
    """Tell whether the file's own part about the cluster has the master's address, however it is spelled there."""
    if not master.revision:
        return True  # the ledger was never told of one: what the file said of it stays
    said = cluster.get("master_ip")
    return (None if said is None else format_address(parse_address(said))) == master.ip


def _with_master(cluster: Json, master: Master) -> Json:
    """Return the part about the cluster with another address of the master, or without one."""
    rest = {key: value for key, value in cluster.items() if key != "master_ip"}
    return rest if master.ip is None else {**rest, "master_ip": master.ip}


def _said(sections: dict[str, Json], whole: Json) -> Json:
    """Return the sections that the file is to have; one that it had not, or as null, stays so while it is empty."""
    silent = {**dict.fromkeys(whole["absent"], False), **dict.fromkeys(whole["null"], True)}
    said: Json = {section: objects for section, objects in sections.items() if objects or section not in silent}
    return {**said, **{section: None for section, null in silent.items() if null and not sections[section]}}


def _raised(document: Json, plain: Plain, snapshot: Snapshot) -> Json:
    """Return the counter and the times of an object that is new, or no longer what the file said."""
    new = plain.paper not in snapshot.kept
    serial = 1 if new else _next(document.get("serial_no"))
    if plain.section == INSTANCES:
        return {"serial_no": max(serial, plain.serial)}
    if plain.section != NETWORKS:
        return {"serial_no": serial}
    network = snapshot.networks[plain.uuid]
    times = {"mtime": network.modified_us / 1_000_000}
    return {"serial_no": serial, **times, **({"ctime": network.created_us / 1_000_000} if new else {})}


def _next(serial: object) -> int:
    return serial + 1 if isinstance(serial, int) and not isinstance(serial, bool) else 1
