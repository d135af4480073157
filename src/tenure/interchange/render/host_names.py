"""Names for holdings: from their labels, or made of the owner; what cannot be used is told."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tenure.interchange.formats.source_items import Oddity, SourcePlace
from tenure.interchange.formats.tenure_csv import address_text
from tenure.interchange.importer.dry_run import pages
from tenure.kernel.errors import Invalid
from tenure.kernel.holdings.holding_model import Holding, State
from tenure.kernel.plan.plan_model import Network
from tenure.service.ledger.async_ledger import AsyncLedger

RENDERED = {State.HELD, State.DRAINING}
"""Pending holdings are nobody's for sure yet, cooling ones are nobody's any more."""

LEFT_OUT, NOTED = "left_out", "noted"
"""Codes of what is told: not written at all, or written with less than its labels say."""

LONGEST_LABEL, LONGEST_NAME = 63, 253

_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_MAC = re.compile(r"[0-9a-f]{12}")


class Named(NamedTuple):
    """A holding and the names that go with it."""

    holding: Holding
    host: str
    domain: str

    @property
    def full_name(self) -> str:
        """Write the name with its domain."""
        return f"{self.host}.{self.domain}" if self.domain else self.host


@dataclass(slots=True)
class Rendering:
    """What was written, and what could not be."""

    text: str = ""
    left_out: list[Oddity] = field(default_factory=list)


class Namer:
    """Gives each holding its names, and notes what is left out and why."""

    def __init__(self, network: Network, domain: str | None) -> None:
        self._network = network
        self._domain = "" if domain is None else _checked_name(domain, "domain")
        self._made: dict[str, str] = {}
        self._given: dict[str, str] = {}
        self.left_out: list[Oddity] = []

    def leave_out(self, holding: Holding, field: str, reason: str) -> None:
        """Note that a holding, or a part of it, is not written."""
        place = SourcePlace(self._network.name, path=address_text(holding))
        self.left_out.append(Oddity(place, field, LEFT_OUT, f"{reason} ({holding.owner})"))

    def note(self, holding: Holding, field: str, reason: str) -> None:
        """Note that a holding is written, but not with all that its labels say."""
        place = SourcePlace(self._network.name, path=address_text(holding))
        self.left_out.append(Oddity(place, field, NOTED, f"{reason} ({holding.owner})"))

    def lasting(self, holdings: Sequence[Holding]) -> Iterator[Holding]:
        """Yield what is held for good, in the order given; read the names that labels give away first."""
        # All labels before any made name: a made name must not take one that a label gives to a later holding.
        for holding in holdings:
            host = holding.labels.get("hostname", "").partition(".")[0].lower()
            self._given.setdefault(host, _whose(holding))
        for holding in holdings:
            if holding.state in RENDERED:
                yield holding
            else:
                self.leave_out(holding, "state", f"it is {holding.state}")

    def named(self, holdings: Sequence[Holding]) -> Iterator[Named]:
        """Yield what can be written under a name, in the order given."""
        for holding in self.lasting(holdings):
            try:
                yield self.name(holding)
            except Invalid as error:
                self.leave_out(holding, error.field or "", str(error))

    def name(self, holding: Holding) -> Named:
        """Give a holding its names, or say why it has none."""
        return Named(holding, *self._name(holding))

    def _name(self, holding: Holding) -> tuple[str, str]:
        labels = holding.labels
        domain = _checked_name(labels["domain"], "domain") if labels.get("domain") else self._domain
        if labels.get("hostname"):
            host, _, rest = _checked_name(labels["hostname"], "hostname").partition(".")
            return host, _checked_name(rest, "hostname") if rest else domain
        return self._made_name(holding), domain

    def _made_name(self, holding: Holding) -> str:
        """Make a label of the owner's id and the slot; one that another owner has already is no name."""
        told = holding.owner.id + (f"-{holding.slot}" if holding.slot else "")
        name = re.sub(r"[^a-z0-9]+", "-", told.lower()).strip("-")
        # Letters beyond ASCII would all become dashes, and different owners would get one name.
        if not told.isascii() or not name or len(name) > LONGEST_LABEL:
            raise Invalid(f"no host name can be made of {told[:80]!r}; give it a label hostname", field="owner")
        whose = self._given.get(name) or self._made.setdefault(name, _whose(holding))
        if whose != _whose(holding):
            problem = f"{name!r} is the name of {whose} already; give it a label hostname"
            raise Invalid(problem, field="owner")
        return name

    def mac(self, holding: Holding) -> str | None:
        """Read the label ``mac``: empty if there is none, None (and told) if it is no MAC address."""
        told = holding.labels.get("mac", "")
        digits = re.sub(r"[:.-]", "", told.lower())
        if told and not _MAC.fullmatch(digits):
            self.note(holding, "mac", f"{told[:40]!r} is not a MAC address")
            return None
        return ":".join(digits[place : place + 2] for place in range(0, len(digits), 2))


def _whose(holding: Holding) -> str:
    return f"{holding.owner} {holding.slot}".strip()


def _checked_name(value: str, field: str) -> str:
    """Return a DNS name in lower case without the last dot, or say why it is none."""
    name = value.lower().removesuffix(".")
    if len(name) > LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise Invalid(f"{value[:80]!r} is not a name that DNS takes", field=field)
    return name


def check_domain(value: str, field: str) -> str:
    """Return a DNS name that a caller gave, or say why it is none."""
    if not isinstance(value, str):
        raise Invalid(f"{field}: a name in text is needed, not {type(value).__name__}", field=field)
    try:
        return _checked_name(value, field)
    except Invalid as error:
        raise Invalid(f"{field}: {error}", field=field) from None


async def read_network(ledger: AsyncLedger, network: str) -> tuple[Network, list[Holding]]:
    """Read a network and its holdings, in order of address."""
    plan = await ledger.network(network)
    return plan, [holding async for page in pages(ledger, network) for holding in page]


def is_single(holding: Holding) -> bool:
    """Tell whether one address is held, not a prefix."""
    return holding.row.first == holding.row.last
