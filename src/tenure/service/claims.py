"""Claims: what a caller wants, read and checked before anything is asked of a store."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tenure.kernel.addresses import AddressLike, parse_address
from tenure.kernel.asking import BY, Asker, asked
from tenure.kernel.configuration import Policy
from tenure.kernel.errors import Invalid
from tenure.kernel.layout import Layout
from tenure.kernel.names import (
    Owner,
    check_key,
    check_labels,
    check_name,
    check_seconds,
    check_slot,
    check_text,
    check_wait,
    shown,
)
from tenure.kernel.replying import body_of_text
from tenure.kernel.values import NO_DETAILS, Row, State, Waiter, Wish

REACHES = ("refuse", "allow", "force")


class Claim(NamedTuple):
    """A wish before an address is chosen for it."""

    network: str
    owner: Owner
    slot: str = ""
    address: int | None = None
    pool: str | None = None
    subnet: str | None = None
    policy: Policy | None = None
    reserved: str = "refuse"
    state: State = State.HELD
    lasts_us: int | None = None
    request: str | None = None
    details: Mapping[str, Any] = NO_DETAILS
    key: str | None = None
    body: bytes = b""
    zone: str | None = None

    def at(self, layout: Layout, first: int, last: int) -> Wish:
        """Turn the claim into a wish for one address."""
        network = layout.configuration.network(self.network).id
        return Wish(
            network, first, last, self.owner, self.slot, self.state, self.lasts_us, self.request, self.details,
            self.key, self.body,
        )  # fmt: skip

    def asked_by(self, asker: Asker | None) -> "Claim":
        """Write on the claim who asks; its idempotency key does not care."""
        return self if asker is None else self._with(asked(self.details, asker), self.key, self.body)

    def under(self, key: str) -> "Claim":
        """Write on the claim its idempotency key, and the mark of what it must say whenever it is repeated under it."""
        return self._with(self.details, key, _mark(self.network, self.owner, _rest_of(self)))

    def _with(self, details: Mapping[str, Any], key: str | None, body: bytes) -> "Claim":
        """Return the claim with these; in half the time that ``_replace`` takes, which matters on the way over HTTP."""
        network, owner, slot, address, pool, subnet, policy, reserved, state, lasts_us, request, _, _, _, zone = self
        return Claim(
            network, owner, slot, address, pool, subnet, policy, reserved, state, lasts_us, request, details, key, body,
            zone,
        )  # fmt: skip


def _rest_of(claim: Claim) -> str:
    """Write what a claim says beside its network and its owner, as marks are made of it.

    Stores keep marks of claims. So what was said here once is said for ever, in this order, and a field that came later
    stands at the end, only where it is used: claims that do not use the field keep their marks.
    """
    said = (
        claim.slot, claim.address, claim.pool, claim.subnet, claim.policy, claim.reserved, claim.state, claim.lasts_us,
        claim.request, claim.details,
    )  # fmt: skip
    return ", ".join(map(repr, said if claim.zone is None else (*said, claim.zone)))


def _mark(network: str, owner: str, rest: str) -> bytes:
    """Return the mark of a claim: what ``body_of("allocate", …)`` returns for the same words."""
    return body_of_text(f"('allocate', {network!r}, {owner!r}, {rest})")


_NO_MORE = _rest_of(Claim("", Owner.trusted("")))
"""The rest of a claim that says no more than who wants an address; written once, for it takes longer than the hash."""


class Granted(NamedTuple):
    """A claim's answer: the row, and the layout it was granted under."""

    row: Row
    layout: Layout


class Known(Granted):
    """An answer that tells of a holding from before: whoever turns away from it must not end it."""

    __slots__ = ()


class Waiting(NamedTuple):
    """A claim's answer where nothing is free: it is in line, at this place (1 is next)."""

    waiter: Waiter
    place: int


def read_claim(
    network: str,
    owner: str,
    *,
    slot: str = "",
    address: AddressLike | None = None,
    pool: str | None = None,
    subnet: str | None = None,
    policy: str | None = None,
    reserved: str = "refuse",
    labels: Mapping[str, str] | None = None,
    description: str = "",
    carrier: str | None = None,
    plan: str | None = None,
    request: str | None = None,
    pending: bool = False,
    lasts_s: float | None = None,
    key: str | None = None,
    zone: str | None = None,
) -> Claim:
    """Read a claim from a caller's words."""
    if address is not None and (pool, subnet, policy, zone) != (None, None, None, None):
        raise Invalid("address: name an address, or a pool, a subnet, a zone and a policy, not both", field="address")
    if reserved not in REACHES:
        raise Invalid(f"reserved: {shown(reserved)} is none of {', '.join(REACHES)}", field="reserved")
    if not isinstance(pending, bool):
        raise Invalid(f"pending: true or false is needed, not {shown(pending)}", field="pending")
    if lasts_s is not None and not pending:
        raise Invalid("lasts_s: only a pending holding has a deadline", field="lasts_s")
    claim = Claim(
        network=check_name(network, field="network"),
        owner=Owner(owner),
        slot=check_slot(slot),
        address=None if address is None else parse_address(address),
        pool=None if pool is None else check_name(pool, field="pool"),
        subnet=None if subnet is None else check_name(subnet, field="subnet"),
        policy=None if policy is None else _policy(policy),
        reserved=reserved,
        state=State.PENDING if pending else State.HELD,
        lasts_us=None if lasts_s is None else check_seconds(lasts_s, field="lasts_s"),
        request=None if request is None else check_name(request, field="request"),
        details=_details(labels, description, carrier, plan),
        zone=None if zone is None else check_name(zone, field="zone"),
    )
    return claim if key is None else claim.under(check_key(key))


def plain_claim(network: str, owner: str, key: str | None, asker: Asker) -> Claim:
    """Read a claim that says no more than who wants an address; the same as ``read_claim``, in a third of its time."""
    wanted, details = Owner(owner), {BY: list(asker)}
    if key is None:
        return Claim(network, wanted, details=details)
    return Claim(network, wanted, details=details, key=check_key(key), body=_mark(network, wanted, _NO_MORE))


def check_patience(claim: Claim, wait_s: float | None) -> float:
    """Return how long the caller of a claim waits at most; only for what may be picked."""
    patience_s = check_wait(wait_s)
    if patience_s and claim.address is not None:
        raise Invalid("wait_s: only a picked address can be waited for, not a named one", field="wait_s")
    return patience_s


def claim_document(claim: Claim) -> dict[str, Any]:
    """Write what others must know of a claim that waits: where it may be served from, and how it is picked."""
    told = {
        "pool": claim.pool,
        "subnet": claim.subnet,
        "policy": claim.policy and str(claim.policy),
        "zone": claim.zone,
    }
    return {name: value for name, value in told.items() if value is not None}


def claim_of(waiter: Waiter, network: str) -> Claim:
    """Read back the claim of somebody else who waits, as far as others must know it."""
    told = waiter.document
    policy = told.get("policy")
    return Claim(
        network, Owner.trusted(waiter.owner), waiter.slot, pool=told.get("pool"), subnet=told.get("subnet"),
        policy=None if policy is None else Policy(policy), zone=told.get("zone"),
    )  # fmt: skip


def _policy(word: str) -> Policy:
    try:
        return Policy(word)
    except ValueError:
        raise Invalid(f"policy: {shown(word)} is none of {', '.join(Policy)}", field="policy") from None


def _details(
    labels: Mapping[str, str] | None, description: str, carrier: str | None, plan: str | None
) -> Mapping[str, Any]:
    if labels is None and description == "" and carrier is None and plan is None:
        return NO_DETAILS
    details: dict[str, Any] = {}
    if labels is not None and (checked := check_labels(labels)):
        details["labels"] = checked
    if description != "":
        details["description"] = check_text(description, field="description")
    if carrier is not None:
        details["carrier"] = check_name(carrier, field="carrier")
    if plan is not None:
        details["plan"] = check_name(plan, field="plan")
    return details
