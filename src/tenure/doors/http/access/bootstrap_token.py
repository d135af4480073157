"""The first token: somebody must be able to make the others."""

from datetime import UTC, datetime
from itertools import count

from tenure.doors.http.access.token_store import TRIES, TokenRequest, add_token, all_tokens
from tenure.doors.http.routing.principal import Need
from tenure.kernel.errors import Conflict
from tenure.service.apply.operations import WritePaper
from tenure.service.ledger.async_ledger import AsyncLedger

GUARD = "rest.first-token"
NAME = "admin"


async def first_token(ledger: AsyncLedger) -> str | None:
    """Make a token for an admin if there is none that is good; return its text, which nobody can be told again.

    Of several servers that start at once one makes it: each would write the same paper, and that can be done once.
    """
    for tries_left in reversed(range(TRIES)):
        guards = await ledger.papers(GUARD, prefix=NAME)  # before the tokens: whoever makes one meanwhile changes it
        now = datetime.now(UTC)
        good = [token for token in await all_tokens(ledger) if token.is_good(now)]
        if any(token.is_admin for token in good):
            return None
        taken = {token.name for token in good}
        name = next(name for number in count(1) if (name := _name(number)) not in taken)
        said = {"at": now.isoformat()}
        guard = WritePaper(kind=GUARD, name=NAME, document=said, revision=guards[0].revision if guards else 0)
        try:
            made = await add_token(ledger, TokenRequest(name, [Need.ADMIN.value]), by="first start", beside=[guard])
        # Another server wrote the guard or took the name first; the next look finds its token.
        except Conflict:
            if not tries_left:
                raise
            continue
        return made.text
    raise AssertionError("unreachable")


def _name(number: int) -> str:
    return NAME if number == 1 else f"{NAME}-{number}"
