"""The networks of a ledger that stand for Neutron's subnets: missing, extra, of another plan, in another space."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from tenure.doors.neutron import plans
from tenure.doors.neutron.reach import Reach
from tenure.doors.neutron.session_book import SUBNETS, dialect_of, insert_unless_there
from tenure.doors.neutron.subnets import SubnetRecord
from tenure.doors.neutron.tending.database import Database
from tenure.doors.neutron.tending.drifts import Drift
from tenure.doors.neutron.tending.rows import locked_record
from tenure.kernel.configuration import Configuration, Network
from tenure.kernel.errors import Conflict, Invalid, NotFound
from tenure.kernel.values import Holding


@dataclass(slots=True)
class Networks:
    """The ledger's side of a deployment's subnets."""

    reach: Reach
    realm: str
    spaces: Mapping[str, Configuration] = field(default_factory=dict)

    def read(self) -> None:
        """Read the plan of the whole ledger."""
        self.spaces = {space.name: space for space in self.reach.ask(lambda ledger: ledger.spaces())}

    def name(self, subnet: str) -> str:
        """Name the network of a subnet."""
        return f"{self.realm}-{subnet}"

    def find(self, subnet: str) -> tuple[str, Network] | None:
        """Find the network of a subnet, and the name of its space."""
        name = self.name(subnet)
        return next(((s.name, s.networks[name]) for s in self.spaces.values() if name in s.networks), None)

    def subnet_ids(self) -> set[str]:
        """List the subnets that this deployment has networks for; others may have names that begin alike."""
        every = [(name, network) for space in self.spaces.values() for name, network in space.networks.items()]
        numbers = (plans.subnet_of(self.realm, name) for name, network in every if plans.MARK in network.notes.labels)
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
            in_the_way = self._against_moving(record)
            return [Drift("network-space", record.id, text + in_the_way, repairable=not in_the_way)]
        if not plans.agrees(network, record):
            return [Drift("plan-differs", record.id, f"network {network.name!r} has another plan than the subnet")]
        return []

    def _against_moving(self, record: SubnetRecord) -> str:
        """Say what keeps a network from going to the space that its subnet is mapped to."""
        for each in self.foreign(record.id):
            return f"; {each.owner} holds {each.address} in it"
        others = self.others(record)
        for each in self.holdings(record.id):
            if each.row.first in others:
                return f"; {others[each.row.first]} holds {each.address} there"
        return ""

    def foreign(self, subnet: str) -> list[Holding]:
        """List what others than this deployment hold in the network of a subnet."""
        prefix = f"{self.realm}:"
        return [each for each in self.holdings(subnet) if not each.row.owner.startswith(prefix)]

    def holdings(self, subnet: str) -> list[Holding]:
        """Read all holdings in the network of a subnet; none if there is no such network."""
        try:
            return self.reach.ask(lambda ledger: ledger.holdings(self.name(subnet)))
        except NotFound:
            return []

    def others(self, record: SubnetRecord) -> dict[int, str]:
        """Tell what is held in the space of a subnet by way of other networks."""
        space = None if record.space is None else self.spaces.get(record.space)
        names = [] if space is None else [name for name in space.networks if name != self.name(record.id)]
        held = [each for name in names for each in self._holdings_of(name)]
        return {place: str(each.owner) for each in held for place in range(each.row.first, each.row.last + 1)}

    def _holdings_of(self, network: str) -> list[Holding]:
        return self.reach.ask(lambda ledger: ledger.holdings(network))

    def repair(self, database: Database, subnet: str, *, dry: bool) -> list[Drift]:
        """Make the network what our record says, if it still is not; nobody changes the record meanwhile."""
        with database.writing(keep=False) as session:
            record = locked_record(session, subnet)
            self.read()
            drifts = [] if record is None else self.compare(record)
            if record is not None and not dry:
                for drift in drifts:
                    if drift.repairable:
                        self._follow(record, drift)
                self.read()
            return drifts

    def _follow(self, record: SubnetRecord, drift: Drift) -> None:
        """Push the plan; a network of another space goes first, its holdings are missing then."""
        name = self.name(record.id)
        if drift.kind == "network-space":
            self.reach.ask(lambda ledger: ledger.remove_network(name, cascade=True))
        self.reach.ask(lambda ledger: plans.follow(ledger, name, record))

    def remove(self, database: Database, subnet: str, *, dry: bool) -> list[Drift]:
        """Remove the network of a subnet that is not ours any more, if nobody is about to make it.

        A record of the same number is put in Neutron's database, to be taken back: it waits for whoever has written one
        and not committed it, and so is put there only if there is nobody.
        """
        text = f"network {self.name(subnet)!r} stands for no subnet"
        with database.writing(keep=False) as session:
            if not _fenced(session, subnet):
                return []
            self.read()
            if self.find(subnet) is None:
                return []
            foreign = self.foreign(subnet)
            if foreign:
                text += f", and {foreign[0].owner} holds {foreign[0].address} in it"
            elif not dry:
                self.reach.ask(lambda ledger: ledger.remove_network(self.name(subnet), cascade=True))
            return [Drift("network-extra", subnet, text, repairable=not foreign)]


REFUSED = (Conflict, NotFound, Invalid)
"""What a ledger answers where it says no; that it does not answer is another matter."""


def _fenced(session: Any, subnet: str) -> bool:
    values = {"id": subnet, "cidr": "", "pools": "[]", "mark": str(uuid4())}
    return bool(session.execute(insert_unless_there(SUBNETS, dialect_of(session)).values(values)).rowcount)
