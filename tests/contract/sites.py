"""A prepared store as the suites use it: two spaces to grant in, and short words for long calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.addressing.ranges import parse_range
from tenure.kernel.holdings.holding_model import Change, Outcome, Row, State, Ticket, Verdict, Wish
from tenure.ports import Failed
from tests.contract.providers import Ground, Provider, S


@dataclass
class Site(Generic[S]):
    """A store on a fresh place, with two spaces of two networks each."""

    provider: Provider[S]
    url: str
    store: S
    here: Ground
    there: Ground

    def wish(
        self,
        place: str,
        owner: str = "vm/a",
        *,
        slot: str = "",
        network: int = 0,
        ground: Ground | None = None,
        state: State = State.HELD,
        lasts_us: int | None = None,
        request: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> Wish:
        """Build a wish for an address or a block."""
        wanted = parse_range(place)
        number = (ground or self.here).networks[network]
        return Wish(number, wanted.first, wanted.last, owner, slot, state, lasts_us, request, details or {})

    def ticket(self, row: Row, *, request: str | None = None, remember: bool = False) -> Ticket:
        """Build a ticket that names a row wholly."""
        return Ticket(row.network, row.first, row.owner, row.generation, request, remember)

    async def grant(self, *wishes: Wish, ground: Ground | None = None) -> list[Verdict]:
        """Ask for several addresses at once."""
        place = ground or self.here
        answers = await self.store.grant(place.space, place.version, wishes)
        return [answer for answer in answers if isinstance(answer, Verdict)]

    async def held_by(self, place: str, owner: str = "vm/a", **more: Any) -> Row:
        """Let an owner hold an address."""
        [verdict] = await self.grant(self.wish(place, owner, **more), ground=more.get("ground"))
        assert verdict.outcome is Outcome.GRANTED
        assert verdict.row is not None
        return verdict.row

    async def release(self, *tickets: Ticket, ground: Ground | None = None) -> list[Row | None]:
        """End several holdings at once."""
        answers = await self.store.release((ground or self.here).space, tickets)
        return [answer for answer in answers if not isinstance(answer, Failed)]

    async def rows(self, *, ground: Ground | None = None, after: int = -1) -> list[Row]:
        """Read all holdings of a space."""
        return [row async for page in self.store.held((ground or self.here).space, after=after) for row in page]

    async def news(self, after: int = 0) -> list[Change]:
        """Read the log to its end."""
        found: list[Change] = []
        while page := await self.store.watch(found[-1].seq if found else after):
            found.extend(page)
        return found


def outcomes(verdicts: Sequence[Verdict]) -> list[Outcome]:
    """Return the bare outcomes."""
    return [verdict.outcome for verdict in verdicts]


def at(address: str) -> int:
    """Return an address's position."""
    return parse_address(address)
