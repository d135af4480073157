"""What a transaction of Neutron's did with the ledger, and what becomes of it when the transaction ends.

Every step is noted under the transaction, or the savepoint, that it was made in. A savepoint that is released hands its
steps on to what it lies in; one that is rolled back undoes them. At the end the whole of it is settled: committed,
holdings are confirmed and releases take effect; rolled back, holdings are cancelled and releases forgotten.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlalchemy import event

from tenure.integrations.neutron.database.allocation_rows import HeldAddress
from tenure.integrations.neutron.database.subnet_records import SubnetRecord

KEY = "tenure-settlement"


@dataclass(frozen=True, slots=True)
class SubnetAddress:
    """An address in a subnet."""

    subnet: SubnetRecord
    position: int

    @property
    def key(self) -> tuple[str, int]:
        """Return what tells it from other places."""
        return (self.subnet.id, self.position)


@dataclass(frozen=True, slots=True)
class Took:
    """An address was held in the ledger, pending; ``spare``: no row stands for it, so it is cancelled at every end."""

    place: SubnetAddress
    held: HeldAddress
    spare: bool = False


@dataclass(frozen=True, slots=True)
class LetGo:
    """An address was let go; the ledger is not told yet."""

    place: SubnetAddress
    held: HeldAddress


@dataclass(frozen=True, slots=True)
class Retook:
    """An address that was let go before in the same transaction has an owner again."""

    place: SubnetAddress
    owner: str


@dataclass(frozen=True, slots=True)
class Planned:
    """The ledger's plan of a subnet was changed."""

    before: SubnetRecord | None
    after: SubnetRecord


@dataclass(frozen=True, slots=True)
class Removed:
    """A subnet was removed; the ledger is not told yet."""

    subnet: SubnetRecord


AddressStep = Took | LetGo | Retook
Step = AddressStep | Planned | Removed


class Ends(Protocol):
    """Who carries out what becomes of steps."""

    def commit(self, steps: list[Step], engine: Any) -> None:
        """Settle the steps of a transaction that was committed."""
        ...

    def undo(self, steps: list[Step], engine: Any) -> None:
        """Undo the steps of a transaction that was rolled back."""
        ...

    def go_back(self, steps: list[Step]) -> None:
        """Undo the steps of a savepoint that was rolled back; the transaction goes on."""
        ...

    def doubt(self, steps: list[Step], engine: Any) -> None:
        """Settle the steps of a transaction of which nobody knows whether it was committed."""
        ...


@dataclass(slots=True)
class Settlement:
    """The steps of one session, each with the transaction or savepoint it belongs to."""

    session: Any
    ends: Ends
    steps: list[tuple[Any, Step]] = field(default_factory=list)
    committed: Any = None
    committing: bool = False

    def note(self, step: Step) -> None:
        """Note a step in the transaction or savepoint that is open."""
        self.steps.append((_current(self.session), step))

    def amend(self, step: Step, amended: Step) -> None:
        """Put another step in the place of one that was noted."""
        for number in reversed(range(len(self.steps))):
            made_in, noted = self.steps[number]
            if noted is step:
                self.steps[number] = (made_in, amended)
                return

    def holds(self, subnet: SubnetRecord, owner: str) -> int:
        """Count what this transaction took for an owner in a subnet."""
        took = (step for _, step in self.steps if isinstance(step, Took))
        return sum((step.place.subnet.id, step.held.owner) == (subnet.id, owner) for step in took)

    def spares(self, subnet: SubnetRecord) -> int:
        """Count what this transaction took in a subnet to no use."""
        spare = (step for _, step in self.steps if isinstance(step, Took) and step.spare)
        return sum(step.place.subnet.id == subnet.id for step in spare)

    def took(self, place: SubnetAddress) -> bool:
        """Tell whether this transaction took an address."""
        return any(isinstance(step, Took) and step.place.key == place.key for _, step in self.steps)

    def let_go(self, subnet: SubnetRecord) -> list[HeldAddress]:
        """Return what the transaction let go of in a subnet, and nobody took again."""
        return [
            step.held
            for step in last_steps([step for _, step in self.steps])
            if isinstance(step, LetGo) and step.place.subnet.id == subnet.id
        ]

    def before_commit(self, session: Any) -> None:
        """Note that the outermost transaction is about to be committed: from here on a failure leaves doubt."""
        # The event comes for savepoints, too, whose release is no COMMIT; nor does it end the commit that goes on.
        self.committing = self.committing or session.get_nested_transaction() is None

    def after_commit(self, session: Any) -> None:
        """Note which transaction or savepoint was committed; it ends next."""
        self.committed = _current(session)

    def after_transaction_end(self, session: Any, transaction: Any) -> None:
        """Hand on, settle or undo the steps of what ends."""
        # Neither a savepoint nor a flush, which has a transaction of its own, ends the commit that goes on around it.
        committing, self.committing = self.committing, self.committing and transaction.parent is not None
        ended = [step for made_in, step in self.steps if made_in is transaction]
        if not ended:
            return
        # A savepoint was released: its steps belong to what it lies in, which may still be rolled back.
        if transaction is self.committed and transaction.nested:
            parent = transaction.parent
            self.steps = [(parent if made_in is transaction else made_in, step) for made_in, step in self.steps]
            return
        # The session may live on with other transactions, which must not settle these steps again.
        self.steps = [(made_in, step) for made_in, step in self.steps if made_in is not transaction]
        engine = session.get_bind().engine
        if transaction is self.committed:
            self.ends.commit(ended, engine)
        elif transaction.nested:
            self.ends.go_back(ended)
        # The end came between the two events of a commit: COMMIT may have arrived, and only the database knows.
        elif committing:
            self.ends.doubt(ended, engine)
        else:
            self.ends.undo(ended, engine)


def settlement_of(session: Any, ends: Ends) -> Settlement:
    """Return the settlement of a session; it listens from the first step on."""
    found: Settlement | None = session.info.get(KEY)
    if found is None:
        found = session.info[KEY] = Settlement(session, ends)
        listeners: dict[str, Callable[..., None]] = {
            "before_commit": found.before_commit,
            "after_commit": found.after_commit,
            "after_transaction_end": found.after_transaction_end,
        }
        for name, listener in listeners.items():
            event.listen(session, name, listener)
    return found


def last_steps(steps: list[Step]) -> list[AddressStep]:
    """Return, for each address, the last step that was made with it."""
    return [*{step.place.key: step for step in of_addresses(steps)}.values()]


def of_addresses(steps: list[Step]) -> list[AddressStep]:
    """Return the steps that were made with addresses, but those of no use."""
    made = [step for step in steps if isinstance(step, AddressStep)]
    return [step for step in made if not (isinstance(step, Took) and step.spare)]


def _current(session: Any) -> Any:
    return session.get_nested_transaction() or session.get_transaction()
