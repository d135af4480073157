"""When a tenancy was certainly there, and when it may have been: all that calls and answers tell of it."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tests.proof.history import NEVER, Call, History, Tenancy


@dataclass
class Window:
    """What is known of one tenancy.

    It began after ``begun_after`` and was certainly there from ``held_from`` to ``held_until`` (if that is later);
    it may have been there until ``gone_by``. ``endable``: some call that may have happened asked for its end.
    """

    tenancy: Tenancy
    begun_after: float
    held_from: float
    held_until: float
    gone_by: float
    endable: bool

    @property
    def certain(self) -> bool:
        """Tell whether there is a moment at which it was certainly held."""
        return self.held_from < self.held_until

    def covers(self, call: Call) -> bool:
        """Tell whether it was certainly held from the call's beginning to its end."""
        return self.held_from <= call.invoked and call.returned <= self.held_until


def windows(history: History) -> list[Window]:
    """Work out the window of every tenancy that was answered, logged or found at the end."""
    known: dict[tuple[str, int], Tenancy] = {}
    shown: dict[tuple[str, int], list[Call]] = defaultdict(list)
    for tenancy, call in _mentions(history):
        known.setdefault(tenancy.key, tenancy)
        if call is not None:
            shown[tenancy.key].append(call)
    enders = _enders(history)
    final = {tenancy.key for tenancy in history.final}
    return [_window(history, known[key], shown[key], enders, key in final) for key in known]


def _mentions(history: History) -> Iterator[tuple[Tenancy, Call | None]]:
    for call in history.calls:
        yield from ((tenancy, call) for tenancy in call.rows)
    yield from ((tenancy, None) for tenancy in history.final)
    for entry in history.log or ():
        if entry.tenancy is not None and entry.verb in ("grant", "transfer"):
            yield entry.tenancy, None


Enders = dict[tuple[str, str], list[Call]]


def _enders(history: History) -> Enders:
    """Sort calls that end tenancies by owner and, where they name one, by address."""
    found: Enders = defaultdict(list)
    for call in history.calls:
        if call.verb in ("release", "release_owner", "transfer", "cancel"):
            found[call.args["owner"], call.args.get("address", "")].append(call)
    return found


def _window(history: History, tenancy: Tenancy, shown: list[Call], enders: Enders, final: bool) -> Window:
    maker = history.by_request.get(tenancy.request or "")
    begun_after = maker.invoked if maker is not None else -NEVER
    asked = [*enders.get((tenancy.owner, tenancy.address), ()), *enders.get((tenancy.owner, ""), ())]
    ending = [call for call in asked if call.names(tenancy) and call.returned > begun_after and _may_have_ended(call)]
    held_from = min((call.returned for call in shown if call.granted), default=NEVER)
    seen = max((call.invoked for call in shown if not call.unknown), default=-NEVER)
    expires = _expires(maker, shown)
    held_until = max(seen, -NEVER if expires else min((call.invoked for call in ending), default=NEVER))
    gone = [call.returned for call in ending if _ended(call, tenancy, held_from)]
    endable = bool(ending) or expires
    return Window(tenancy, begun_after, held_from, NEVER if final else held_until, min(gone, default=NEVER), endable)


def _expires(maker: Call | None, shown: list[Call]) -> bool:
    """Tell whether a deadline may have ended it: it was held for a time, and not certainly confirmed in that time."""
    if maker is None or maker.verb != "hold" or maker.args.get("lasts_s") is None:
        return False
    return not any(call.verb == "confirm" and call.error is None and not call.unknown for call in shown)


def _may_have_ended(call: Call) -> bool:
    """Tell whether a call that names a tenancy may have ended it.

    A release whose first answer was lost is repeated, and then finds the address empty or another's: so *none*,
    *not owner* and *changed since* leave it open. Only "nothing happened" says that nothing happened.
    """
    if call.error is None or call.unknown:
        return True
    return call.verb != "transfer" and call.error in ("not_owner", "conflict")


def _ended(call: Call, tenancy: Tenancy, held_from: float) -> bool:
    """Tell whether the tenancy was certainly over when the call was answered."""
    if call.error is not None or call.unknown:
        return False
    if call.verb in ("release", "cancel"):
        return (not call.rows and held_from <= call.invoked) or any(row.key == tenancy.key for row in call.rows)
    if call.verb == "transfer":
        # Handed over to the one who holds it already, a holding stays what it is.
        return call.args["generation"] == tenancy.generation and all(row.key != tenancy.key for row in call.rows)
    return any(row.key == tenancy.key for row in call.rows)
