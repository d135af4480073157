"""Networks as this door's commands change them: each command is one ``apply``, judged by the final state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from tenure.integrations.ganeti.cluster import Cluster, refuse_strangers, structure
from tenure.integrations.ganeti.hooks import Hooking, HookResult
from tenure.integrations.ganeti.machine_model import DEFAULT_LINK, DEFAULT_MODE, INSTANCE, MODES, NIC
from tenure.integrations.ganeti.network_hooks import (
    ADD,
    CONNECT,
    DISCONNECT,
    MODIFY,
    REMOVE,
    RENAME,
    NetworkHooks,
)
from tenure.integrations.ganeti.network_lookup import NetworkLookup, Outrun, apply_fresh, settled, unchanged
from tenure.integrations.ganeti.options.deprecated import OldOptions, design_old_options
from tenure.integrations.ganeti.options.network_edits import Design, design_pools, design_reserved, design_subnets
from tenure.integrations.ganeti.options.network_grammar import check_door_name
from tenure.kernel.errors import Conflict, Invalid, NotFound, StillInUse, TenureError
from tenure.kernel.names import shown
from tenure.kernel.plan.apply_edit import new_network
from tenure.kernel.plan.edits import KEEP, AddNetwork, Connect, Disconnect, ModifyNetwork, RemoveNetwork
from tenure.kernel.plan.new_ground import opened_ground
from tenure.kernel.plan.plan_model import Connection, Network
from tenure.service.apply import cluster_rules
from tenure.service.apply.operations import (
    ExpectNoPapers,
    IgnoreConflicts,
    Operation,
    RemovePaper,
    Shown,
    WritePaper,
)
from tenure.service.ledger.async_ledger import AsyncLedger

NO_WORDS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkOptions:
    """What ``network add`` and ``network modify`` were told, as written."""

    subnets: Sequence[str] = ()
    pools: Sequence[str] = ()
    add_reserved: str | None = None
    remove_reserved: str | None = None
    old: OldOptions = field(default_factory=OldOptions)
    check: bool = True


@dataclass(frozen=True, slots=True)
class Changed:
    """A network as a command left it (or as it was, if it is gone), what is to be said about it, how hooks went."""

    network: Network
    warnings: tuple[str, ...] = ()
    hooks: tuple[HookResult, ...] = ()


class Networks:
    """The networks of a ledger, in the words of this door."""

    def __init__(self, ledger: AsyncLedger, hooking: Hooking | None = None) -> None:
        self._ledger = ledger
        self._hooking = hooking
        self._cluster = Cluster(ledger)

    async def find(self, ident: str) -> Network:
        """Find a network by name or uuid."""
        return await NetworkLookup(self._ledger).find(ident)

    async def add(self, wish: AddNetwork, options: NetworkOptions) -> Changed:
        """Add a network with all that the options say, or nothing."""
        _check_tags(wish.tags)
        check_door_name(wish.network, "name")
        # Made here, and not by the ledger: the design is drawn on the very network that the ledger is to have.
        made = wish if wish.uuid is not None else replace(wish, uuid=str(uuid4()))

        async def attempt() -> Changed:
            design = Design(new_network(made, 0, made.uuid or ""))
            _draw(design, options, new=True)
            return await self._send(made, design, options, ADD)

        return await settled(attempt)

    async def modify(self, ident: str, options: NetworkOptions, words: Mapping[str, Any] = NO_WORDS) -> Changed:
        """Change a network as the options and words (fields of ``ModifyNetwork``) say, wholly or not at all."""
        operation = RENAME if isinstance(words.get("name"), str) else MODIFY
        if operation == RENAME:
            check_door_name(words["name"], "name")

        async def attempt() -> Changed:
            network = await self.find(ident)
            design = Design(network)
            _draw(design, options, new=False)
            if any(value is not KEEP for value in words.values()):
                design.edit(ModifyNetwork(network=network.name, **words))
            if not design.edits:
                return Changed(network, tuple(design.warnings))
            return await self._send(unchanged(network), design, options, operation)

        return await settled(attempt)

    async def _send(self, first: Operation, design: Design, options: NetworkOptions, operation: str) -> Changed:
        design.judge()
        before = None if operation == ADD else design.before
        try:
            # The ledger looks at nodes and NICs under its locks. A cluster's first paper has to be there before: of two
            # changes that find none, each could miss the other.
            opened = options.check and opened_ground(design.before, design.network)
            lock = [await structure(self._ledger)] if opened else []
            checks: list[Operation] = [] if options.check else [IgnoreConflicts(network=design.before.name)]
            every = [*lock, first, *checks, *design.expected(), *design.edits]
            answers, hooks = await self._apply(operation, before, every)
        except TenureError as error:
            raise design.blamed(error) from None
        made = _last(answers)
        kept = design.kept_for_nodes(made) if options.check else []
        return Changed(made, (*design.warnings, *kept), hooks)

    async def _apply(
        self,
        operation: str,
        before: Network | None,
        every: Sequence[Operation],
        groups: Sequence[str] = (),
        marks: str | None = None,
    ) -> tuple[list[Shown], tuple[HookResult, ...]]:
        """Apply a command's operations, with the hooks before and after; a rehearsal says what these are told."""
        if self._hooking is None:
            return await apply_fresh(self._ledger, every, marks=marks), ()
        # What the ledger would refuse is refused before any hook runs for it.
        planned = await apply_fresh(self._ledger, every, rehearsed=True, marks=marks)
        run = NetworkHooks(self._hooking, operation, before, None if operation == REMOVE else _last(planned), groups)
        asked = await run.ask()
        try:
            answers = await apply_fresh(self._ledger, every, marks=marks)
        except Outrun as outrun:
            # Hooks may know of a network that a new decision would change: behind them there is no second try.
            if not asked:
                raise
            raise outrun.cause from None
        return answers, (*asked, *await run.report())

    async def remove(self, ident: str, *, cascade: bool = False) -> Changed:
        """Remove a network that is connected to no group; with its holdings if told so."""

        async def attempt() -> Changed:
            network = await self.find(ident)
            gone: list[Operation] = [unchanged(network), RemoveNetwork(network=network.name, cascade=cascade)]
            _, hooks = await self._apply(REMOVE, network, gone)
            return Changed(network, hooks=hooks)

        return await settled(attempt)

    async def tag(self, ident: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> Changed:
        """Put tags on a network, or take them off."""
        _check_tags(add)

        async def attempt() -> Changed:
            network = await self.find(ident)
            for tag in remove:
                if tag not in network.tags:
                    raise NotFound("tag", tag, network=network.name)
            tags = [tag for tag in dict.fromkeys([*network.tags, *add]) if tag not in remove]
            edit = ModifyNetwork(network=network.name, tags=tags)
            same = unchanged(network)
            return Changed(_last(await apply_fresh(self._ledger, [same, edit])))

        return await settled(attempt)

    async def connect(
        self,
        ident: str,
        groups: Sequence[str] = (),
        *,
        mode: str = DEFAULT_MODE,
        link: str = DEFAULT_LINK,
        vlan: str = "",
        check: bool = True,
        replaces: bool = False,
    ) -> Changed:
        """Connect a network to groups, or to all; where it is connected already nothing changes.

        ``replaces``: where it is connected in another way, it is connected in this one, and NICs that were wired in the
        old way are wired in the new one, in the same step.
        """
        wire = {"mode": _checked_mode(mode or DEFAULT_MODE), "link": link or DEFAULT_LINK, "vlan": vlan}

        async def attempt() -> Changed:
            # Before the network and the NICs are read: a NIC without network that comes meanwhile changes the revision.
            lock = await structure(self._ledger)
            network = await self.find(ident)
            chosen = await self._chosen(groups)
            fresh = [group for group in chosen if network.connection(group) is None]
            lines = [line for group in chosen if (line := network.connection(group)) is not None]
            other = [line for line in lines if replaces and line != Connection(line.group, **wire)]
            warnings = tuple(_already(network, line, wire) for line in lines if line not in other)
            if not fresh and not other:
                return Changed(network, warnings)
            if check:
                blocks = [subnet.cidr.range for subnet in network.subnets]
                refuse_strangers(network.name, await self._cluster.strangers(fresh), blocks)
            groups_wired = [*fresh, *(line.group for line in other)]
            wires = [Connect(network=network.name, group=group, **wire) for group in groups_wired]
            rewired = [paper for line in other for paper in await self._rewired(network, line, wire)]
            every = [lock, unchanged(network), *wires, *rewired]
            answers, hooks = await self._apply(CONNECT, network, every, groups_wired, marks=NIC)
            return Changed(_last(answers), warnings, hooks)

        try:
            return await settled(attempt)
        except (StillInUse, NotFound) as error:
            if error.kind == NIC:
                raise _other_nics(ident, error) from None
            raise

    async def _rewired(self, network: Network, line: Connection, wire: Mapping[str, str]) -> list[Operation]:
        """Wire the NICs on a network in a group again that are wired as it was connected there."""
        old = {"mode": line.mode, "link": line.link, "vlan": line.vlan}
        prefix = f"{network.uuid}/{line.group}/"
        marks = await self._ledger.papers(NIC, prefix=prefix)
        found: list[Operation] = []
        for name in dict.fromkeys(cluster_rules.instance_of_mark(mark.name) for mark in marks):
            try:
                paper = await self._ledger.paper(INSTANCE, name)
            except NotFound as error:  # the instance went, or got another name, since its marks were read
                raise Outrun(error) from None
            nics = [
                {**nic, **wire} if nic["network"] == network.uuid and old.items() <= nic.items() else nic
                for nic in paper.document["nics"]
            ]
            if nics != paper.document["nics"]:
                document = {**paper.document, "nics": nics, "serial": paper.document["serial"] + 1}
                found.append(WritePaper(kind=INSTANCE, name=name, document=document, revision=paper.revision))
        # All marks that were read go before they come again: one that is left then is of a NIC that was not read. A new
        # NIC expects the network as it is, so none comes between this look and the commit.
        return [
            *found,
            *(RemovePaper(kind=NIC, name=mark.name, revision=mark.revision) for mark in marks),
            ExpectNoPapers(kind=NIC, prefix=prefix),
            *(WritePaper(kind=NIC, name=mark.name, document=mark.document) for mark in marks),
        ]

    async def disconnect(self, ident: str, groups: Sequence[str] = ()) -> Changed:
        """Take a network off groups, or off all; refused while a NIC there uses it, with or without an address."""

        async def attempt() -> Changed:
            lock = await structure(self._ledger)
            network = await self.find(ident)
            chosen = await self._chosen(groups) if groups else [each.group for each in network.connections]
            off = [group for group in chosen if network.connection(group) is not None]
            warnings = tuple(_not_there(network, group) for group in chosen if group not in off)
            if not off:
                return Changed(network, warnings)
            same = unchanged(network)
            # Under the ledger's locks: a new instance expects the same network, and waits or is seen.
            unused = [ExpectNoPapers(kind=NIC, prefix=f"{network.uuid}/{group}/") for group in off]
            cut = [Disconnect(network=network.name, group=group) for group in off]
            answers, hooks = await self._apply(DISCONNECT, network, [lock, same, *unused, *cut], off)
            return Changed(_last(answers), warnings, hooks)

        try:
            return await settled(attempt)
        except StillInUse as error:
            users = sorted({f"instance {cluster_rules.instance_of_mark(holder)}" for holder in error.holders})
            raise StillInUse("network", ident, users, hint="remove their NICs on it first") from None

    async def _chosen(self, groups: Sequence[str]) -> list[str]:
        if groups:
            return list(dict.fromkeys([(await self._cluster.group(group)).name for group in groups]))
        known = [group.name for group in await self._cluster.groups()]
        if not known:
            problem = "there is no group to connect to"
            raise NotFound("group", "", problem=problem, hint="`tenure group add default` makes one")
        return known


def _draw(design: Design, options: NetworkOptions, *, new: bool) -> None:
    """Do what the options say in the order that stands in the reference."""
    design_old_options(design, options.old, new=new)
    design_subnets(design, options.subnets)
    design_pools(design, options.pools)
    design_reserved(design, options.add_reserved, options.remove_reserved)


def _checked_mode(mode: str) -> str:
    if mode not in MODES:
        raise Invalid(f"mode: one of {', '.join(MODES)} is needed, not {shown(mode)}", field="mode")
    return mode


def _check_tags(tags: Sequence[str]) -> None:
    """Refuse tags that lists could not show: with a comma or white space."""
    for tag in tags:
        if not isinstance(tag, str) or not tag or "," in tag or any(letter.isspace() for letter in tag):
            raise Invalid(f"tags: a word without comma and white space is needed, not {shown(tag)}", field="tags")


def _last(answers: Sequence[Shown]) -> Network:
    """Return the network as the last edit left it."""
    # Papers and expectations answer as well, and all edits of one network answer with its final state.
    return [answer for answer in answers if isinstance(answer, Network)][-1]


def _already(network: Network, line: Connection, wire: Mapping[str, str]) -> str:
    """Say of a connection that it was left as it was: as it is wanted, or in another way."""
    where = f"network {network.name} is connected to group {line.group} already"
    if line == Connection(line.group, **wire):
        return f"{where}; nothing was changed there"
    how = f"mode={line.mode},link={line.link}" + (f",vlan={line.vlan}" if line.vlan else "")
    return f"{where}, in another way ({how}); nothing was changed there; pass replaces=True to change it"


def _other_nics(ident: str, error: StillInUse | NotFound) -> Conflict:
    """Return what is said of NICs that came or went behind hooks, where no second try is made."""
    verb, marks = ("came to", error.holders) if isinstance(error, StillInUse) else ("left", [error.name])
    places = sorted({(cluster_rules.instance_of_mark(mark), mark.rsplit("/", 3)[1]) for mark in marks})
    what = ", ".join(f"instance {name} {verb} network {ident} in group {group}" for name, group in places)
    return Conflict(f"{what} meanwhile; run this again", field="network")


def _not_there(network: Network, group: str) -> str:
    return f"network {network.name} is not connected to group {group}; nothing was changed there"
