"""Follows the network of a ledger for one pool: what it says goes into the pool's book, and claims are looked at."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from tenure.integrations.kubernetes.metal3.address_rights import owner_of
from tenure.integrations.kubernetes.metal3.caches.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.ledger.ledger_secret import LedgerPlace, LedgerSecret
from tenure.integrations.kubernetes.metal3.ledger.network_mirror import NetworkMirror
from tenure.integrations.kubernetes.metal3.ledger.open_ledgers import OpenLedgers
from tenure.integrations.kubernetes.metal3.ledger_state import (
    LedgerAway,
    LedgerRefused,
    LedgerRow,
    LedgerState,
    is_written_on,
)
from tenure.integrations.kubernetes.metal3.objects.address_objects import position_of
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import id_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import now_text
from tenure.integrations.kubernetes.metal3.objects.ledger_owner import claim_of_owner, ledger_owner
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_spec import LedgerBinding
from tenure.integrations.kubernetes.metal3.pool_book import LEDGER, Holder
from tenure.integrations.kubernetes.metal3.pool_record import PoolRecord
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.resource_types import key_of, uid_of
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.errors import (
    AddressCovered,
    AddressInUse,
    AddressOutsideSubnet,
    AddressReserved,
    AlreadyExists,
    Conflict,
    NotOwner,
    StoreUnavailable,
    TenureError,
)
from tenure.kernel.holdings.holding_model import Holding
from tenure.service.ledger.async_ledger import AsyncLedger

LOG = logging.getLogger(__name__)
T = TypeVar("T")

ASKED_EVERY_S = 1.0
"""How often it is asked what has changed; what this process changes itself is known at once."""
ANSWERS_WITHIN_S = 10.0
"""After this time a ledger counts as away: other claims of the pool must not wait for it."""
READS_WITHIN_S = 120.0
"""So long it may take to read a network whole; nothing else waits for that."""
REFUSED_S, LONGEST_REFUSED_S = 10.0, 600.0
"""For so long an address is not asked for again that was refused, and that nobody is known to hold: at first, and if it
is refused again and again. A pool may have thousands of them: a token may not see who else has a network there."""
COMPARED_EVERY_S = 30.0
"""How often it is looked whether the ledger has all that claims have."""
OBSERVED_EVERY_S = 600.0
"""How often everything is read again, and the status says that the ledger answers, if nothing else changes."""


class Refusal(NamedTuple):
    """An address that the ledger refused although nobody is known to hold it."""

    why: str
    until: float
    """Until then it is not asked for."""
    pause_s: float


REFUSALS = (AddressInUse, AddressReserved, AddressOutsideSubnet, AddressCovered, AlreadyExists, NotOwner)
"""What a ledger says no with to one address; with anything else it says that it cannot be asked."""


class LedgerFollower:
    """The way of one pool to its ledger."""

    def __init__(
        self, client: ApiClient, caches: IpamCaches, opened: OpenLedgers, key: PoolId, binding: LedgerBinding
    ) -> None:
        self._caches = caches
        self._opened = opened
        self._key = key
        self.binding = binding
        self._secret = LedgerSecret(client, key.namespace, binding, self._secret_changed)
        self.mirror = NetworkMirror(binding.network)
        self._looked_at: LedgerPlace | None = None
        """Where the ledger was when it was last looked at."""
        self._refusals: dict[int, Refusal] = {}
        self._wanted = asyncio.Event()
        self._looking: asyncio.Timeout | None = None
        """The look at the ledger that is under way; it is cut short when the Secret names another place."""
        self._compared_at = self._observed_at = self._unusable_until = float("-inf")
        self._strangers: set[str] = set()
        """Owners of this realm, of pools that were not here when it was last looked."""

    @property
    def _record(self) -> PoolRecord:
        return self._caches.records.of(self._key)

    @property
    def _state(self) -> LedgerState:
        return self._record.ledger

    def look(self) -> None:
        """Ask the ledger soon, such as after the Secret has changed."""
        self._wanted.set()

    def _secret_changed(self) -> None:
        """Ask at once, also a ledger that has just refused to work: it may have been for the token.

        Nor is it waited for what was named before: that may be a place from which nobody ever answers.
        """
        self._unusable_until = float("-inf")
        # A time-out that has expired cannot be set again: asyncio raises.
        if self._looking is not None and not self._looking.expired() and self._place() != self._looked_at:
            self._looking.reschedule(asyncio.get_running_loop().time())
        self.look()

    def _place(self) -> LedgerPlace | None:
        """Return where the ledger is; nothing, if the Secret does not say so."""
        try:
            return self._secret.place()
        except LedgerAway:
            return None

    async def run(self) -> None:
        """Follow Secret and ledger until cancelled; then the pool has no ledger."""
        secret = asyncio.create_task(self._secret.follow())
        unread = asyncio.get_running_loop().call_later(ANSWERS_WITHIN_S, self._say_unread)
        try:
            while True:
                # Before the look: what is asked for while it goes on is looked at again.
                self._wanted.clear()
                await self._refresh()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(ASKED_EVERY_S):
                        await self._wanted.wait()
        finally:
            unread.cancel()
            secret.cancel()
            await asyncio.gather(secret, return_exceptions=True)
            await self._opened.leave(self._key)
            self._record.ledger = LedgerState()
            self._caches.records.follow_plan(self._key, None)
            self._caches.records.hold_in_ledger(self._key, {})

    async def ask(self, work: Callable[[AsyncLedger], Awaitable[T]]) -> T:
        """Do work with the ledger; raise ``LedgerRefused`` if it says no, ``LedgerAway`` if it cannot be asked.

        A ledger that does not answer in time may do what was asked all the same: whatever is asked can be asked again.
        """
        try:
            return await self._asked(work, ANSWERS_WITHIN_S)
        except LedgerAway as error:
            # It answers, and does not do this: reading it, which may succeed, is no sign that it works again.
            if isinstance(error.__cause__, TenureError) and not isinstance(error.__cause__, StoreUnavailable):
                self._unusable_until = time.monotonic() + REFUSED_S
            raise

    async def _asked(self, work: Callable[[AsyncLedger], Awaitable[T]], within_s: float) -> T:
        try:
            async with asyncio.timeout(within_s):
                await self._secret.first_read()
                return await work(await self._opened.get(self._secret.place(), self._key))
        except REFUSALS as error:
            raise LedgerRefused(str(error)) from error
        except LedgerAway as error:
            self._went_away(str(error))
            raise
        except TimeoutError as error:
            raise self._went_away(f"it did not answer within {within_s:g} s") from error
        except (TenureError, OSError) as error:
            if isinstance(error, Conflict) and error.field == "generation":
                raise LedgerRefused(str(error)) from error  # another leader was quicker
            raise self._went_away(str(error)) from error
        except Exception as error:  # an error of ours, or of a driver: this pool waits, the others are served
            LOG.exception("%s: the ledger", self._key)
            raise self._went_away(repr(error)) from error

    def _went_away(self, reason: str) -> LedgerAway:
        # What comes back may be a ledger that was restored from a backup.
        self.mirror.forget()
        self._say_away(reason)
        return LedgerAway(f"The ledger of {self._key.title}: {reason}")

    def _say_away(self, reason: str) -> None:
        if self._state.away != reason:
            LOG.warning("%s: the ledger: %s", self._key, reason)
            self._state.away = reason
            self._record.look_again()  # claims say why they wait, also where the reason is another
            self._caches.records.status_due(self._key)

    def _say_unread(self) -> None:
        """Say why claims wait, also if a network takes long to read."""
        if self._state.is_unread:
            self._say_away("it is being read")

    async def _refresh(self) -> None:
        try:
            async with asyncio.timeout(None) as self._looking:
                is_changed = await self._read()
        except (LedgerAway, LedgerRefused, TimeoutError):
            # The reason is said already; or the look was cut short for another place, which is looked at next.
            return
        finally:
            self._looking = None
        now = time.monotonic()
        is_back = bool(self._state.away) and now >= self._unusable_until
        if is_back:
            LOG.info("%s: the ledger answers", self._key)
            self._state.away = ""
        if self._drop_refusals() or is_changed or is_back:
            self.publish()
        if self._state.away:
            return
        if is_back:
            self._record.look_again()
        self._look_regularly(now, is_due=is_back)

    async def _read(self) -> bool:
        """Read what has changed in the ledger, or all of it if it is another one; return whether anything has."""
        await self._secret.first_read()
        place = self._place()
        if place is not None:
            if self._looked_at is None or place.url != self._looked_at.url:
                self.mirror.forget()
            self._looked_at = place
        before = self.mirror.plan
        if not self.mirror.is_read:
            # One that does not answer at all is not given the time that a whole network takes.
            await self._asked(lambda ledger: ledger.last_change(), ANSWERS_WITHIN_S)
        is_changed = await self._asked(self.mirror.refresh, ANSWERS_WITHIN_S if self.mirror.is_read else READS_WITHIN_S)
        if self.mirror.plan != before:
            self._refusals.clear()  # what was refused may be given by the new plan
        return is_changed

    def _look_regularly(self, now: float, *, is_due: bool) -> None:
        """Compare what is known with what claims have, and say in the status that the ledger answers."""
        if is_due or now - self._compared_at > COMPARED_EVERY_S:
            self._compared_at = now
            self._compare()
        if not is_due and now - self._observed_at > OBSERVED_EVERY_S:
            self.mirror.forget()  # everything is read again, as other caches are compared with the server (KP13)
            is_due = True
        if is_due:
            self._observed_at, self._state.observed_at = now, now_text()
            self._caches.records.status_due(self._key)

    def publish(self) -> None:
        """Enter into the book what the mirror has, and look at the claims that it concerns."""
        state = self._state
        before, state.rows = state.rows, {row.owner: row for row in self.mirror.rows.values() if _is_first(row)}
        if self.mirror.plan is not None:
            aside = self.mirror.plan.network.preallocations
            state.set_aside = {str(each.owner): each.position for each in aside if not each.slot}
            self._caches.records.follow_plan(self._key, self.mirror.plan)
        self._caches.records.hold_in_ledger(self._key, self._holders())
        for owner in {each for each in before.keys() | state.rows.keys() if before.get(each) != state.rows.get(each)}:
            claim = claim_of_owner(self.binding.realm, owner)
            if claim is not None and self._caches.objects.claim(claim) is not None:
                self._record.dirty.add(claim)

    def _holders(self) -> dict[Holder, int]:
        """Return who holds what of the pool: owners by their names, and why an address is refused."""
        now = time.monotonic()
        # Refusals are kept longer than they count: another one of the same address counts for longer.
        refused = {(LEDGER, each.why): position for position, each in self._refusals.items() if each.until > now}
        rows = (*self.mirror.others.values(), *self.mirror.rows.values())
        return refused | {(LEDGER, self._holder_name(row)): row.position for row in rows}

    def _holder_name(self, row: LedgerRow) -> str:
        """Name a holder: a claim by its owner alone, all else so that no two rows have one name."""
        if row.network == self.binding.network and _is_first(row):
            return row.owner
        where = [row.slot, f"network {row.network}" if row.network != self.binding.network else ""]
        return f"{row.owner} ({', '.join(filter(None, [*where, format_address(row.position)]))})"

    def enter(self, holding: Holding) -> None:
        """Enter what the ledger has granted. O(log n)."""
        row = self.mirror.enter(holding)
        self._state.rows[row.owner] = row
        self._record.book.hold((LEDGER, self._holder_name(row)), row.position)

    def row_of_claim(self, claim: ClaimId) -> LedgerRow | None:
        """Return what the ledger holds under the name of a claim, or nothing. O(1)."""
        return self._state.rows.get(ledger_owner(self.binding.realm, claim))

    def remove(self, row: LedgerRow) -> None:
        """Enter that the ledger holds an address no more. O(log n)."""
        self.mirror.remove(row.position)
        self._state.rows.pop(row.owner, None)
        self._caches.records.drop_in_ledger(self._key, (LEDGER, self._holder_name(row)))

    def refused(self, position: int, why: str) -> None:
        """Note that an address was refused, so that another one is picked; who has it is read soon. O(log n)."""
        before = self._refusals.get(position)
        pause_s = REFUSED_S if before is None else min(2 * before.pause_s, LONGEST_REFUSED_S)
        self._refusals[position] = Refusal(why, time.monotonic() + pause_s, pause_s)
        self._record.book.hold((LEDGER, why), position)
        self.look()

    def _drop_refusals(self) -> bool:
        """Forget refusals of what somebody is known to hold; return whether others do not count any more."""
        for position in [each for each in self._refusals if each in self.mirror.rows or each in self.mirror.others]:
            del self._refusals[position]
        book, now = self._record.book, time.monotonic()
        return any(
            each.until < now and book.position_of((LEDGER, each.why)) is not None for each in self._refusals.values()
        )

    def _compare(self) -> None:
        """Look at the claims that have an address which the ledger does not hold for them, as far as is known."""
        record = self._record
        pool = self._caches.objects.pools.get(self._key)
        for address in self._caches.objects.addresses_of(self._key):
            claim = owner_of(address, self._caches.objects)
            if claim is None or pool is None:
                continue
            row = self.row_of_claim(id_of(claim))
            is_kept = row is not None and row.position == position_of(address)
            if row is None or not is_kept or not is_written_on(row, claim, uid_of(pool)):
                record.dirty.add(id_of(claim))
        self._note_strangers()
        self._caches.records.status_due(self._key)

    def _note_strangers(self) -> None:
        """Note what is held under this realm for pools of the namespace that are not here, at two looks.

        A move writes its own pool on every holding within moments. What stays is another cluster's of the same realm,
        a move's that was killed, or was left by a pool that was removed by force: people must decide.
        """
        pools = {uid_of(pool) for pool in self._caches.objects.pools if key_of(pool)[0] == self._key.namespace}
        strange = {
            owner: row
            for owner, row in self._state.rows.items()
            if row.pool_uid not in ("", *pools)
            and (claim := claim_of_owner(self.binding.realm, owner)) is not None
            and claim.namespace == self._key.namespace
        }
        again = sorted(self._strangers & strange.keys())
        self._strangers = set(strange)
        self._state.strange = ""
        if again:
            such = f"such as {format_address(strange[again[0]].position)} by {again[0]}"
            self._state.strange = (
                f"{len(again)} addresses of realm {self.binding.realm} are held for pools that are not here, {such}: "
                "another cluster has this realm, a move was not finished, or a pool was removed by force"
            )


def _is_first(row: LedgerRow) -> bool:
    """Return whether a row is what a claim has: claims have one address each, and no slots."""
    return not row.slot and row.is_owned
