"""The networks of a ledger that stand for Neutron's subnets: missing, extra, of another plan, in another space."""

from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from tenure.integrations.neutron.database import subnet_records
from tenure.integrations.neutron.database.allocation_rows import dialect_of, insert_unless_there
from tenure.integrations.neutron.database.subnet_records import SubnetRecord
from tenure.integrations.neutron.maintenance.drift import Drift
from tenure.integrations.neutron.maintenance.held_spans import NOBODY, HeldSpans, span_of
from tenure.integrations.neutron.maintenance.neutron_database import Database
from tenure.integrations.neutron.maintenance.repair_rows import locked_record
from tenure.integrations.neutron.transaction import ledger_plan
from tenure.integrations.neutron.transaction.ledger_client import Reach
from tenure.kernel.addressing.ranges import parse_cidr
from tenure.kernel.errors import Conflict, Invalid, NotFound, StillInUse
from tenure.kernel.holdings.holding_model import Holding
from tenure.kernel.plan.plan_model import Network

MOVES = "; `tenure neutron import` moves it, with Neutron's servers stopped"


@dataclass(slots=True)
class NetworkRepair:
    """The ledger's side of a deployment's subnets. ``moving``: no server is at work, a network may change its space."""

    reach: Reach
    realm: str
    moving: bool = False
    _spaces: dict[str, dict[str, Network]] = field(default_factory=dict)
    _space_of: dict[str, str] = field(default_factory=dict)
    _spans: dict[str, HeldSpans] = field(default_factory=dict)

    def read(self) -> None:
        """Read the plan of the whole ledger: once in a round, and what is changed in it is noted."""
        spaces = self.reach.ask(lambda ledger: ledger.spaces())
        self._spaces = {space.name: dict(space.networks) for space in spaces}
        self._space_of = {name: space for space, networks in self._spaces.items() for name in networks}
        self._spans = {}

    def spaces(self) -> set[str]:
        """Name the spaces that there are."""
        return set(self._spaces)

    def name(self, subnet: str) -> str:
        """Name the network of a subnet."""
        return ledger_plan.network_name(self.realm, subnet)

    def find(self, subnet: str) -> tuple[str, Network] | None:
        """Find the network of a subnet, and the name of its space."""
        name = self.name(subnet)
        space = self._space_of.get(name)
        return None if space is None else (space, self._spaces[space][name])

    def _reread(self, subnet: str, space: str) -> None:
        """Read one network; ``space`` is where it is if it was not there before. Nobody else moves it."""
        name = self.name(subnet)
        try:
            network = self.reach.ask(lambda ledger: ledger.network(name))
        except NotFound:
            self._forget(name)
            return
        self._spaces.setdefault(self._space_of.setdefault(name, space), {})[name] = network

    def _forget(self, name: str) -> None:
        space = self._space_of.pop(name, None)
        if space is not None:
            del self._spaces[space][name]
        self._spans.pop(name, None)

    def subnet_ids(self) -> set[str]:
        """List the subnets that this deployment has networks for; others may have names that begin alike."""
        every = [(name, network) for space in self._spaces.values() for name, network in space.items()]
        numbers = (
            ledger_plan.subnet_of(self.realm, name)
            for name, network in every
            if ledger_plan.MARK in network.notes.labels
        )
        return {number for number in numbers if number}

    def compare(self, record: SubnetRecord) -> list[Drift]:
        """Compare the network of a subnet with our record of it."""
        found = self.find(record.id)
        if found is None:
            return [Drift("network-missing", record.id, f"the ledger has no network {self.name(record.id)!r}")]
        space, network = found
        wanted = record.space or network.name
        if space != wanted:
            text = f"its network is in space {space!r} of the ledger, and should be in {wanted!r}"
            in_the_way = self._against_moving(record) if self.moving else MOVES
            return [Drift("network-space", record.id, text + in_the_way, repairable=not in_the_way)]
        if not ledger_plan.agrees(network, record):
            return [Drift("plan-differs", record.id, f"network {network.name!r} has another plan than the subnet")]
        return []

    def _against_moving(self, record: SubnetRecord) -> str:
        """Say what keeps a network from going to the space that its subnet is mapped to."""
        for each in self.guests(record.id):
            return f"; {each.owner} holds {each.address} in it"
        others = self.others(record)
        for each in self.holdings(record.id):
            other = others.at(each.row.first)
            if other is not None:
                return f"; {other} holds {each.address} there"
        return ""

    def guests(self, subnet: str) -> list[Holding]:
        """List what others than this deployment hold in the network of a subnet."""
        return ledger_plan.guests(self.realm, self.holdings(subnet))

    def holdings(self, subnet: str) -> list[Holding]:
        """Read all holdings in the network of a subnet; none if there is no such network."""
        try:
            return self.reach.ask(lambda ledger: ledger.holdings(self.name(subnet)))
        except NotFound:
            return []

    def others(self, record: SubnetRecord) -> HeldSpans:
        """Tell what is held in the space of a subnet by way of other networks that lie over it."""
        if record.space is None:
            return NOBODY
        block, own = parse_cidr(record.cidr).range, self.name(record.id)
        networks = [each for each in self._spaces.get(record.space, {}).values() if each.name != own]
        over = [each for each in networks if any(part.cidr.range.overlaps(block) for part in each.subnets)]
        return HeldSpans(span for each in over for span in self._held_in(each.name).within(block))

    def _held_in(self, network: str) -> HeldSpans:
        """Tell what is held in a network; it is read once, and again only when it was changed here."""
        if network not in self._spans:
            held = self.reach.ask(lambda ledger: ledger.holdings(network))
            self._spans[network] = HeldSpans(map(span_of, held))
        return self._spans[network]

    def changed(self, subnet: str) -> None:
        """Take note that holdings of a subnet are not what they were."""
        self._spans.pop(self.name(subnet), None)

    def repair(self, database: Database, subnet: str, *, dry: bool) -> list[Drift]:
        """Make the network what our record says, if it still is not; nobody changes the record meanwhile."""
        # For the lock alone: the change is made in the ledger, and nothing in Neutron's database.
        with database.writing(keep=False) as session:
            record = locked_record(session, subnet)
            if record is None:
                return []
            space = record.space or self.name(subnet)
            # The plan was read when the round began: a server may have followed the record since.
            self._reread(subnet, space)
            drifts = self.compare(record)
            for drift in drifts:
                if drift.repairable and not dry:
                    self._follow(record, drift)
                    self._reread(subnet, space)
            return drifts

    def _follow(self, record: SubnetRecord, drift: Drift) -> None:
        """Push the plan; a network of another space goes first, its holdings are missing then."""
        name = self.name(record.id)
        if drift.kind == "network-space":
            guests = self._removed(record.id)
            if guests:  # they came since the comparison
                raise StillInUse(
                    "network", name, [f"{each.owner} ({each.address})" for each in guests], hint="release them first"
                )
        self.reach.ask(lambda ledger: ledger_plan.follow(ledger, name, record))

    def remove(self, database: Database, subnet: str, *, dry: bool) -> list[Drift]:
        """Remove the network of a subnet that is not ours any more, if nobody is about to make it.

        A record of the same number is put in Neutron's database, to be taken back: it waits for whoever has written one
        and not committed it, and so is put there only if there is nobody.
        """
        text = f"network {self.name(subnet)!r} stands for no subnet"
        with database.writing(keep=False) as session:
            if not _fenced(session, subnet):
                return []
            self._reread(subnet, self.name(subnet))
            if self.find(subnet) is None:
                return []
            guests = self.guests(subnet) if dry else self._removed(subnet)
            if guests:
                text += f", and {guests[0].owner} holds {guests[0].address} in it"
            return [Drift("network-extra", subnet, text, repairable=not guests)]

    def _removed(self, subnet: str) -> list[Holding]:
        """Remove the network of a subnet, unless it has guests; return what they hold."""
        name = self.name(subnet)
        guests = self.reach.ask(lambda ledger: ledger_plan.remove(ledger, self.realm, name))
        if not guests:
            self._forget(name)
        return guests


REFUSED = (Conflict, NotFound, Invalid)
"""What a ledger answers where it says no; that it does not answer is another matter."""


def _fenced(session: Any, subnet: str) -> bool:
    # Never committed, so it need not be a record that makes sense.
    values = {"id": subnet, "cidr": "", "pools": "[]", "mark": str(uuid4())}
    return bool(session.execute(insert_unless_there(subnet_records.TABLE, dialect_of(session)).values(values)).rowcount)
