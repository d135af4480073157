"""The etcd store: the book on a cluster that survives the loss of a machine.

A grant is one transaction: "none of these addresses and claims is there, and the version is this; then write them".
When it fails, the same transaction reads what was in the way, so each attempt decides something and a batch settles
in as many round trips as it meets surprises: usually one. See ``records`` for what is written.

What to know beyond the port:

* A space takes grants once ``set_version`` has been called for it; before, every verdict is AGAIN, as it is for a
  space that does not exist in the other stores.
* etcd has no clock that a transaction could read: ``since_us`` and the log's times are by the clock of the process
  that asked. They are told to people and decide nothing (I10).
* Units must not be mixed in a space: equal keys decide who is in the way, overlap does not.
* Changes are numbered ``revision * 64 + place in the transaction``. They reach back to etcd's last compaction; a
  cursor from before raises ``CursorExpired``.
* The pages of ``held`` are one snapshot.
* Answers are durable as far as etcd keeps its word. Early 3.5 releases are known to have lost transactions when a
  member was killed (etcd issue 13766): run a newer one.
"""

import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tenure.kernel.errors import Conflict, CursorExpired, Invalid, StoreUnavailable
from tenure.kernel.holdings.holding_model import (
    AGAIN,
    OWNED,
    Change,
    Outcome,
    Row,
    SpaceId,
    State,
    Ticket,
    Verdict,
    Wish,
)
from tenure.kernel.holdings.log_entries import grant_entry, release_entry
from tenure.ports import Abilities
from tenure.stores.etcd.gateway import (
    ANSWER_S,
    Compacted,
    Endpoint,
    Gateway,
    absent,
    decoded,
    delete,
    encoded,
    equals,
    get,
    put,
    unchanged,
)
from tenure.stores.etcd.records import (
    LARGEST_BATCH,
    MAX_TXN_OPS,
    SHARE,
    Keys,
    Proposal,
    dump_entries,
    propose,
    read_changes,
    read_row,
)

A = TypeVar("A")
I = TypeVar("I")  # noqa: E741 - items

PAGE = 1000
RERUNS = 20
DEFAULT_PORT = 2379
DEFAULT_ROOT = "/tenure"
LARGEST_REQUEST = 1_400_000
"""Bytes of a transaction; etcd's default limit is 1.5 MiB."""


class EtcdStore:
    """A book in etcd, under one root."""

    abilities = Abilities(parallel_writes=True, largest_batch=LARGEST_BATCH)

    def __init__(
        self,
        gateway: Gateway,
        *,
        root: str = DEFAULT_ROOT,
        clock: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self._gateway = gateway
        self._keys = Keys(root)
        self._clock = clock

    @classmethod
    async def open(cls, url: str, *, answer_s: float = ANSWER_S) -> "EtcdStore":
        """Open ``etcd://host:port,host:port/root`` (``etcds://`` for TLS) and see that it answers."""
        endpoints, root = read_url(url)
        tls = ssl.create_default_context() if url.startswith("etcds:") else None
        store = cls(Gateway(endpoints, tls=tls, answer_s=answer_s), root=root)
        try:
            await store.version(0)
        except BaseException:
            await store.close()
            raise
        return store

    @property
    def newest(self) -> int:
        """The highest number that a change can have at the newest revision that etcd has answered with."""
        return (self._gateway.revision + 1) * SHARE - 1

    async def version(self, space: SpaceId) -> int | None:
        """Return the version that grants in a space must name; None if the space takes none."""
        stored = await self._read(self._keys.version(space))
        return int(decoded(stored[0]["value"])) if stored else None

    async def set_version(self, space: SpaceId, version: int) -> None:
        """Say under which version of its configuration a space takes grants; it never goes back."""
        name = self._keys.version(space)
        for _ in range(RERUNS):
            stored = await self._read(name)
            known = int(decoded(stored[0]["value"])) if stored else 0
            if known > version:
                raise Conflict(f"space {space} is at version {known} already, not {version}", field="version")
            if known == version:
                return
            # Another server may write the version between the read and the transaction.
            demand = unchanged(name, int(stored[0]["mod_revision"])) if stored else absent(name)
            if (await self._transact([demand], [put(name, str(version))], [])).get("succeeded"):
                return
        raise StoreUnavailable(f"the version of space {space} kept changing", outcome="none")

    async def grant(self, space: SpaceId, version: int, wishes: Sequence[Wish]) -> Sequence[Verdict]:
        """Create holdings: one transaction for all of them, one more for each surprise."""
        now = self._clock()
        proposals = [propose(self._keys, space, wish, now) for wish in wishes]
        parts = list(_parts(proposals))  # all of them, before anything is asked: the input may be refused
        return await _all_parts(parts, lambda part: self._grant(space, version, part))

    async def _grant(self, space: SpaceId, version: int, proposals: Sequence[Proposal]) -> list[Verdict]:
        verdicts = [AGAIN] * len(proposals)
        undecided = dict(enumerate(proposals))
        while undecided:
            answer = await self._create(space, version, list(undecided.values()))
            if answer.get("succeeded"):
                generation = int(answer["header"]["revision"])
                for place, proposal in undecided.items():
                    verdicts[place] = Verdict(Outcome.GRANTED, proposal.granted(generation))
                break
            stored = [reading["response_range"].get("kvs", []) for reading in answer["responses"]]
            # Another version: what is undecided stays AGAIN.
            if not stored[0] or decoded(stored[0][0]["value"]) != str(version):
                break
            for place, at_claim, at_address in zip(list(undecided), stored[1::2], stored[2::2], strict=True):
                if refusal := _refusal(undecided[place], at_claim, at_address):
                    verdicts[place] = refusal
                    del undecided[place]  # at least one goes, or the transaction would not have failed
        return verdicts

    async def _create(self, space: SpaceId, version: int, proposals: Sequence[Proposal]) -> dict[str, Any]:
        """Write all proposals if nothing is in the way of any, else read what is."""
        version_key = self._keys.version(space)
        demands = [equals(version_key, str(version))]
        entries = [grant_entry(proposal.row) for proposal in proposals]
        effects = [put(self._keys.log(space), dump_entries(entries, proposals[0].row.since_us))]
        readings = [get(version_key)]
        for proposal in proposals:
            demands += [absent(proposal.claim), absent(proposal.address)]
            effects += [put(proposal.claim, proposal.text), put(proposal.address, proposal.text)]
            readings += [get(proposal.claim), get(proposal.address)]
        return await self._transact(demands, effects, readings)

    async def release(self, space: SpaceId, tickets: Sequence[Ticket]) -> Sequence[Row | None]:
        """End holdings: one reading and one transaction."""
        parts = [tickets[start : start + LARGEST_BATCH] for start in range(0, len(tickets), LARGEST_BATCH)]
        return await _all_parts(parts, lambda part: self._release(space, part))

    async def _release(self, space: SpaceId, tickets: Sequence[Ticket]) -> list[Row | None]:
        readings = [get(self._keys.address(space, ticket.first)) for ticket in tickets]
        answer = await self._transact([], readings, [], changes=False)
        for _ in range(RERUNS):
            stored = [reading["response_range"].get("kvs") for reading in answer["responses"]]
            found_rows = [read_row(found[0]) if found else None for found in stored]
            rows = [None if row and row.state is State.COOLING else row for row in found_rows]
            ended = [(row, ticket) for row, ticket in zip(rows, tickets, strict=True) if row and ticket.names(row)]
            if not ended:
                return rows
            entries = [release_entry(row, ticket.request) for row, ticket in ended]
            effects = [put(self._keys.log(space), dump_entries(entries, self._clock()))]
            for row, _ticket in ended:
                effects += [delete(self._keys.claim(row)), delete(self._keys.address(space, row.first))]
            # Both keys of a holding are written and removed together, so a look at one of them is enough.
            demands = [unchanged(self._keys.address(space, row.first), row.generation) for row, _ in ended]
            answer = await self._transact(demands, effects, readings)
            if answer.get("succeeded"):
                return rows
        raise StoreUnavailable("the holdings kept changing while they were released", outcome="none")

    async def held(self, space: SpaceId, *, after: int = -1) -> AsyncIterator[Sequence[Row]]:
        """Stream holdings in pages, all as of the first page's moment."""
        _, end = self._keys.addresses(space)
        # Revision 0 asks for the newest state; the first answer's revision then holds for all pages.
        start, revision, more = self._keys.address(space, after + 1), 0, True
        while more:
            question = {"key": encoded(start), "range_end": encoded(end), "limit": PAGE, "revision": revision}
            try:
                answer = await self._gateway.ask("kv/range", question, changes=False)
            except Compacted as error:
                raise StoreUnavailable("etcd compacted its history under a long reading", outcome="none") from error
            stored = answer.get("kvs", [])
            if stored:
                yield [read_row(found) for found in stored]
                # The least key that sorts behind the last one.
                start = decoded(stored[-1]["key"]) + "\0"
            revision, more = revision or int(answer["header"]["revision"]), bool(answer.get("more"))

    async def by_owner(self, owners: Sequence[str]) -> Sequence[Row]:
        """Find holdings by owner; as of one moment for up to 128 owners."""
        found: list[Row] = []
        for start in range(0, len(owners), MAX_TXN_OPS):
            readings = [get(*self._keys.owned(owner)) for owner in owners[start : start + MAX_TXN_OPS]]
            answer = await self._transact([], readings, [], changes=False)
            for reading in answer["responses"]:
                rows = [read_row(stored) for stored in reading["response_range"].get("kvs", [])]
                found.extend(sorted(rows, key=lambda row: (row.space, row.first)))
        return found

    async def watch(self, after: int, *, limit: int = 1000, space: SpaceId | None = None) -> Sequence[Change]:
        """Read the log from etcd's history. A reading that finds something takes up to a tenth of a second."""
        # The cursor's own revision is read again: a limit may have cut its transaction in two.
        revision = max(after // SHARE, 1)
        start, end = self._keys.logs() if space is None else (self._keys.log(space), None)
        newest = await self._read(start, end, limit=1, sort_target="MOD", sort_order="DESCEND")
        if limit < 1 or not newest or int(newest[0]["mod_revision"]) < revision:
            return []
        upto = int(newest[0]["mod_revision"])
        if upto == revision:
            events = newest
        else:
            question = {"key": encoded(start), "start_revision": str(revision), "fragment": True}
            question |= {} if end is None else {"range_end": encoded(end)}
            try:
                # One event more than the limit: the first may hold nothing behind the cursor.
                events = [event["kv"] for event in await self._gateway.history(question, upto=upto, limit=limit + 1)]
            except Compacted as error:
                raise CursorExpired(after, error.oldest * SHARE) from error
        changes = (change for event in events for change in read_changes(event) if change.seq > after)
        return [change for _, change in zip(range(limit), changes, strict=False)]

    async def close(self) -> None:
        """Close the connections."""
        await self._gateway.close()

    async def _read(self, key: str, end: str | None = None, **more: Any) -> list[dict[str, Any]]:
        question = get(key, end)["request_range"] | more
        stored: list[dict[str, Any]] = (await self._gateway.ask("kv/range", question, changes=False)).get("kvs", [])
        return stored

    async def _transact(
        self,
        demands: list[dict[str, Any]],
        then: list[dict[str, Any]],
        otherwise: list[dict[str, Any]],
        *,
        changes: bool = True,
    ) -> dict[str, Any]:
        question = {"compare": demands, "success": then, "failure": otherwise}
        return await self._gateway.ask("kv/txn", question, changes=changes)


def read_url(url: str) -> tuple[list[Endpoint], str]:
    """Read the members and the root from a URL."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise Invalid("url: etcd users are not supported; leave out the part before the @", field="url")
    return [_endpoint(member) for member in parts.netloc.split(",")], parts.path.rstrip("/") or DEFAULT_ROOT


def _endpoint(member: str) -> Endpoint:
    try:
        parts = urlsplit(f"//{member}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host:
        raise Invalid(f"url: {member!r} is no member of an etcd; write etcd://host:{DEFAULT_PORT}", field="url")
    return host, port or DEFAULT_PORT


def _refusal(proposal: Proposal, at_claim: Sequence[Any], at_address: Sequence[Any]) -> Verdict | None:
    """Say what is in a wish's way, if anything is."""
    if at_claim and proposal.wish.state in OWNED:
        return Verdict(Outcome.ALREADY, read_row(at_claim[0]))
    return Verdict(Outcome.TAKEN, read_row(at_address[0])) if at_address else None


def _parts(proposals: Sequence[Proposal]) -> Iterator[Sequence[Proposal]]:
    """Cut a batch where etcd's limits on operations or bytes are reached."""
    part: list[Proposal] = []
    size = 0
    for proposal in proposals:
        if proposal.size > LARGEST_REQUEST:
            raise Invalid(f"labels: those of {proposal.wish.owner} are more than etcd can take", field="labels")
        if part and (len(part) == LARGEST_BATCH or size + proposal.size > LARGEST_REQUEST):
            yield part
            part, size = [], 0
        part.append(proposal)
        size += proposal.size
    if part:
        yield part


async def _all_parts(parts: Sequence[Sequence[I]], work: Callable[[Sequence[I]], Awaitable[list[A]]]) -> list[A]:
    """Do one part after the other; once a part was done, "nothing happened" is no longer true."""
    answers: list[A] = []
    for part in parts:
        try:
            answers += await work(part)
        except StoreUnavailable as error:
            if not answers or error.outcome == "unknown":
                raise
            raise StoreUnavailable("etcd was lost in the middle of a batch", outcome="unknown") from error
    return answers
