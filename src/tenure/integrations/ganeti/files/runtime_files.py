"""The files of running instances (KVM): a command line, NICs, parameters, disks; converted, and held against a ledger.

A runtime file is a list whose second member is the list of NICs as the instance was started with. What is converted is
the ``ip`` of each NIC, and the network that a NIC may carry under ``netinfo``; everything else stays as it is.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tenure.integrations.ganeti.files.file_model import NETWORKS, REVISED, TODAY, FileRemark, Form, Json
from tenure.integrations.ganeti.files.json_parts import FileFaults, Part, parse_document
from tenure.integrations.ganeti.files.read.file_instances import read_ips
from tenure.integrations.ganeti.files.read.file_networks import OLD_FIELDS, read_network
from tenure.integrations.ganeti.files.unknown_fields import NESTS, rest_of, restored
from tenure.integrations.ganeti.files.write_documents import not_today, write_network
from tenure.integrations.ganeti.machine_model import Instance, Nic
from tenure.kernel.errors import Conflict
from tenure.kernel.names import check_name, shown

NICS = 1
"""Which member of the list the NICs are."""

SHORTEST = 3
"""How many members the oldest files have: no disks."""


def read_runtime(data: bytes) -> list[Any]:
    """Read a runtime file from its bytes; Invalid names every fault with its place."""
    document = parse_document(data)
    check_runtime(document)
    assert isinstance(document, list)
    return document


def check_runtime(document: object) -> None:
    """Raise unless a document is a runtime file."""
    faults = FileFaults()
    if not isinstance(document, list) or len(document) < SHORTEST:
        faults.add("file", f"a list of at least {SHORTEST} members is needed, not {shown(document)}")
    else:
        for nic in Part({"nics": document[NICS]}, "", faults).members("nics"):
            nic.read("ip", read_ips, None)
        # ``members`` takes a null for a list that is left out, which a runtime file cannot do.
        if document[NICS] is None:
            faults.add("nics", "a list is needed, not None")
    faults.check()


def convert_runtime(document: Sequence[Any], form: Form) -> list[Any]:
    """Write a runtime file in a form; one that has it already comes back equal."""
    check_runtime(document)
    members = list(document)
    members[NICS] = [_converted(nic, f"nics[{index}]", form) for index, nic in enumerate(document[NICS])]
    return members


def _converted(nic: Json, place: str, form: Form) -> Json:
    made = dict(nic)
    if "ip" in nic:
        ip = nic["ip"]
        if form == REVISED:
            made["ip"] = ip if isinstance(ip, list) else [] if ip is None else [ip]
        elif isinstance(ip, list):
            if len(ip) > 1:
                raise Conflict(f"{place}.ip: {len(ip)} IPs, today's form can say one", field="form")
            made["ip"] = ip[0] if ip else None
    if isinstance(nic.get("netinfo"), dict):
        made["netinfo"] = convert_network(nic["netinfo"], f"{place}.netinfo", form)
    return made


def convert_network(document: Json, place: str, form: Form) -> Json:
    """Write a network's document in a form, without a ledger; equal if it has that form already, or no block."""
    if (REVISED if document.get("subnets") is not None else TODAY) == form or not _has_blocks(document):
        return dict(document)
    faults = FileFaults()
    part = Part(document, place, faults)
    uuid = part.needed("uuid", lambda value, field: check_name(value, field=field))
    name = part.needed("name", lambda value, field: check_name(value, field=field))
    network = read_network(part, uuid or "", name or "")
    faults.check()
    if form == TODAY and (reasons := not_today(network)):
        raise Conflict(f"{place}: today's form cannot say this: {'; '.join(reasons)}", field="form")
    # The rest is what the document says beyond its own form; put onto the other form, nothing unknown is lost.
    rest = rest_of(document, write_network(network, network.form), NESTS[NETWORKS])
    return restored(rest, write_network(network, form), NESTS[NETWORKS])


def _has_blocks(document: Json) -> bool:
    return any(document.get(key) is not None for key in (*OLD_FIELDS, "subnets"))


def differences(document: Sequence[Any], instance: Instance) -> list[FileRemark]:
    """Tell which NICs of a runtime file have other IPs than the instance, or are only in one of the two."""
    check_runtime(document)
    told: list[FileRemark] = []
    left = {nic.uuid: nic for nic in instance.nics}
    for index, running in enumerate(document[NICS]):
        place = f"nics[{index}]"
        nic = _match(running, left)
        if nic is None:
            told.append(FileRemark(place, f"instance {instance.name} has no such NIC ({running.get('mac')})"))
            continue
        del left[nic.uuid]
        ips = read_ips(running["ip"], place) if running.get("ip") is not None else []
        if ips != nic.addresses:
            told.append(FileRemark(f"{place}.ip", f"runs with {_listed(ips)}, the ledger has {_listed(nic.addresses)}"))
    return [*told, *(FileRemark("nics", f"NIC {nic.uuid} ({nic.mac}) is not running") for nic in left.values())]


def _match(running: Json, left: Mapping[str, Nic]) -> Nic | None:
    """Find the NIC that is meant: by uuid, or by MAC where the file has none."""
    if isinstance(running.get("uuid"), str):
        return left.get(running["uuid"])
    mac = str(running.get("mac")).lower()
    return next((nic for nic in left.values() if nic.mac == mac), None)


def _listed(addresses: Sequence[str]) -> str:
    return ", ".join(addresses) or "none"
