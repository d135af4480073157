"""What is written in etcd: keys and documents.

    {root}/version/{space}                                     the configuration's version that grants must name
    {root}/address/{space}/{hex of first}                      a holding
    {root}/owner/{owner}/{space}/claim/{network}/{slot}        the same holding, while it is pending or held
    {root}/owner/{owner}/{space}/address/{hex of first}        the same holding, when it is not
    {root}/log/{space}                                         the changes of the newest transaction of the space

A holding stands under two keys, written and removed together: the first makes its address unique, the second its
claim, and all keys of an owner are one range. The hexadecimal keys sort as positions do. A holding is never written
over, so the revision of its keys is its generation. The log is one key a space: etcd's own history of that key *is*
the log, in order and complete back to the last compaction.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tenure.kernel.addressing.addresses import key, position
from tenure.kernel.holdings.holding_model import NO_DETAILS, OWNED, Change, Entry, Row, SpaceId, State, Wish
from tenure.stores.etcd.gateway import decoded

MAX_TXN_OPS = 128
"""etcd's default limit on the comparisons, and on the effects, of one transaction."""

LARGEST_BATCH = (MAX_TXN_OPS - 1) // 2
"""A holding takes two comparisons and two effects; the version and the log take one more."""

SHARE = LARGEST_BATCH + 1
"""A change is numbered revision × SHARE + its place in the transaction: unique, and in order."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Where things stand under one root."""

    root: str

    def version(self, space: SpaceId) -> str:
        """Return the key of a space's version."""
        return f"{self.root}/version/{space}"

    def log(self, space: SpaceId) -> str:
        """Return the key of a space's log."""
        return f"{self.root}/log/{space}"

    def logs(self) -> tuple[str, str]:
        """Return the range of all spaces' logs."""
        return self._below("log/")

    def address(self, space: SpaceId, first: int) -> str:
        """Return the key of the holding that begins at a position."""
        return f"{self.root}/address/{space}/{key(first).hex()}"

    def addresses(self, space: SpaceId) -> tuple[str, str]:
        """Return the range of a space's holdings."""
        return self._below(f"address/{space}/")

    def claim(self, row: Row) -> str:
        """Return the key of a holding on its owner's side."""
        # Quoted: a slash in an owner must not lead into another owner's range.
        base = f"{self.root}/owner/{quote(row.owner, safe='')}/{row.space}"
        if row.state in OWNED:
            return f"{base}/claim/{row.network}/{quote(row.slot, safe='')}"
        return f"{base}/address/{key(row.first).hex()}"

    def owned(self, owner: str) -> tuple[str, str]:
        """Return the range of an owner's holdings."""
        return self._below(f"owner/{quote(owner, safe='')}/")

    def _below(self, folder: str) -> tuple[str, str]:
        start = f"{self.root}/{folder}"
        return start, start[:-1] + "0"  # "0" follows "/"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A wish made ready to be written."""

    wish: Wish
    row: Row
    text: str
    address: str
    claim: str

    @property
    def size(self) -> int:
        """Bound the bytes that the wish takes in a request."""
        return 3 * len(self.text.encode()) + 3 * len(self.claim) + 1000

    def granted(self, generation: int) -> Row:
        """Return the row as it was written at a revision."""
        return _row(self.row.space, self.wish, generation, self.row.since_us)


UNKNOWN = 0
"""The generation of what is not written yet; etcd's revisions begin at 1."""


def propose(keys: Keys, space: SpaceId, wish: Wish, at_us: int) -> Proposal:
    """Make a wish ready; its generation is known when it is granted."""
    row = _row(space, wish, UNKNOWN, at_us)
    return Proposal(wish, row, dump_row(row), keys.address(space, wish.first), keys.claim(row))


def _row(space: SpaceId, wish: Wish, generation: int, at_us: int) -> Row:
    return Row(
        space, wish.network, wish.first, wish.last, wish.owner, wish.slot, wish.state, generation, at_us,
        None if wish.lasts_us is None else at_us + wish.lasts_us, wish.request, wish.details,
    )  # fmt: skip


def dump_row(row: Row) -> str:
    """Write a holding; what is not said is left out."""
    return _dump(
        {
            "space": row.space, "network": row.network, "first": key(row.first).hex(), "last": key(row.last).hex(),
            "owner": row.owner, "slot": row.slot or None, "state": str(row.state), "since_us": row.since_us,
            "until_us": row.until_us, "request": row.request, "details": dict(row.details) or None,
        }
    )  # fmt: skip


def read_row(stored: Mapping[str, Any]) -> Row:
    """Read a holding from either of its keys."""
    said = json.loads(decoded(stored["value"]))
    return Row(
        said["space"], said["network"], _position(said["first"]), _position(said["last"]), said["owner"],
        said.get("slot", ""), State(said["state"]), int(stored["mod_revision"]), said["since_us"],
        said.get("until_us"), said.get("request"), said.get("details", NO_DETAILS),
    )  # fmt: skip


def dump_entries(entries: Sequence[Entry], at_us: int) -> str:
    """Write the changes of one transaction; the generation of a grant is the revision that this will be written at."""
    return _dump({"at_us": at_us, "changes": [_entry_document(entry) for entry in entries]})


def read_changes(stored: Mapping[str, Any]) -> Iterator[Change]:
    """Read the changes of one transaction."""
    revision = int(stored["mod_revision"])
    said = json.loads(decoded(stored["value"]))
    for place, entry in enumerate(said["changes"]):
        yield Change(
            revision * SHARE + place, said["at_us"], entry["verb"], entry["space"], entry["network"],
            _position(entry["first"]), _position(entry["last"]), entry["owner"], entry.get("slot", ""),
            entry.get("generation", revision), entry.get("request"), entry.get("details", NO_DETAILS),
        )  # fmt: skip


def _entry_document(entry: Entry) -> dict[str, Any]:
    assert entry.first is not None
    assert entry.last is not None
    said = {
        "verb": entry.verb, "space": entry.space, "network": entry.network, "first": key(entry.first).hex(),
        "last": key(entry.last).hex(), "owner": entry.owner, "slot": entry.slot or None,
        "generation": entry.generation or None, "request": entry.request, "details": dict(entry.details) or None,
    }  # fmt: skip
    return {name: value for name, value in said.items() if value is not None}


def _dump(document: Mapping[str, Any]) -> str:
    said = {name: value for name, value in document.items() if value is not None}
    return json.dumps(said, separators=(",", ":"), ensure_ascii=False)


def _position(text: str) -> int:
    return position(bytes.fromhex(text))
