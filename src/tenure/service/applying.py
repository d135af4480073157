"""``apply``: edits, allocations, releases and transfers as one transaction, judged by the final state.

The operations run in the order they are written, each on what the ones before it left; then the final state is
judged. Either everything is committed, or nothing is. This code awaits nothing but the transaction.
"""

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import replace

from tenure.kernel.addresses import format_address, parse_address
from tenure.kernel.configuration import Configuration, Network
from tenure.kernel.editing import edited, new_network
from tenure.kernel.edits import AddNetwork, Edit, RemoveNetwork, RemoveSubnet
from tenure.kernel.entries import modify_entry, release_entry, transfer_entry
from tenure.kernel.errors import (
    AddressInUse,
    AlreadyExists,
    Conflict,
    Invalid,
    NotFound,
    NotOwner,
    StillInUse,
)
from tenure.kernel.judging import judge, lost_ground, new_gateways
from tenure.kernel.layout import Layout
from tenure.kernel.lifecycle import moved, rewritten
from tenure.kernel.names import Owner, check_generation, check_name, check_request, check_slot
from tenure.kernel.ranges import AddressRange
from tenure.kernel.values import Entry, NetworkId, Outcome, Row, SpaceId, Wish
from tenure.ports import Chance, Guard, Transaction
from tenure.service.claims import Claim, Granted
from tenure.service.exact import ExactViews
from tenure.service.lane import Restart, catch_up, serve
from tenure.service.operations import Allocate, ModifyHolding, Operation, Release, ReleaseOwner, Transfer

EVICT_PAGE = 1000

Result = Granted | Network | list[Granted] | None


class Applying:
    """One attempt at one ``apply``."""

    def __init__(
        self,
        tx: Transaction,
        chance: Chance,
        exact: MutableMapping[SpaceId, ExactViews],
        known: Mapping[SpaceId, Layout],
    ) -> None:
        self._tx = tx
        self._chance = chance
        self._kept_exact = exact
        self._known = known
        self._before: dict[SpaceId, Configuration] = {}
        self._now: dict[SpaceId, Configuration] = {}
        self._layouts: dict[SpaceId, Layout] = {}
        self._exact: dict[SpaceId, ExactViews] = {}
        self._freed: list[Row] = []
        self._entries: list[Entry] = []

    async def run(self, operations: Sequence[Operation], spaces: Sequence[SpaceId]) -> list[Result]:
        """Do it all on spaces that exist, then judge, write and log."""
        strength = guard_for(operations)
        versions = await self._tx.guard(sorted(spaces), strength)
        for configuration in await self._plans(versions):
            self._before[configuration.space] = self._now[configuration.space] = configuration
        results = await self._run_all(operations)
        await self._settle()
        if self._entries:
            await self._tx.log(self._entries)
        return results

    async def _plans(self, versions: Mapping[SpaceId, int]) -> list[Configuration]:
        """Return the plans of guarded spaces; what the server knows at this very version need not be read."""
        for space, version in versions.items():
            known = self._known.get(space)
            if known is not None and known.configuration.version == version:
                self._layouts[space] = known
        unknown = sorted(space for space in versions if space not in self._layouts)
        read = await self._tx.configurations(unknown) if unknown else []
        return [*read, *(layout.configuration for layout in self._layouts.values())]

    @property
    def edited_spaces(self) -> list[SpaceId]:
        """Name the spaces whose configuration changed."""
        return [space for space, new in self._now.items() if new is not self._before.get(space)]

    async def _run_all(self, operations: Sequence[Operation]) -> list[Result]:
        results: list[Result] = []
        index = 0
        while index < len(operations):
            operation = operations[index]
            if isinstance(operation, Allocate):
                run = _leading_allocations(operations[index:])
                results.extend(await self._allocate(run))
                index += len(run)
                continue
            results.append(await self._run_one(operation))
            index += 1
        return results

    async def _run_one(self, operation: Operation) -> Result:
        if isinstance(operation, AddNetwork):
            return await self._add_network(operation)
        if isinstance(operation, Edit):
            return await self._edit(operation)
        if isinstance(operation, Release):
            return await self._release(operation)
        if isinstance(operation, ReleaseOwner):
            return await self._release_owner(operation)
        if isinstance(operation, ModifyHolding):
            return await self._modify(operation)
        assert isinstance(operation, Transfer)
        return await self._transfer(operation)

    def _space_of(self, network: str) -> SpaceId:
        for space, configuration in self._now.items():
            if network in configuration.networks:
                return space
        raise NotFound("network", network)

    def _layout(self, space: SpaceId) -> Layout:
        layout = self._layouts.get(space)
        if layout is None or layout.configuration is not self._now[space]:
            layout = self._layouts[space] = Layout(self._now[space])
        return layout

    async def _views(self, space: SpaceId) -> ExactViews:
        """Open exact views: the server's where the plan is untouched, fresh ones where it was edited."""
        views = self._exact.get(space)
        layout = self._layout(space)
        if views is not None and views.layout is layout:
            return views
        if self._now[space] is self._before.get(space):
            views = self._kept_exact.get(space)
            if views is None or views.layout.configuration.version != layout.configuration.version:
                views = self._kept_exact[space] = ExactViews(layout)
            views.lift()  # what an attempt that came to nothing laid
            self._layouts[space] = views.layout
            self._now[space] = self._before[space] = views.layout.configuration
            await catch_up(self._tx, views)
        else:
            views = ExactViews(layout)
        for row in self._freed:
            if row.space == space:
                views.lay(False, row.first, row.last)
        self._exact[space] = views
        return views

    async def _allocate(self, operations: Sequence[Allocate]) -> list[Result]:
        claims = [operation.claim() for operation in operations]
        by_space: dict[SpaceId, list[tuple[int, Claim]]] = {}
        for index, claim in enumerate(claims):
            by_space.setdefault(self._space_of(claim.network), []).append((index, claim))
        results: list[Result] = [None] * len(claims)
        for space, asked in by_space.items():
            views = await self._views(space)
            answers, entries = await serve(self._tx, views, [claim for _, claim in asked], self._chance, together=True)
            self._entries.extend(entries)
            for (index, _), answer in zip(asked, answers, strict=True):
                assert isinstance(answer, Granted)
                results[index] = answer
        return results

    async def _find(
        self, network: str, address: object, owner: Owner, generation: int | None, unless: tuple[str, str] = ("", "")
    ) -> Row | None:
        """Find the holding that a release or transfer names; None if nobody holds the address.

        ``unless`` it is this owner's slot that holds it: then that is the answer.
        """
        space = self._space_of(check_name(network, field="network"))
        check_generation(generation)
        place = parse_address(address)  # type: ignore[arg-type]  # parse_address refuses other types itself
        check_begins_unit(self._layout(space), network, place)
        [row] = await self._tx.rows_at(space, [place])
        if row is None or (row.network, row.owner, row.slot) == (self._now[space].network(network).id, *unless):
            return row
        check_holder(row, self._now[space].network(network).id, owner, generation, network)
        return row

    async def _release(self, operation: Release) -> Result:
        row = await self._find(operation.network, operation.address, Owner(operation.owner), operation.generation)
        if row is None:
            return None
        shown = Granted(row, self._layout(row.space))
        await self._remove([row], check_request(operation.request))
        return shown

    async def _modify(self, operation: ModifyHolding) -> Result:
        """Write on a holding, or move it from held to draining and back."""
        owner, request = Owner(operation.owner), check_request(operation.request)
        row = await self._find(operation.network, operation.address, owner, operation.generation)
        if row is None:
            raise NotFound("holding", f"of {operation.address} in network {operation.network}", field="address")
        wanted = {name: getattr(operation, name) for name in ("labels", "description", "carrier", "plan")}
        new = row._replace(state=moved(row, operation.state), details=rewritten(row.details, wanted))
        if new != row:
            await self._tx.rewrite([new])
            self._entries.append(modify_entry(new, request))
        return Granted(new, self._layout(row.space))

    async def _release_owner(self, operation: ReleaseOwner) -> Result:
        rows = [*await self._tx.rows_of([Owner(operation.owner)])]
        if any(row.space not in self._now for row in rows):
            raise Restart  # it came to hold something in a space that this transaction does not
        shown = [Granted(row, self._layout(row.space)) for row in rows]
        if rows:
            await self._remove(rows, check_request(operation.request))
        return shown

    async def _remove(self, rows: Sequence[Row], request: str | None) -> None:
        await self._tx.remove(rows)
        await self._tx.remember([row for row in rows if self._remembers(row)])
        self._entries.extend(release_entry(row, request) for row in rows)
        for row in rows:
            self._freed.append(row)
            if row.space in self._exact:
                self._exact[row.space].lay(False, row.first, row.last)

    def _remembers(self, row: Row) -> bool:
        layout = self._layout(row.space)
        try:
            return layout.remembers(layout.name_of(row.network))
        except KeyError:  # its network went in this very apply
            return False

    async def _transfer(self, operation: Transfer) -> Result:
        owner, to, slot = Owner(operation.owner), Owner(operation.to), check_slot(operation.to_slot)
        request = check_request(operation.request)
        row = await self._find(operation.network, operation.address, owner, operation.generation, (to, slot))
        if row is not None and (row.owner, row.slot) == (to, slot):
            return Granted(row, self._layout(row.space))  # asked again: it has been handed over (I6)
        if row is None:
            raise NotFound("holding", f"of {operation.address} in network {operation.network}", field="address")
        await self._tx.remove([row])
        wish = Wish(row.network, row.first, row.last, to, slot, row.state, row.until_us, request, row.details)
        [verdict] = await self._tx.insert(row.space, [wish])
        if verdict.outcome is Outcome.ALREADY and verdict.row is not None:
            hint = f"{to} holds {format_address(verdict.row.first)} there"
            raise AlreadyExists("holding", f"{to} in {operation.network}", hint=hint, field="to")
        if verdict.outcome is not Outcome.GRANTED or verdict.row is None:
            raise Restart
        self._entries.append(transfer_entry(verdict.row, row))
        return Granted(verdict.row, self._layout(row.space))

    async def _add_network(self, edit: AddNetwork) -> Result:
        name = check_name(edit.network, field="network")
        if any(name in configuration.networks for configuration in self._now.values()):
            raise AlreadyExists("network", name)
        space_name = name if edit.space is None else check_name(edit.space, field="space")
        space = next((space for space, known in self._now.items() if known.name == space_name), None)
        if space is not None and edit.space is None:
            hint = f"pass space={space_name!r} to share it"
            raise AlreadyExists("space", space_name, hint=hint, field="network")
        if space is None:
            try:
                space = await self._tx.add_space(space_name)
            except AlreadyExists:  # made by somebody else since we looked
                raise Restart from None
            self._now[space] = Configuration(space, space_name, 1)
        network = new_network(edit, await self._tx.next_network(), edit.uuid or "")
        configuration = self._now[space]
        self._now[space] = replace(configuration, networks={**configuration.networks, name: network})
        self._entries.append(Entry(edit.verb, space, network.id, details=edit.told()))
        return network

    async def _edit(self, edit: Edit) -> Result:
        space = self._space_of(check_name(edit.network, field="network"))
        network = self._now[space].network(edit.network)
        self._now[space] = edited(self._now[space], edit)
        if isinstance(edit, RemoveNetwork | RemoveSubnet) and edit.cascade:
            gone = network.subnets if isinstance(edit, RemoveNetwork) else [network.subnet(edit.subnet)]
            for subnet in gone:
                await self._evict(space, network.id, subnet.cidr.range)
        self._entries.append(Entry(edit.verb, space, network.id, details=edit.told()))
        return next((other for other in self._now[space].networks.values() if other.id == network.id), None)

    async def _evict(self, space: SpaceId, network: NetworkId, where: AddressRange) -> None:
        """End a network's holdings in a range."""
        while rows := await self._tx.rows_within(space, where.first, where.last, network=network, limit=EVICT_PAGE):
            await self._remove(rows, None)

    async def _settle(self) -> None:
        """Judge the final state of every edited space, and write it."""
        for space in self.edited_spaces:
            old, new = self._before.get(space), self._now[space]
            judge(new)
            if old is not None:
                await self._check_lost_ground(old, new)
            await self._check_gateways(old or Configuration(space, new.name), new)
            await self._write(old, new)

    async def _check_lost_ground(self, old: Configuration, new: Configuration) -> None:
        """Refuse to leave holdings without a subnet."""
        for lost in lost_ground(old, new):
            where, number = lost.range, lost.network.id
            rows = await self._tx.rows_within(old.space, where.first, where.last, network=number, limit=EVICT_PAGE)
            if rows:
                names = [f"{row.owner} ({format_address(row.first)})" for row in rows]
                raise StillInUse("network", lost.network.name, names)

    async def _check_gateways(self, old: Configuration, new: Configuration) -> None:
        for gateway in new_gateways(old, new):
            rows = await self._tx.rows_within(new.space, gateway, gateway, limit=1)
            if rows:
                raise AddressInUse(format_address(gateway), rows[0].owner)

    async def _write(self, old: Configuration | None, new: Configuration) -> None:
        before = {} if old is None else {network.id: network for network in old.networks.values()}
        after = {network.id: network for network in new.networks.values()}
        gone = [number for number in before if number not in after]
        if gone:
            await self._tx.remove_networks(gone)
        changed = [network for number, network in after.items() if before.get(number) is not network]
        await self._tx.put_networks(new.space, changed)
        if after:
            await self._tx.bump(new.space)
        else:
            await self._tx.remove_space(new.space)


def guard_for(operations: Sequence[Operation]) -> Guard:
    """Return how strongly the spaces must be held."""
    if any(isinstance(operation, Edit) for operation in operations):
        return Guard.EDIT
    return Guard.LANE


def check_begins_unit(layout: Layout, network: str, place: int) -> None:
    """Raise unless an address lies in a subnet of the network and begins what is handed out there."""
    subnet = layout.subnet_at(network, place)
    first = subnet.unit_at(place).first
    if first != place:
        inside = f"{format_address(place)} lies inside {format_address(first)}/{subnet.unit}"
        raise Invalid(f"address: {inside}; name its first address", field="address")


def check_holder(row: Row, network: int, owner: Owner, generation: int | None, network_name: str) -> None:
    """Raise unless the row is the owner's, in that network, of that generation."""
    address = format_address(row.first)
    if row.owner != owner:
        raise NotOwner(address, owner, row.owner)
    if row.network != network:
        hint = f"{owner} holds it in another network of the space"
        raise NotFound("holding", f"of {address} in network {network_name}", hint=hint, field="network")
    if generation not in (None, row.generation):
        raise Conflict(
            f"address {address} was released and granted again since (generation {row.generation}, not {generation})",
            field="generation",
        )


def _leading_allocations(operations: Sequence[Operation]) -> list[Allocate]:
    run: list[Allocate] = []
    for operation in operations:
        if not isinstance(operation, Allocate):
            break
        run.append(operation)
    return run
