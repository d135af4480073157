"""What running VMs say of themselves: read from a document, or asked of a command that writes one.

``{"app/0": {"vm": "vm-1", "networks": {"lab": {"ip": "172.20.5.2"}}}, "app/1": null}``: an instance is named by group
and index or uuid, and null is a VM that did not answer.
"""

import asyncio
import json
import os
import shlex
import signal
import tempfile
from asyncio.subprocess import DEVNULL, Process, create_subprocess_exec
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO

from tenure.integrations.bosh.documents.address_lists import parse_address_or_block
from tenure.integrations.bosh.documents.yaml_tree import LARGEST, DocumentFaults, Reader, Tree, read_tree
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, DocumentPlace, Refused
from tenure.integrations.bosh.model.document_model import DYNAMIC, MANUAL, VIP
from tenure.kernel.addressing.addresses import width
from tenure.kernel.addressing.ranges import Cidr
from tenure.kernel.errors import Invalid
from tenure.kernel.names import check_name

STATE_KEYS = ("vm", "networks")
NETWORK_KEYS = ("ip", "type")
OTHER_NETWORK_KEYS = (
    *("netmask", "prefix", "gateway", "dns", "default", "cloud_properties", "nic_group", "mac", "alias"),
    *("preconfigured", "use_dhcp", "dns_record_name"),
)
"""What an agent tells besides, and what is no news: it is what the VM was made with."""

LIMIT_S = 120.0
TOLD_BYTES = 2000


@dataclass(frozen=True, slots=True)
class Carries:
    """An address that a VM has on a network, as large as it is; ``kind`` is the network's, if the VM says so."""

    block: Cidr
    kind: str | None
    place: DocumentPlace | None = None


@dataclass(frozen=True, slots=True)
class VmState:
    """What one VM says. ``vm`` is None if it did not answer; ``networks`` are those it says an address of."""

    vm: str | None
    networks: Mapping[str, Carries] = field(default_factory=dict)
    place: DocumentPlace | None = None


def read_vm_state(text: str, document: str) -> Mapping[str, VmState]:
    """Read what VMs say, by the names of their instances. ``Rejected`` carries everything that is wrong."""
    faults = DocumentFaults()
    tree = read_tree(_spaced(text), document)
    found = {ident: _read_state(ident, said, Reader(faults)) for ident, said in tree.value.items()}
    faults.settle()
    return found


def _spaced(text: str) -> str:
    """Return JSON without its tabs, which YAML does not have: in JSON they never are part of a text."""
    if "\t" not in text:
        return text
    # A text that json cannot read is left as it is: read_tree reports what is wrong with it.
    with suppress(ValueError, RecursionError):
        json.loads(text)
        return text.replace("\t", " ")
    return text


def _read_state(ident: str, said: Tree, reader: Reader) -> VmState:
    group, _, which = ident.partition("/")
    if not group or not which or "/" in which:
        told = f"'{ident}' names no instance: write group/index or group/uuid"
        reader.faults.add(BoshErrorKind.GENERIC, told, said.place)
    if said.value is None:
        return VmState(None, place=said.place)
    if not isinstance(said.value, dict):
        reader.refuse_value(said, "must be a mapping, or null for a VM that did not answer")
        return VmState(None, place=said.place)
    reader.refuse_others(said, STATE_KEYS)
    vm = reader.get(said, "vm", str, needed=True)
    if vm is not None:
        _check_vm(vm, said.value["vm"].place, reader.faults)
    networks = reader.get(said, "networks", dict, needed=True)
    said_of = {} if networks is None else networks.value
    read = {name: _read_network(each, reader) for name, each in said_of.items() if _is_name(name, each.place, reader)}
    return VmState(vm, {name: carries for name, carries in read.items() if carries is not None}, said.place)


def _is_name(name: str, place: DocumentPlace, reader: Reader) -> bool:
    """Tell whether a network can be called so: what a VM has on one that is gone is held under its name."""
    return not reader.refuse_name(Tree(name, place))


def _check_vm(vm: str, place: DocumentPlace, faults: DocumentFaults) -> None:
    try:
        check_name(vm, field=place.path)
    except Invalid as error:
        faults.add(BoshErrorKind.GENERIC, error.message, place)


def _read_network(said: Tree, reader: Reader) -> Carries | None:
    """Read the address that a VM has on a network; on a dynamic one the IaaS may not have told any."""
    if not isinstance(said.value, dict):
        reader.refuse_value(said, "must be a mapping")
        return None
    reader.refuse_others(said, (*NETWORK_KEYS, *OTHER_NETWORK_KEYS))
    kind = reader.get(said, "type", str)
    if kind not in (None, MANUAL, DYNAMIC, VIP):
        place = said.value["type"].place
        reader.faults.add(BoshErrorKind.DEPLOYMENT_INVALID_NETWORK_TYPE, f"Invalid network type '{kind}'", place)
    ip = reader.get(said, "ip", str, needed=kind != DYNAMIC)
    if ip is None:
        return None
    place = said.value["ip"].place
    try:
        # A VM that reports its address with the length of its subnet does not have the whole subnet.
        found = parse_address_or_block(ip.strip(), strict=True)
    except Invalid as error:
        reader.faults.add(BoshErrorKind.NETWORK_INVALID_IP_RANGE_FORMAT, error.message, place)
        return None
    return Carries(Cidr(found.first, width(found.first) - (found.size - 1).bit_length()), kind, place)


async def ask_command(command: str, *, limit_s: float = LIMIT_S) -> Mapping[str, VmState]:
    """Run a command, without a shell, and read what it writes to its standard output.

    It has ``limit_s`` seconds; then it is ended with all that it started.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise _failed(command, f"is no command: {error}") from None
    if not words:
        raise _failed(command, "is no command: it is empty")
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        code = await _run(command, words, limit_s, output, errors)
        if code:
            raise _failed(command, f"ended with {code}{_last_words(errors)}")
        return read_vm_state(_written(command, output), f"output of {words[0]}")


async def _run(command: str, words: Sequence[str], limit_s: float, output: IO[bytes], errors: IO[bytes]) -> int:
    """Run a command that writes into files: so nobody waits for what it may leave running with its output."""
    try:
        # A session of its own, so that killpg reaches all that the command starts.
        process = await create_subprocess_exec(
            *words, stdin=DEVNULL, stdout=output, stderr=errors, start_new_session=True
        )
    except (OSError, ValueError) as error:
        raise _failed(command, f"cannot be started: {error}") from None
    try:
        async with asyncio.timeout(limit_s):
            return await process.wait()
    except TimeoutError:
        raise _failed(command, f"did not end within {limit_s:g} s") from None
    finally:
        await _end(process)


async def _end(process: Process) -> None:
    """End a command and all that it started, unless it has ended: it leads a group of its own, by its own number."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _written(command: str, output: IO[bytes]) -> str:
    output.seek(0)
    # One byte more than is allowed shows that there is more, without reading all of it.
    read = output.read(LARGEST + 1)
    if len(read) > LARGEST:
        raise _failed(command, f"writes more than {LARGEST} bytes")
    try:
        return read.decode()
    except UnicodeDecodeError as error:
        raise _failed(command, f"writes no UTF-8 (at byte {error.start})") from None


def _last_words(errors: IO[bytes]) -> str:
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - TOLD_BYTES))
    said = errors.read().decode("utf-8", "replace").strip()
    return f": {said}" if said else ""


def _failed(command: str, what: str) -> Refused:
    return Refused(BoshErrorKind.GENERIC, f"VMs cannot be asked: the command '{command}' {what}")
