"""Operations on instances: what was decided, taken as pending if hooks or others come between, and committed.

    planned ──hold──> pending ──commit──> committed ──end──> ended
       └──────────────commit──────────────────^
    pending ──fail, or the process dies and the deadline passes──> nothing was done

What an operation takes is pending until it commits: nobody else can have it, and it shows no holder. What it gives
back cools until the operation ends, so that hooks can take it off the wire before somebody else gets it. What a renamed
instance holds, and what is pre-allocated to it, is handed over to its new name. Commit is one ``apply`` of holdings and
papers: of two commands on one instance, neither can lose what the other did.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tenure.integrations.ganeti.cluster import refuse_inside, structure
from tenure.integrations.ganeti.instance.nics import Take
from tenure.integrations.ganeti.instance_records import held_already, mark_changes, transfers, waiting_for
from tenure.integrations.ganeti.machine_model import IDENTITY, INSTANCE, NODE, Instance, NicIp, Node
from tenure.integrations.ganeti.network_lookup import NetworkLookup, Outrun, apply_fresh, settled, unchanged
from tenure.kernel.errors import AlreadyExists, Conflict, NotFound, PoolExhausted, TenureError
from tenure.kernel.holdings.holding_model import Holding
from tenure.kernel.plan.plan_model import Network
from tenure.service.apply.operations import (
    Allocate,
    Cancel,
    Confirm,
    EndCooling,
    ExpectPaper,
    Operation,
    Release,
    RemovePaper,
    Shown,
    WritePaper,
)
from tenure.service.ledger.async_ledger import AsyncLedger

PENDING_S = 600.0
"""How long what a job took stays pending, if nobody hears of the job again."""


@dataclass(frozen=True, slots=True)
class JobAddress:
    """An address that a job took or gave back: in which network (its uuid), and which holding of it."""

    network: str
    address: str
    generation: int | None = None


@dataclass(slots=True)
class Job:
    """One operation on one instance. ``before`` is None for a new one, ``after`` for one that goes.

    ``node`` is the node that the instance comes to: of a new instance, or of one that moves.
    """

    ledger: AsyncLedger
    before: Instance | None
    after: Instance | None
    takes: Sequence[Take] = ()
    node: Node | None = None
    force: bool = False
    check: bool = True
    atlas: NetworkLookup | None = None
    said: Mapping[str, str] = field(default_factory=dict)
    spaces: Mapping[str, int] = field(default_factory=dict)
    pending: dict[str, JobAddress] = field(default_factory=dict)
    cooling: list[JobAddress] = field(default_factory=list)

    @property
    def instance(self) -> Instance:
        """Return the instance: as it will be, or as it was if it goes."""
        instance = self.after or self.before
        assert instance is not None
        return instance

    @property
    def renames(self) -> bool:
        """Tell whether the instance gets another name."""
        return self.before is not None and self.after is not None and self.before.name != self.after.name

    async def hold(self, *, lasts_s: float = PENDING_S) -> None:
        """Take the addresses as pending: nobody else can have them until the deadline."""

        async def attempt() -> None:
            lock, networks = await self._ground()
            moving = {each.address for each in self._moving(networks)}
            # An address that moves within its space is still held by the other network: the commit takes it.
            takes = [take for take in self.takes if take.address not in moving]
            grants = [self._allocate(take, networks, lasts_s) for take in takes]
            answers = await apply_fresh(self.ledger, [*lock, *_unchanged(networks), *grants])
            for take, holding in zip(takes, _holdings(answers), strict=True):
                self.pending[take.slot] = JobAddress(take.network, holding.address, holding.generation)
            self._fill({slot: taken.address for slot, taken in self.pending.items()})

        if self.takes:
            await self._settled(attempt)

    async def commit(self, *, lingers_s: float | None = None) -> None:
        """Do it: confirm or take the addresses, give back the others, write the papers; all or nothing.

        ``lingers_s``: what is given back stays away from others until the job ends, and for so long at most.
        """

        async def attempt() -> None:
            lock, networks = await self._ground()
            first = [*lock, *_unchanged(networks), *self._same()]
            grants = [self._confirm(take, networks) or self._allocate(take, networks) for take in self.takes]
            # An address that moves within a space is released before the grants: only one network there can hold it.
            # Others are released behind them, so that a pick does not hand the instance what it just gave back.
            moving, leaving = self._moving(networks), self._leaving(networks)
            staying = [each for each in leaving if each not in moving]
            early, late = self._releases(moving, networks), self._releases(staying, networks, lingers_s)
            last = [*await self._renamed(), *self._papers()]
            try:
                answers = await apply_fresh(self.ledger, [*first, *early, *grants, *late, *last])
            except PoolExhausted:  # then what the instance gives back may be what it gets
                if not late or self.pending:
                    raise
                early, late = [*early, *late], []
                answers = await apply_fresh(self.ledger, [*first, *early, *grants, *last])
            # Releases answer with holdings, too: those before the grants and those behind them are cut off.
            granted = _holdings(answers[len(first) + len(early) :])[: len(self.takes)]
            self._fill({take.slot: holding.address for take, holding in zip(self.takes, granted, strict=True)})
            self.pending.clear()
            self.cooling = [] if lingers_s is None else staying

        await self._settled(attempt)

    async def fail(self) -> None:
        """Let go of what the job took; nothing of it was done."""
        taken, owner = list(self.pending.values()), self.instance.owner
        self.pending.clear()
        # Read anew: a network may have another name by now, or be gone with all that was held in it.
        names = await self._names() if taken else {}
        cancels = [
            Cancel(network=names[each.network], address=each.address, owner=owner, generation=each.generation)
            for each in taken
            if each.network in names
        ]
        await self.ledger.apply(cancels)

    async def end(self) -> None:
        """Let what the job gave back be free at once."""
        given, owner = list(self.cooling), self.instance.owner
        self.cooling.clear()
        names = await self._names() if given else {}
        ends = [
            EndCooling(network=names[each.network], address=each.address, owner=owner)
            for each in given
            if each.network in names
        ]
        await self.ledger.apply(ends)

    async def _settled(self, attempt: Callable[[], Awaitable[None]]) -> None:
        """Try again as long as networks change meanwhile; if the instance or its node did, what was decided is void."""

        async def unless_void() -> None:
            try:
                await attempt()
            except Outrun as outrun:
                # The revision may be that of the cluster's paper: then the job still stands, and is tried again.
                if await self.changed():
                    raise self._void(outrun.cause) from None
                raise
            except NotFound as error:
                if error.kind not in (IDENTITY, NODE):
                    raise
                problem = f"instance {self.instance.name!r} or its node was removed or replaced meanwhile"
                raise Conflict(problem, field="revision") from None

        await settled(unless_void)

    def _void(self, cause: TenureError) -> TenureError:
        """Return the error by whose field the command knows that it is to be decided again."""
        if cause.field == "revision":
            return cause
        return Conflict(f"instance {self.instance.name!r} or its node was changed meanwhile", field="revision")

    async def changed(self) -> bool:
        """Tell whether the instance or its new node is no longer as it was when the job was decided upon."""
        if self.node is not None and await self._revision(NODE, self.node.name) != self.node.revision:
            return True
        known = 0 if self.before is None else self.before.revision
        return await self._revision(INSTANCE, (self.before or self.instance).name) != known

    async def check_name(self) -> None:
        """Raise if the instance cannot have the name that it is to get.

        The commit would refuse it as well, but only after hooks have run for it.
        """
        if self.before is None:
            await self._refuse_taken()
        await self._renamed()

    async def _refuse_taken(self) -> None:
        """Raise if another instance has the name that this one is to get."""
        if await self._revision(INSTANCE, self.instance.name) != 0:
            raise AlreadyExists(INSTANCE, self.instance.name)

    async def _revision(self, kind: str, name: str) -> int:
        """Return the revision of a paper, 0 if there is none."""
        # A name sorts before all longer names that begin with it, so the first paper has the name, if any has.
        found = await self.ledger.papers(kind, prefix=name, limit=1)
        return found[0].revision if found and found[0].name == name else 0

    async def _names(self) -> dict[str, str]:
        """Name the networks that there are now, by uuid."""
        return {network.uuid: network.name for network in await self.ledger.networks()}

    async def _ground(self) -> tuple[list[Operation], dict[str, Network]]:
        """Read the networks and check what can be checked beforehand; the operation given back makes it stay true.

        The first time they are those that the job was decided upon.
        """
        # Used once: a second attempt must not decide on the networks that made the first one fail.
        atlas, self.atlas = self.atlas or NetworkLookup(self.ledger), None
        lock: list[Operation] = []
        strangers = self._strangers() if self.check else []
        if strangers:
            # Only new addresses outside of networks take part in the cluster's checks; other jobs do not wait in line.
            lock = [await structure(self.ledger)]
            connected = [network for network in await atlas.every() if network.connection(self.instance.group)]
            refuse_inside(connected, strangers)
        networks = await self._known_networks(atlas)
        self._check_wires(networks)
        if self._candidates(networks):
            # Asked for only where an address leaves one network for another: it costs a reading of all spaces.
            self.spaces = await atlas.spaces()
        return lock, networks

    async def _known_networks(self, atlas: NetworkLookup) -> dict[str, Network]:
        """Read the networks of the NICs that will be, and those of the NICs that were as far as they are there."""
        wanted = [nic.network for nic in self.after.nics if nic.network is not None] if self.after is not None else []
        networks = await atlas.of_uuids(wanted)
        for nic in self.before.nics if self.before is not None else ():
            if nic.network is not None and nic.network not in networks:
                with suppress(NotFound):  # somebody removed it with all that was held there
                    networks[nic.network] = await atlas.of_uuid(nic.network)
        return networks

    def _strangers(self) -> list[str]:
        """List the addresses that NICs without network have, and did not have before in the same group."""
        before = set(_loose_addresses(self.before)) if self._stays() else set()
        return [address for address in _loose_addresses(self.after) if address not in before]

    def _stays(self) -> bool:
        """Tell whether the instance was in its group before."""
        return self.before is not None and self.before.group == self.instance.group

    def _check_wires(self, networks: Mapping[str, Network]) -> None:
        """Refuse a network that is no longer connected to the instance's group, or otherwise than was decided upon."""
        # A NIC that stays as it was is not looked at: a file may bring in one whose network does not reach its group.
        kept = self.before.nics if self.before is not None and self._stays() else ()
        for nic in self.after.nics if self.after is not None else ():
            network = None if nic.network is None else networks[nic.network]
            if network is None or nic in kept:
                continue
            wires = network.connection(self.instance.group)
            if wires is None:
                problem = f"network {network.name!r} is not connected to group {self.instance.group!r}"
                raise Conflict(problem, field="network")
            if (wires.mode, wires.link, wires.vlan) != (nic.mode, nic.link, nic.vlan):
                problem = f"network {network.name!r} was connected otherwise to group {self.instance.group!r} meanwhile"
                # By ``revision`` the command knows that something changed meanwhile, and is decided afresh.
                raise Conflict(problem, field="revision")

    def _same(self) -> list[Operation]:
        """Make sure that the instance, and the node that it comes to, are still the very ones that were read."""
        read = (self.before, self.node)
        same = [ExpectPaper(kind=IDENTITY, name=each.uuid, revision=1) for each in read if each is not None]
        if self.node is not None:
            # A node may get another group or name; its identity says only that it is the same node.
            same.append(ExpectPaper(kind=NODE, name=self.node.name, revision=self.node.revision))
        return [*same]

    def _allocate(self, take: Take, networks: Mapping[str, Network], lasts_s: float | None = None) -> Allocate:
        return Allocate(
            network=networks[take.network].name,
            owner=self.instance.owner,
            slot=take.slot,
            address=take.address,
            pool=take.pool,
            # Force reaches for named addresses only: a pick never takes a reserved one.
            reserved="force" if self.force and take.address is not None else "refuse",
            pending=lasts_s is not None,
            lasts_s=lasts_s,
        )

    def _confirm(self, take: Take, networks: Mapping[str, Network]) -> Confirm | None:
        taken = self.pending.get(take.slot)
        if taken is None:
            return None
        network, owner = networks[taken.network].name, self.instance.owner
        return Confirm(network=network, address=taken.address, owner=owner, generation=taken.generation)

    def _candidates(self, networks: Mapping[str, Network]) -> list[JobAddress]:
        """List the addresses that leave one network and are wanted in another."""
        wanted = {take.address for take in self.takes if take.address is not None}
        return [each for each in self._leaving(networks) if each.address in wanted]

    def _moving(self, networks: Mapping[str, Network]) -> list[JobAddress]:
        """List those of them that stay in one space, where only one network can have them."""
        wanted = {(take.address, self.spaces.get(take.network)) for take in self.takes}
        found = self._candidates(networks)
        return [each for each in found if (each.address, self.spaces.get(each.network)) in wanted]

    def _leaving(self, networks: Mapping[str, Network]) -> list[JobAddress]:
        """List the addresses that the instance has and will not have any more."""
        kept = {(nic.network, ip.slot) for nic in (self.after.nics if self.after else ()) for ip in nic.ips}
        return [
            JobAddress(nic.network, ip.address)
            for nic in (self.before.nics if self.before else ())
            for ip in nic.ips
            if nic.network is not None and nic.network in networks
            if ip.address is not None and (nic.network, ip.slot) not in kept
        ]

    def _releases(
        self, leaving: Sequence[JobAddress], networks: Mapping[str, Network], lingers_s: float | None = None
    ) -> list[Release]:
        owner = self.instance.owner
        return [
            Release(network=networks[each.network].name, address=each.address, owner=owner, lingers_s=lingers_s)
            for each in leaving
        ]

    def _papers(self) -> list[Operation]:
        """Write the instance's paper over the one that was read, and the marks that find it."""
        known, own = 0 if self.before is None else self.before.revision, list[Operation]()
        if self.before is not None and (self.after is None or self.renames):
            own.append(RemovePaper(kind=INSTANCE, name=self.before.name, revision=known))
            known = 0
        if self.after is not None:
            document = self.after.document()
            own.append(WritePaper(kind=INSTANCE, name=self.after.name, document=document, revision=known))
        return [*own, *mark_changes(self.before, self.after)]

    async def _renamed(self) -> list[Operation]:
        """Hand all that a renamed instance holds, and what is pre-allocated to it, over to its new name."""
        if self.before is None or not self.renames:
            return []
        await self._refuse_taken()
        owners = {self.before.owner: self.instance.owner}
        if taken := held_already(await self.ledger.holdings(owner=self.instance.owner), owners):
            more = f" (and {len(taken) - 1} more)" if len(taken) > 1 else ""
            raise Conflict(f"{taken[0]}{more}", field="name")
        moved: list[Operation] = [*transfers(await self.ledger.holdings(owner=self.before.owner), owners)]
        for network in await NetworkLookup(self.ledger).every():
            waiting = waiting_for(network, owners)
            moved.extend([unchanged(network), *waiting] if waiting else [])
        return moved

    def _fill(self, addresses: Mapping[str, str]) -> None:
        """Note which addresses the slots got."""
        if self.after is not None:
            nics = tuple(replace(nic, ips=tuple(_filled(ip, addresses) for ip in nic.ips)) for nic in self.after.nics)
            self.after = replace(self.after, nics=nics)


def _unchanged(networks: Mapping[str, Network]) -> list[Operation]:
    return [unchanged(network) for network in networks.values()]


def _holdings(answers: Sequence[Shown]) -> list[Holding]:
    return [answer for answer in answers if isinstance(answer, Holding)]


def _filled(ip: NicIp, addresses: Mapping[str, str]) -> NicIp:
    return replace(ip, address=addresses.get(ip.slot, ip.address))


def _loose_addresses(instance: Instance | None) -> list[str]:
    nics = () if instance is None else instance.nics
    return [address for nic in nics if nic.network is None for address in nic.addresses]
