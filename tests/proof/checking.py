"""The history checker: can what the clients heard be explained by what Tenure promises?

It is pure: a history in, findings out, none if all is explained. This half looks at calls, answers and the final
state of the store, by the time they took; ``replaying`` looks at the log.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tests.proof.history import ASKING, ENDING, NEVER, Call, History, Tenancy
from tests.proof.plan import Plan
from tests.proof.windows import Window, windows

EXPECTED = {
    "allocate": {"pool_exhausted", "store_unavailable"},
    "allocate_many": {"pool_exhausted", "store_unavailable"},
    "hold": {"pool_exhausted", "store_unavailable"},
    "release": {"not_owner", "conflict", "not_found", "store_unavailable"},
    "confirm": {"not_owner", "conflict", "not_found", "store_unavailable"},
    "cancel": {"not_owner", "conflict", "not_found", "store_unavailable"},
    "sweep": {"store_unavailable"},
    "release_owner": {"not_owner", "conflict", "store_unavailable"},
    "transfer": {
        "not_owner", "conflict", "not_found", "already_exists", "store_unavailable",
    },
}  # fmt: skip
"""The errors that callers may see while others are at work; conflicts between servers are not among them."""

IF_NAMED = {"address_in_use", "already_exists"}


def claims_of(call: Call) -> list[tuple[str, str, str]]:
    """Return what a call asks for addresses for."""
    owners = call.args.get("owners", [call.args.get("owner")])
    return [(call.args["network"], owner, call.args.get("slot", "")) for owner in owners]


def claim_of(call: Call) -> tuple[str, str, str]:
    """Return what a call asks for one address for."""
    return claims_of(call)[0]


class Finding(NamedTuple):
    """Something that the promises do not explain. ``kind`` is lost, doubled, or what else was not as promised."""

    kind: str
    text: str


def check_calls(history: History, plan: Plan) -> list[Finding]:
    """Hold every answer and the final state against the promises."""
    every = windows(history)
    checks = (
        _only_expected_errors(history),
        _one_generation_one_tenancy(history),
        _never_two_at_once(every, lambda tenancy: tenancy.address, "doubled"),
        _never_two_at_once(every, lambda tenancy: tenancy.claim, "two holdings of one claim"),
        _nothing_is_lost(history, every),
        _everything_was_asked_for(history),
        _answers_fit_the_questions(history, plan),
        _full_only_if_full(history, plan, every),
        _nobody_is_turned_away_who_holds(history, every),
        _nobody_holds_what_nobody_holds(history, every),
        _confirm_fails_only_without_the_holding(history, every),
    )
    return [finding for check in checks for finding in check]


def _only_expected_errors(history: History) -> Iterator[Finding]:
    pending = {claim_of(call) for call in history.calls if call.verb == "hold"}
    for call in history.calls:
        named = call.args.get("address") is not None
        expected = EXPECTED[call.verb] | (IF_NAMED if call.verb == "allocate" and named else set())
        if call.verb in ("allocate", "allocate_many") and not pending.isdisjoint(claims_of(call)):
            expected = expected | {"already_exists"}  # what is pending is to be confirmed, not allocated
        if call.error is not None and call.error not in expected:
            yield Finding("unexpected error", f"{call.verb} {dict(call.args)} was answered {call.error}")


def _one_generation_one_tenancy(history: History) -> Iterator[Finding]:
    known: dict[tuple[str, int], Tenancy] = {}
    holders: dict[tuple[str, int], Tenancy] = {}
    answered = [(tenancy, call.verb in ENDING) for call in history.calls for tenancy in call.rows]
    for tenancy, ended in [*answered, *((tenancy, False) for tenancy in history.final)]:
        # What ends a holding is answered with the request of the end, all else with that of the grant.
        holder = tenancy._replace(request=None)
        if holders.setdefault(tenancy.key, holder) != holder:
            yield Finding("doubled", f"one generation, two holders: {holders[tenancy.key]} and {tenancy}")
        elif not ended and known.setdefault(tenancy.key, tenancy) != tenancy:
            yield Finding("doubled", f"one generation, two requests: {known[tenancy.key]} and {tenancy}")


def _never_two_at_once(every: Sequence[Window], by: Callable[[Tenancy], object], kind: str) -> Iterator[Finding]:
    grouped: dict[object, list[Window]] = defaultdict(list)
    for window in every:
        if window.certain:
            grouped[by(window.tenancy)].append(window)
    for group in grouped.values():
        group.sort(key=lambda window: window.held_from)
        longest = group[0]
        for window in group[1:]:
            if window.held_from < longest.held_until:
                yield Finding(kind, f"{longest.tenancy} was still there when {window.tenancy} was")
            longest = max(longest, window, key=lambda window: window.held_until)


def _nothing_is_lost(history: History, every: Sequence[Window]) -> Iterator[Finding]:
    final = {tenancy.key for tenancy in history.final}
    for window in every:
        there = window.tenancy.key in final
        if not there and not window.endable and window.held_from < NEVER:
            yield Finding("lost", f"{window.tenancy} was granted, nobody released it, and it is not there")
        if there and window.gone_by < NEVER:
            yield Finding("release lost", f"{window.tenancy} was released, and it is there")


def _everything_was_asked_for(history: History) -> Iterator[Finding]:
    for tenancy in history.final:
        call = history.by_request.get(tenancy.request or "")
        if call is None or call.verb not in (*ASKING, "transfer"):
            yield Finding("unasked", f"nobody asked for {tenancy}")
        elif call.error is not None and not call.unknown:
            yield Finding("trace of an error", f"{call.request} was answered {call.error}, and {tenancy} is there")
        elif not call.unknown and tenancy not in call.rows:
            yield Finding("unasked", f"{call.request} was answered {call.rows}, and {tenancy} is there as well")


def _answers_fit_the_questions(history: History, plan: Plan) -> Iterator[Finding]:
    for call in history.calls:
        for tenancy in call.rows:
            if not fits(call, tenancy, plan):
                yield Finding("wrong answer", f"{call.verb} {dict(call.args)} was answered with {tenancy}")
        if call.granted and not call.unknown and len(call.rows) != len(call.args.get("owners", "1")):
            yield Finding("wrong answer", f"{call.verb} {dict(call.args)} was answered {len(call.rows)} times")


def fits(call: Call, tenancy: Tenancy, plan: Plan) -> bool:
    """Tell whether a tenancy can be the answer to a call, or its effect."""
    args = call.args
    if call.verb in ("release", "release_owner", "confirm", "cancel"):
        return call.names(tenancy)
    if call.verb == "transfer":
        wanted = (args["network"], args["address"], args["to"], args.get("to_slot", ""))
        return wanted == (tenancy.network, tenancy.address, tenancy.owner, tenancy.slot)
    if args["network"] != tenancy.network or args.get("slot", "") != tenancy.slot:
        return False
    if tenancy.owner not in args.get("owners", [args.get("owner")]):
        return False
    if args.get("address") is not None:
        return bool(args["address"] == tenancy.address)
    # A claim that held an address from elsewhere (a named one, a transferred one) is answered with that.
    return tenancy.request != call.request or tenancy.address in plan.order(args["network"], args.get("pool"))


def _full_only_if_full(history: History, plan: Plan, every: Sequence[Window]) -> Iterator[Finding]:
    by_address: dict[str, list[Window]] = defaultdict(list)
    for window in every:
        by_address[window.tenancy.address].append(window)
    unseen = [] if history.log is not None else _unseen(history, every)
    for call in history.calls:
        if call.error != "pool_exhausted" or plan.takes_time(call.args["network"], call.args.get("pool")):
            continue  # where addresses cool and others wait, the log tells who may have what
        addresses = plan.order(call.args["network"], call.args.get("pool"))
        near = [window for address in addresses for window in by_address.get(address, ())]
        most = _most_at_once(near, call) + sum(other.invoked < call.returned for other in unseen)
        if most + len(call.args.get("owners", "1")) <= len(addresses):
            text = (
                f"{call.verb} {dict(call.args)} met a full pool, of which at most {most} of {len(addresses)} were held"
            )
            yield Finding("not full", text)


def _unseen(history: History, every: Sequence[Window]) -> list[Call]:
    """Find calls that may have been granted something that nobody ever saw; a log would tell."""
    seen = {window.tenancy.request for window in every}
    return [call for call in history.calls if call.verb in ASKING and call.unknown and call.request not in seen]


def _most_at_once(near: Sequence[Window], call: Call) -> int:
    """Count the addresses that may have been held at one moment of the call, at most."""
    there = [window for window in near if window.begun_after < call.returned and window.gone_by > call.invoked]
    moments = {call.invoked, *(window.begun_after for window in there if window.begun_after > call.invoked)}
    return max(len({w.tenancy.address for w in there if w.begun_after <= moment < w.gone_by}) for moment in moments)


def _nobody_is_turned_away_who_holds(history: History, every: Sequence[Window]) -> Iterator[Finding]:
    by_claim: dict[tuple[str, str, str], list[Window]] = defaultdict(list)
    for window in every:
        by_claim[window.tenancy.claim].append(window)
    for call in history.calls:
        if call.verb == "allocate" and call.error in ("pool_exhausted", "address_in_use"):
            for window in by_claim.get(claim_of(call), ()):
                if window.covers(call) and call.args.get("address") in (None, window.tenancy.address):
                    yield Finding("not idempotent", f"{call.args} was answered {call.error}, holding {window.tenancy}")


def _nobody_holds_what_nobody_holds(history: History, every: Sequence[Window]) -> Iterator[Finding]:
    by_address: dict[str, list[Window]] = defaultdict(list)
    for window in every:
        by_address[window.tenancy.address].append(window)
    for call in history.calls:
        if call.verb == "release" and call.error is None and not call.unknown and not call.rows:
            for window in by_address.get(call.args["address"], ()):
                if window.covers(call) and not call.names(window.tenancy):
                    yield Finding("wrong answer", f"release of {dict(call.args)} found nobody, yet {window.tenancy}")


def _confirm_fails_only_without_the_holding(history: History, every: Sequence[Window]) -> Iterator[Finding]:
    by_address: dict[str, list[Window]] = defaultdict(list)
    for window in every:
        by_address[window.tenancy.address].append(window)
    for call in history.calls:
        if call.verb == "confirm" and call.error in ("not_found", "not_owner", "conflict"):
            for window in by_address.get(call.args["address"], ()):
                if window.covers(call) and call.names(window.tenancy):
                    yield Finding("wrong answer", f"{dict(call.args)} was answered {call.error}, yet {window.tenancy}")
