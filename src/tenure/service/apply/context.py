"""The ground that one ``apply`` works on: a transaction, the plans as they are now, exact views, what is to be logged.

This code awaits nothing but the transaction.
"""

from collections.abc import Mapping, MutableMapping, Sequence

from tenure.kernel.addressing.addresses import AddressLike, format_address, parse_unit
from tenure.kernel.errors import AddressOutsideSubnet, Conflict, Invalid, NotFound, NotOwner
from tenure.kernel.holding_states import cooling_us
from tenure.kernel.holdings.actor import Asker
from tenure.kernel.holdings.deadlines import is_over
from tenure.kernel.holdings.holding_model import Entry, NetworkId, Paper, Row, SpaceId, State
from tenure.kernel.holdings.log_entries import cool_entry, cooled_entry, overdue_entry, release_entry
from tenure.kernel.names import Owner, check_generation, check_name
from tenure.kernel.picking.policies import notes_former
from tenure.kernel.plan.layout import Layout
from tenure.kernel.plan.plan_model import Configuration
from tenure.ports import Chance, Guard, Transaction
from tenure.service.allocator.exact_view import ExactViews, renewed
from tenure.service.allocator.lane import catch_up
from tenure.service.allocator.revocable_grants import report
from tenure.service.apply.operations import OfHolding

ROWS_AT_ONCE = 1000
"""Holdings that are read in one question."""


class Ground:
    """What one attempt at one ``apply`` knows and has done so far."""

    def __init__(
        self,
        tx: Transaction,
        chance: Chance,
        exact: MutableMapping[SpaceId, ExactViews],
        known: Mapping[SpaceId, Layout],
        asker: Asker | None = None,
        *,
        bounded: bool = True,
    ) -> None:
        self.tx = tx
        self.bounded = bounded
        self.chance = chance
        self.asker = asker
        self.before: dict[SpaceId, Configuration] = {}
        self.now: dict[SpaceId, Configuration] = {}
        self.homes: dict[str, SpaceId] = {}
        """The space of each network, by the network's name."""
        self.spaces: dict[str, SpaceId] = {}
        self.papers: dict[tuple[str, str], Paper | None] = {}
        self.entries: list[Entry] = []
        self.warnings: dict[NetworkId, list[str]] = {}
        """What edits did to a network beside what they say."""
        self.unchecked: set[NetworkId] = set()
        """Networks whose edits need not look at what a cluster has in their way."""
        self._kept_exact = exact
        self._known = known
        self._layouts: dict[SpaceId, Layout] = {}
        self._exact: dict[SpaceId, ExactViews] = {}
        self._freed: list[Row] = []
        self._now_us: int | None = None
        self._ahead: dict[tuple[SpaceId, int], Row | None] = {}
        self._serials: dict[SpaceId, dict[NetworkId, int]] = {}

    async def now_us(self) -> int:
        """Read the store's clock, once: what one ``apply`` does, it does at one time."""
        if self._now_us is None:
            self._now_us = await self.tx.now_us()
        return self._now_us

    async def open(self, spaces: Sequence[SpaceId], strength: Guard) -> None:
        """Hold the spaces and learn their plans."""
        # Sorted: transactions that hold several spaces take them in one order and do not wait in a ring.
        versions = await self.tx.guard(sorted(spaces), strength)
        for configuration in await self._plans(versions):
            self.before[configuration.space] = configuration
            self.keep(configuration)

    def keep(self, configuration: Configuration) -> None:
        """Let this be the plan of its space from now on. O(networks), if some came, went or have another name."""
        space = configuration.space
        old = self.now.get(space)
        self.now[space] = configuration
        # Only where the old name still leads here: another space of this ``apply`` may have taken it.
        if old is not None and old.name != configuration.name and self.spaces.get(old.name) == space:
            del self.spaces[old.name]
        self.spaces[configuration.name] = space
        before = {} if old is None else old.networks
        if before.keys() != configuration.networks.keys():
            for name in before.keys() - configuration.networks.keys():
                del self.homes[name]
            self.homes.update((name, space) for name in configuration.networks.keys() - before.keys())

    def serial_before(self, space: SpaceId, network: NetworkId) -> int:
        """Return how often a network had been changed before this ``apply``; 0 if it is new."""
        if space not in self._serials:
            old = self.before.get(space)
            self._serials[space] = {} if old is None else {each.id: each.serial for each in old.networks.values()}
        return self._serials[space].get(network, 0)

    async def _plans(self, versions: Mapping[SpaceId, int]) -> list[Configuration]:
        """Return the plans of guarded spaces; what the server knows at this very version need not be read."""
        for space, version in versions.items():
            known = self._known.get(space)
            if known is not None and known.configuration.version == version:
                self._layouts[space] = known
        unknown = sorted(space for space in versions if space not in self._layouts)
        read = await self.tx.configurations(unknown) if unknown else []
        return [*read, *(layout.configuration for layout in self._layouts.values())]

    @property
    def edited_spaces(self) -> list[SpaceId]:
        """Name the spaces whose configuration changed."""
        return [space for space, new in self.now.items() if new is not self.before.get(space)]

    def space_of(self, network: str) -> SpaceId:
        """Find the space of a network."""
        space = self.homes.get(network)
        if space is None:
            raise NotFound("network", network)
        return space

    def layout(self, space: SpaceId) -> Layout:
        """Return the layout of a space as it is now."""
        layout = self._layouts.get(space)
        if layout is None or layout.configuration is not self.now[space]:
            layout = self._layouts[space] = Layout(self.now[space])
        return layout

    async def views(self, space: SpaceId) -> ExactViews:
        """Open exact views: the server's where the plan is untouched, fresh ones where it was edited."""
        views = self._exact.get(space)
        layout = self.layout(space)
        if views is not None and views.layout is layout:
            return views
        if self.now[space] is self.before.get(space):
            views = self._kept_exact.get(space)
            if views is None or views.layout.configuration.version != layout.configuration.version:
                views = self._kept_exact[space] = renewed(views, layout)
            views.lift()  # what an attempt that came to nothing laid
            # From here on this very object: ``layout`` and ``edited_spaces`` compare by identity.
            self._layouts[space] = views.layout
            self.now[space] = self.before[space] = views.layout.configuration
            await catch_up(self.tx, views)
        else:
            # An edited plan may yet be refused, so its views are never the server's own.
            views = ExactViews(layout)
        # What this ``apply`` has freed so far is not in the log yet.
        for row in self._freed:
            if row.space == space:
                views.lay(False, row.first, row.last)
        self._exact[space] = views
        return views

    async def find(
        self,
        network: str,
        address: AddressLike,
        owner: Owner,
        generation: int | None,
        unless: tuple[str, str] = ("", ""),
    ) -> Row | None:
        """Find the holding that an operation is about to report; None if nobody holds the address (any more).

        ``unless`` it is this owner's slot that holds it: then that is the answer.
        """
        row = await self.look(network, address, owner, generation, unless)
        return None if row is None else await report(self.tx, row)

    async def look(
        self,
        network: str,
        address: AddressLike,
        owner: Owner,
        generation: int | None,
        unless: tuple[str, str] = ("", ""),
    ) -> Row | None:
        """Find the same without noting anything: a reading stores nothing."""
        number, row = await self._row_at(network, address, generation)
        if row is None or row.state is State.COOLING:
            return None
        if (row.network, row.owner, row.slot) != (number, *unless):
            if row.owner != owner and row.until_us is not None and is_over(row, await self.now_us()):
                return None  # to everybody but its owner, who may confirm it, the address is free
            check_holder(row, number, owner, generation, network)
        return row

    async def find_cooling(
        self, network: str, address: AddressLike, owner: Owner, generation: int | None
    ) -> Row | None:
        """Find an address that this owner released and that cools; None if it does not (any more)."""
        number, row = await self._row_at(network, address, generation)
        if row is None or row.state is not State.COOLING or generation not in (None, row.generation):
            return None
        return row if (row.network, row.owner) == (number, owner) else None

    async def _row_at(self, network: str, address: AddressLike, generation: int | None) -> tuple[NetworkId, Row | None]:
        """Check what names a holding; return its network's number, and whatever begins at the address."""
        space = self.space_of(check_name(network, field="network"))
        check_generation(generation)
        place, length = parse_unit(address)
        check_begins_unit(self.layout(space), network, place, length)
        # Each reading serves once: the operation may change the row that it looked at.
        if (space, place) in self._ahead:
            row = self._ahead.pop((space, place))
        else:
            [row] = await self.tx.rows_at(space, [place])
        return self.now[space].network(network).id, row

    async def look_ahead(self, operations: Sequence[OfHolding]) -> None:
        """Read what lies at the addresses that operations name, one question for a thousand of them.

        They are done right after it, each at an address of its own; what one of them has looked at is read afresh when
        it is named again.
        """
        self._ahead.clear()
        if len(operations) < 2:
            return
        places: dict[SpaceId, list[int]] = {}
        for operation in operations:
            space = self.space_of(check_name(operation.network, field="network"))
            places.setdefault(space, []).append(parse_unit(operation.address)[0])
        for space, named in places.items():
            for start in range(0, len(named), ROWS_AT_ONCE):
                part = named[start : start + ROWS_AT_ONCE]
                rows = await self.tx.rows_at(space, part)
                self._ahead.update(((space, place), row) for place, row in zip(part, rows, strict=True))

    async def end(
        self, rows: Sequence[Row], request: str | None, because: str | None = None, *, lingers_us: int = 0
    ) -> None:
        """End holdings: their addresses are free, or cool where their pool (or the caller) says so."""
        now_us = await self.now_us() if rows else 0
        spans = [(row, self.cooling_us(row, lingers_us)) for row in rows]
        cooling = [row._replace(state=State.COOLING, until_us=now_us + us) for row, us in spans if us]
        await self.remove([row for row, us in spans if not us], request, because)
        if cooling:
            await self.tx.rewrite(cooling)
            await self.tx.remember([row for row in cooling if self._remembers(row)])
            self.entries.extend(cool_entry(row, request) for row in cooling)

    async def remove(self, rows: Sequence[Row], request: str | None, because: str | None = None) -> None:
        """End holdings at once, and lay what became free over the views."""
        cooled = [row for row in rows if row.state is State.COOLING]  # released before: this only ends the cooling
        ended = [row for row in rows if row.state is not State.COOLING]
        now_us = await self.now_us() if cooled else 0
        await self.sweep([row for row in cooled if is_over(row, now_us)])
        await self.cool_no_longer([row for row in cooled if not is_over(row, now_us)], request)
        if ended:
            await self._take_away(ended)
            await self.tx.remember([row for row in ended if self._remembers(row)])
            self.entries.extend(release_entry(row, request, because) for row in ended)

    async def sweep(self, rows: Sequence[Row]) -> None:
        """Remove rows whose time is over; the log names nobody for it."""
        if rows:
            await self._take_away(rows)
            self.entries.extend(overdue_entry(row) for row in rows)

    async def cool_no_longer(self, rows: Sequence[Row], request: str | None) -> None:
        """Remove rows that cool, before their time, since the caller says so."""
        if rows:
            await self._take_away(rows)
            self.entries.extend(cooled_entry(row, request, self.asker) for row in rows)

    async def _take_away(self, rows: Sequence[Row]) -> None:
        await self.tx.remove(rows)
        for row in rows:
            self._freed.append(row)
            if row.space in self._exact:
                self._exact[row.space].lay(False, row.first, row.last)

    def cooling_us(self, row: Row, lingers_us: int = 0) -> int:
        """Return for how long an address cools when its holding ends, under the plan as it is now."""
        return cooling_us(row.state, self._pool_cooling_us(row), lingers_us)

    def _pool_cooling_us(self, row: Row) -> int | None:
        layout = self.layout(row.space)
        try:
            network = layout.name_of(row.network)
            layout.subnet_at(network, row.first)
            return layout.pool_cooling_us(network, row.first)
        except (KeyError, AddressOutsideSubnet):  # its network or subnet went in this very apply
            return None

    def _remembers(self, row: Row) -> bool:
        layout = self.layout(row.space)
        try:
            return notes_former(layout.policies(layout.name_of(row.network)))
        except KeyError:  # its network went in this very apply
            return False


def check_begins_unit(layout: Layout, network: str, place: int, length: int | None) -> None:
    """Raise unless an address lies in a subnet of the network and names what is handed out there."""
    layout.check_length(network, place, length)
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
        problem = f"{owner} does not hold {address} in network {network_name!r}"
        raise NotFound("holding", address, network=network_name, problem=problem, hint=hint, field="network")
    if generation not in (None, row.generation):
        raise Conflict(
            f"address {address} was released and granted again since (generation {row.generation}, not {generation})",
            field="generation",
        )
