"""What a command on an instance will do, decided from its options and from what the ledger says; nothing is changed."""

import asyncio
import secrets
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from uuid import uuid4

from tenure.integrations.ganeti.cluster import Cluster
from tenure.integrations.ganeti.instance.job import Job
from tenure.integrations.ganeti.instance.nics import (
    TO_MAKE_UP,
    Shape,
    loose_options,
    mac_prefix,
    shape,
)
from tenure.integrations.ganeti.instance_records import load_instance, rewired
from tenure.integrations.ganeti.machine_model import (
    INSTANCE,
    MAC,
    Instance,
    Nic,
    Node,
    check_word,
    owner_of,
)
from tenure.integrations.ganeti.network_lookup import NetworkLookup
from tenure.integrations.ganeti.options.nic_drafts import NicDraft, drafts_of_change, drafts_of_new
from tenure.integrations.ganeti.options.option_errors import blamed
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.errors import AlreadyExists, Conflict, Invalid, NotFound
from tenure.kernel.plan.plan_model import Network
from tenure.service.ledger.async_ledger import AsyncLedger

DEFAULT_NIC = "0"
"""What an instance gets if nothing is said of its NICs: one, without network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceOptions:
    """What commands on instances say beside NICs."""

    node: str | None = None
    force: bool = False
    check: bool = True

    @property
    def reaches(self) -> bool:
        """Tell whether externally reserved addresses may be had: either word says so."""
        return self.force or not self.check


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveTarget:
    """Where an instance is to go: to a node, or to a group, whose first node takes it."""

    node: str | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        if (self.node is None) == (self.group is None):
            raise Invalid("node: name a node or a group to move to, one of the two", field="node")


async def plan_add(ledger: AsyncLedger, name: str, nets: Sequence[str], options: InstanceOptions) -> Job:
    """Decide how a new instance will look."""
    check_word(name, field=INSTANCE)
    atlas = NetworkLookup(ledger)
    drafts = await _resolved(drafts_of_new(nets), name)
    networks = await _networks(drafts, atlas)
    node = await _node(ledger, options.node, networks.values())
    made = shape(owner_of(name), node.group, drafts, networks, _new_slots())
    nics = await _with_macs(ledger, made, networks, ())
    after = Instance(name, str(uuid4()), node.name, node.group, nics)
    return Job(ledger, None, after, made.takes, node, options.reaches, options.check, atlas, said=loose_options(made))


async def plan_modify(ledger: AsyncLedger, name: str, nets: Sequence[str], options: InstanceOptions) -> Job | None:
    """Decide how an instance will look after a change; None if that is how it looks."""
    atlas = NetworkLookup(ledger)
    before = await load_instance(ledger, name, atlas)
    drafts = await _resolved(drafts_of_change(before.nics, nets), name)
    networks = await _networks(drafts, atlas)
    made = shape(before.owner, before.group, drafts, networks, _new_slots(), before.nics)
    nics = await _with_macs(ledger, made, networks, before.nics)
    if nics == before.nics:
        return None
    after = replace(before, nics=nics, serial=before.serial + 1)
    return Job(ledger, before, after, made.takes, None, options.reaches, options.check, atlas, said=loose_options(made))


async def plan_rename(ledger: AsyncLedger, name: str, new: str) -> Job | None:
    """Decide how an instance gets another name, and keeps its uuid, NICs and addresses; None if it has the name."""
    check_word(new, field=INSTANCE)
    atlas = NetworkLookup(ledger)
    before = await load_instance(ledger, name, atlas)
    if new == before.name:
        return None
    return Job(ledger, before, replace(before, name=new, serial=before.serial + 1), atlas=atlas)


async def plan_move(ledger: AsyncLedger, name: str, target: MoveTarget, *, check: bool = True) -> Job | None:
    """Decide how an instance comes to another node with all its addresses; None if it is there.

    In another group its NICs on networks take the mode, link and VLAN by which the networks reach that group.
    """
    atlas = NetworkLookup(ledger)
    before = await load_instance(ledger, name, atlas)
    node = await _target_node(ledger, target, before)
    if node.name == before.node:
        return None
    nics = before.nics
    if node.group != before.group:
        networks = await atlas.of_uuids(nic.network for nic in nics if nic.network is not None)
        nics = tuple(nic if nic.network is None else rewired(nic, networks[nic.network], node.group) for nic in nics)
    after = replace(before, node=node.name, group=node.group, nics=nics, serial=before.serial + 1)
    return Job(ledger, before, after, node=node, check=check, atlas=atlas)


async def _target_node(ledger: AsyncLedger, target: MoveTarget, instance: Instance) -> Node:
    """Find the node to move to; of a group the first, or the one that the instance is on."""
    cluster = Cluster(ledger)
    if target.node is not None:
        return await cluster.node(target.node)
    group = await cluster.group(target.group or "")
    nodes = [node for node in await cluster.nodes() if node.group == group.name]
    if not nodes:
        hint = f"`tenure node add NAME --group {group.name}` makes one"
        raise NotFound("node", "", problem=f"no node is in group {group.name!r}", hint=hint)
    return next((node for node in nodes if node.name == instance.node), nodes[0])


async def plan_remove(ledger: AsyncLedger, name: str) -> Job:
    """Decide how an instance goes: with all its addresses."""
    atlas = NetworkLookup(ledger)
    return Job(ledger, await load_instance(ledger, name, atlas), None, atlas=atlas)


async def _mac_holder(ledger: AsyncLedger, mac: str) -> str | None:
    try:
        return str((await ledger.paper(MAC, mac)).document["instance"])
    except NotFound:
        return None


async def _networks(drafts: Iterable[NicDraft], atlas: NetworkLookup) -> dict[str, Network]:
    """Find all networks that NICs are or will be on, by what the options call them and by uuid."""
    found: dict[str, Network] = {}
    for draft in drafts:
        with blamed("--net", draft.option):
            if isinstance(draft.wish.network, str):
                network = found[draft.wish.network] = await atlas.find(draft.wish.network)
                found[network.uuid] = network
            if draft.before is not None and draft.before.network is not None:
                found[draft.before.network] = await atlas.of_uuid(draft.before.network)
    return found


async def _node(ledger: AsyncLedger, name: str | None, networks: Iterable[Network]) -> Node:
    """Find the node that is named, or the first whose group all networks are connected to."""
    cluster = Cluster(ledger)
    if name is not None:
        return await cluster.node(name)
    # ``networks`` has a network by what the options call it and again by its uuid: here each counts once.
    nodes, wanted = await cluster.nodes(), {network.name: network for network in networks}.values()
    for node in nodes:
        if all(network.connection(node.group) for network in wanted):
            return node
    if not nodes:
        problem = "there is no node to carry the instance"
        raise NotFound("node", "", problem=problem, hint="`tenure node add NAME` makes one")
    names = ", ".join(network.name for network in wanted)
    hint = "`tenure network connect` connects a network to a group"
    raise Conflict(f"--net: no node is in a group that {names} is connected to; {hint}", field="net")


async def _resolved(drafts: list[NicDraft], name: str) -> list[NicDraft]:
    """Turn ``ip=auto`` into the address that the instance's name has."""
    for draft in drafts:
        if "auto" in draft.wish.ips.values():
            with blamed("--net", draft.option):
                address = await _look_up(name)
                ips = {index: address if spec == "auto" else spec for index, spec in draft.wish.ips.items()}
                draft.wish = replace(draft.wish, ips=ips)
    return drafts


async def _look_up(name: str) -> str:
    try:
        [first, *_] = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Invalid(f"ip=auto: the name {name!r} has no address ({error.strerror})") from None
    # A name may stand for an address with a zone, which no address of the ledger has.
    return format_address(parse_address(str(first[4][0]).partition("%")[0]))


async def _with_macs(
    ledger: AsyncLedger, made: Shape, networks: Mapping[str, Network], before: Sequence[Nic]
) -> tuple[Nic, ...]:
    """Make up the MACs that are wanted, and refuse named ones that another NIC has.

    A made-up one that somebody has (one in millions) is refused when it is written, and all is decided afresh.
    """
    own = {nic.mac for nic in before}
    used: set[str] = set()
    done: list[Nic] = []
    for nic, option in zip(made.nics, made.options, strict=True):
        mac = nic.mac
        if mac == TO_MAKE_UP:
            mac = _new_mac(mac_prefix(None if nic.network is None else networks[nic.network]), used)
        with blamed("--net", option):
            if mac in used:
                raise AlreadyExists(MAC, mac, hint="two NICs of the instance have it")
            # Only a MAC that an option names is looked up: a made-up one is left to the commit.
            if mac == nic.mac and mac not in own and (holder := await _mac_holder(ledger, mac)) is not None:
                raise AlreadyExists(MAC, mac, hint=f"instance {holder} has it")
        used.add(mac)
        done.append(replace(nic, mac=mac))
    return tuple(done)


def _new_mac(prefix: str, used: set[str]) -> str:
    while (mac := ":".join([prefix, *(f"{byte:02x}" for byte in secrets.token_bytes(3))])) in used:
        pass
    return mac


def _new_slots() -> Iterator[str]:
    """Yield names of slots that no other command uses, whatever runs at the same time."""
    stem = uuid4().hex[:12]
    return (f"{stem}.{number}" for number in count())
