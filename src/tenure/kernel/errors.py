"""The one error tree. Errors carry data; doors carry words.

    TenureError
    ├── Invalid                 the input itself is wrong (field)
    │   └── AddressOutsideSubnet
    ├── NotFound                no such network, subnet, pool, holding (kind, name)
    ├── Conflict                the ledger says no, or changed meanwhile
    │   ├── AlreadyExists       (kind, name)
    │   ├── AddressInUse        (address, holder)
    │   ├── AddressReserved     (address, reason, kept_as)
    │   ├── AddressCovered      (address)
    │   ├── Overlap             (first, second; network)
    │   ├── StillInUse          (kind, name, holders, addresses; network)
    │   ├── NotOwner            (address, owner, holder)
    │   └── KeyReused           the idempotency key stands for another request (key)
    ├── PoolExhausted           nothing free where the wish may be served (network, pool, subnet, zone, family)
    ├── CursorExpired           the log no longer reaches back that far (oldest)
    └── StoreUnavailable        (outcome: "none" or "unknown")

``code`` is stable: scripts and doors may rely on it. ``field`` names the argument at fault where there is one.
"""

from collections.abc import Sequence
from typing import Literal

Case = Literal["missing_network", "awaited_vm_without_plan", "nothing_open"]
"""Which of several errors of one code and field it is, where programs need to know: a scope names a network that is not
there; a report may be about one VM or another, and the VM that is waited for has no plan to name it by;
nothing is free because no address there may be picked at all, so that no release helps."""


class TenureError(Exception):
    """Root of all errors that Tenure raises on purpose."""

    code = "error"
    case: Case | None = None

    def __init__(self, message: str, *, field: str | None = None, case: Case | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        if case is not None:  # else it is no attribute of the error itself, and no field of its documents
            self.case = case


class Invalid(TenureError):
    """The input is wrong by itself, whatever the ledger holds."""

    code = "invalid"


class AddressOutsideSubnet(Invalid):
    """The address lies in no subnet of the network."""

    code = "address_outside_subnet"

    def __init__(self, address: str, network: str) -> None:
        super().__init__(f"address {address} lies in no subnet of network {network!r}", field="address")
        self.address = address
        self.network = network


class NotFound(TenureError):
    """A name that nothing in the ledger answers to.

    ``of`` or ``network`` says where it was looked for, if not everywhere; a place that has none at all of the kind is
    named without a ``name``. ``problem`` says it in other words than "no KIND NAME".
    """

    code = "not_found"

    def __init__(
        self,
        kind: str,
        name: str,
        *,
        of: str = "",
        network: str = "",
        problem: str = "",
        hint: str = "",
        field: str | None = None,
    ) -> None:
        of = of or (network and f"network {network!r}")
        named = f" {name!r}" if name or not of else ""
        text = problem or f"no {kind}{named}{of and ' of ' + of}"
        super().__init__(f"{text}{hint and '; ' + hint}", field=field or kind)
        self.kind = kind
        self.name = name
        if network:
            self.network = network


def outside_subnets(wanted: object, network: str) -> NotFound:
    """Return the error of a range that no subnet of a network has whole."""
    problem = f"{wanted} lies in no subnet of network {network!r}"
    return NotFound("subnet", str(wanted), network=network, problem=problem, field="range")


def nobody_holds(address: object, network: str, *, hint: str = "", field: str = "address") -> NotFound:
    """Return the error of an address that nobody holds in a network."""
    problem = f"nobody holds {address} in network {network!r}"
    return NotFound("holding", str(address), network=network, problem=problem, hint=hint, field=field)


class Conflict(TenureError):
    """The ledger's present state forbids it, or it changed meanwhile."""

    code = "conflict"


class AlreadyExists(Conflict):
    """The name is taken."""

    code = "already_exists"

    def __init__(self, kind: str, name: str, *, hint: str = "", field: str | None = None) -> None:
        super().__init__(f"{kind} {name!r} exists already{hint and '; ' + hint}", field=field or kind)
        self.kind = kind
        self.name = name


class AddressInUse(Conflict):
    """Somebody else holds the address."""

    code = "address_in_use"

    def __init__(self, address: str, holder: str) -> None:
        super().__init__(f"address {address} is held by {holder}", field="address")
        self.address = address
        self.holder = holder


KeptAs = Literal[
    "reserved", "pre-allocated", "network", "broadcast", "gateway", "last", "retired", "cooling", "waiting"
]
"""As what an address is kept away: in a reserved range, for an owner, by its subnet, for a while, for whoever waits."""


class AddressReserved(Conflict):
    """The address is kept away from picking: ``kept_as`` says as what, ``reason`` says it to people."""

    code = "address_reserved"
    kept_as: KeptAs | None = None
    """None in an error of a server that is older than this attribute."""

    def __init__(self, address: str, reason: str, *, kept_as: KeptAs) -> None:
        super().__init__(f"address {address} is not to be handed out: {reason}", field="address")
        self.address = address
        self.reason = reason
        self.kept_as = kept_as


class AddressCovered(Conflict):
    """A NIC without network has an address that a network of its group covers."""

    code = "address_covered"

    def __init__(self, address: str, message: str) -> None:
        super().__init__(message, field="address")
        self.address = address


class Overlap(Conflict):
    """Two ranges that must be disjoint are not."""

    code = "overlap"

    def __init__(self, first: str, second: str, *, field: str, network: str = "") -> None:
        super().__init__(f"{first} overlaps {second}", field=field)
        self.first = first
        self.second = second
        if network:
            self.network = network


class StillInUse(Conflict):
    """It cannot go (or shrink) while something stands on it."""

    code = "still_in_use"

    def __init__(
        self,
        kind: str,
        name: str,
        holders: list[str],
        *,
        hint: str = "release them, retire it, or pass cascade=True",
        addresses: Sequence[str] = (),
        field: str | None = None,
        network: str = "",
    ) -> None:
        shown = ", ".join(holders[:3]) + (", …" if len(holders) > 3 else "")
        super().__init__(f"{kind} {name!r} is still in use by {shown}; {hint}", field=field)
        self.kind = kind
        self.name = name
        self.holders = holders
        self.addresses = list(addresses)
        if network:
            self.network = network


class NotOwner(Conflict):
    """The address is held, but not by the one who asks."""

    code = "not_owner"

    def __init__(self, address: str, owner: str, holder: str) -> None:
        super().__init__(f"address {address} is held by {holder}, not by {owner}", field="owner")
        self.address = address
        self.owner = owner
        self.holder = holder


class KeyReused(Conflict):
    """The idempotency key was used before, for a request that said something else."""

    code = "key_reused"

    def __init__(self, key: str) -> None:
        super().__init__(f"key {key!r} stands for another request; a new request needs a new key", field="key")
        self.key = key


class PoolExhausted(TenureError):
    """Nothing is free where the wish may be served; said only after the store was asked."""

    code = "pool_exhausted"

    def __init__(
        self,
        network: str,
        pool: str | None,
        *,
        wanted: int = 1,
        in_a_row: bool = False,
        waited_s: float | None = None,
        family: str | None = None,
        subnet: str | None = None,
        zone: str | None = None,
        case: Case | None = None,
    ) -> None:
        limits = {"pool": pool, "subnet": subnet, "zone": zone}
        named = ", ".join(f"{kind} {name!r}" for kind, name in limits.items() if name)
        place = f"{named} of network {network!r}" if named else f"network {network!r}"
        free = "free" if family is None else f"free {family.replace('ip', 'IP')}"
        what = f"no {free} address" if wanted == 1 else f"not enough {free} addresses ({wanted} wanted)"
        what = f"no {wanted} {free} addresses in a row" if in_a_row else what
        waited = "" if waited_s is None else f", after waiting {waited_s:g} s"
        blocked = "all of it is reserved, pre-allocated, kept back or retired; add a pool, or lift a reserved range"
        way_out = blocked if case == "nothing_open" else "add a pool, release addresses, or wait"
        super().__init__(f"{what} in {place}{waited}; {way_out}", case=case)
        self.network = network
        self.pool = pool
        self.subnet = subnet
        self.zone = zone
        self.family = family
        self.wanted = wanted
        self.in_a_row = in_a_row
        self.waited_s = waited_s


class CursorExpired(TenureError):
    """The log was trimmed past the cursor: start again from a fresh reading."""

    code = "cursor_expired"

    def __init__(self, after: int, oldest: int) -> None:
        super().__init__(f"the log starts after {oldest}; a reader at {after} missed changes and must start afresh")
        self.after = after
        self.oldest = oldest


OUTCOMES = {"none": "nothing was changed", "unknown": "repeat the same request to learn the outcome"}


class StoreUnavailable(TenureError):
    """The store did not answer. ``outcome`` says whether the request may have taken effect."""

    code = "store_unavailable"

    def __init__(self, message: str, *, outcome: Literal["none", "unknown"]) -> None:
        super().__init__(f"{message} ({OUTCOMES[outcome]})")
        self.outcome = outcome
