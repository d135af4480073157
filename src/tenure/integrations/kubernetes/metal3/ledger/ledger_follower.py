"""Follows the network of a ledger for one pool: what it says goes into the pool's book, and claims are looked at."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenure.integrations.kubernetes.metal3.address_rights import owner_of
from tenure.integrations.kubernetes.metal3.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.ledger.ledger_secret import LedgerSecret
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
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import id_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import now_text
from tenure.integrations.kubernetes.metal3.objects.ledger_owner import claim_of_owner, ledger_owner
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_spec import LedgerBinding
from tenure.integrations.kubernetes.metal3.pool_book import LEDGER, Holder
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.resource_types import uid_of
from tenure.kernel.errors import (
    AddressCovered,
    AddressInUse,
    AddressOutsideSubnet,
    AddressReserved,
    AlreadyExists,
    Conflict,
    NotOwner,
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
REFUSED_S = 10.0
"""For so long an address is not asked for again that was refused, and that nobody holds in the network."""
COMPARED_EVERY_S = 30.0
"""How often it is looked whether the ledger has all that claims have."""
OBSERVED_EVERY_S = 600.0
"""How often the status says again that the ledger answers, if nothing else changes."""

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
        self._secret = LedgerSecret(client, key.namespace, binding, self.look)
        self.mirror = NetworkMirror(binding.network)
        self._refusals: dict[int, tuple[str, float]] = {}
        """Addresses that were refused although nobody holds them in the network: why, and until when that counts."""
        self._wanted = asyncio.Event()
        self._compared_at = self._observed_at = float("-inf")

    @property
    def _state(self) -> LedgerState:
        return self._caches.record(self._key).ledger

    def look(self) -> None:
        """Ask the ledger soon, such as after the Secret has changed."""
        self._wanted.set()

    async def run(self) -> None:
        """Follow Secret and ledger until cancelled; then the pool has no ledger."""
        secret = asyncio.create_task(self._secret.follow())
        try:
            while True:
                await self._refresh()
                self._wanted.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(ASKED_EVERY_S):
                        await self._wanted.wait()
        finally:
            secret.cancel()
            await asyncio.gather(secret, return_exceptions=True)
            await self._opened.leave(self._key)
            self._caches.record(self._key).ledger = LedgerState()
            self._caches.follow_plan(self._key, None)
            self._caches.hold_in_ledger(self._key, {})

    async def ask(self, work: Callable[[AsyncLedger], Awaitable[T]]) -> T:
        """Do work with the ledger; raise ``LedgerRefused`` if it says no, ``LedgerAway`` if it cannot be asked.

        A ledger that does not answer in time may do what was asked all the same: whatever is asked can be asked again.
        """
        try:
            async with asyncio.timeout(ANSWERS_WITHIN_S):
                return await work(await self._opened.get(self._secret.place(), self._key))
        except REFUSALS as error:
            raise LedgerRefused(str(error)) from error
        except LedgerAway as error:
            self._went_away(str(error))
            raise
        except TimeoutError as error:
            raise self._went_away(f"it did not answer within {ANSWERS_WITHIN_S:g} s") from error
        except (TenureError, OSError) as error:
            if isinstance(error, Conflict) and error.field == "generation":
                raise LedgerRefused(str(error)) from error  # another leader was quicker
            raise self._went_away(str(error)) from error
        except Exception as error:  # an error of ours, or of a driver: this pool waits, the others are served
            LOG.exception("%s: the ledger", self._key)
            raise self._went_away(repr(error)) from error

    def _went_away(self, reason: str) -> LedgerAway:
        if self._state.away != reason:
            LOG.warning("%s: the ledger: %s", self._key, reason)
            self._state.away = reason
            self._caches.status_due(self._key)
        return LedgerAway(f"The ledger of {self._key.title}: {reason}")

    async def _refresh(self) -> None:
        try:
            is_changed = await self.ask(self.mirror.refresh)
        except (LedgerAway, LedgerRefused):
            return
        is_back, self._state.away = bool(self._state.away), ""
        if self._drop_refusals() or is_changed or is_back:
            self.publish()
        if is_back:
            LOG.info("%s: the ledger answers", self._key)
            self._caches.record(self._key).look_again()
        now = time.monotonic()
        if is_back or now - self._compared_at > COMPARED_EVERY_S:
            self._compared_at = now
            self._compare()
        if is_back or now - self._observed_at > OBSERVED_EVERY_S:
            self._observed_at, self._state.observed_at = now, now_text()
            self._caches.status_due(self._key)

    def publish(self) -> None:
        """Enter into the book what the mirror has, and look at the claims that it concerns."""
        record, state = self._caches.record(self._key), self._state
        before, state.rows = state.rows, {row.owner: row for row in self.mirror.rows.values() if _is_first(row)}
        if self.mirror.plan is not None:
            aside = self.mirror.plan.preallocations
            state.set_aside = {str(each.owner): each.position for each in aside if not each.slot}
            self._caches.follow_plan(self._key, self.mirror.plan)
        self._caches.hold_in_ledger(self._key, self._holders())
        for owner in {each for each in before.keys() | state.rows.keys() if before.get(each) != state.rows.get(each)}:
            claim = claim_of_owner(self.binding.realm, owner)
            if claim is not None and self._caches.claim(claim) is not None:
                record.dirty.add(claim)

    def _holders(self) -> dict[Holder, int]:
        """Return who holds what of the pool: owners by their names, and why an address is refused."""
        refused = {(LEDGER, why): position for position, (why, _) in self._refusals.items()}
        held = {(LEDGER, _holder_name(row)): row.position for row in self.mirror.rows.values()}
        return refused | held

    def enter(self, holding: Holding) -> None:
        """Enter what the ledger has granted. O(log n)."""
        row = self.mirror.enter(holding)
        self._state.rows[row.owner] = row
        self._caches.record(self._key).book.hold((LEDGER, _holder_name(row)), row.position)

    def remove(self, row: LedgerRow) -> None:
        """Enter that the ledger holds an address no more. O(log n)."""
        self.mirror.remove(row.position)
        self._state.rows.pop(row.owner, None)
        self._caches.drop_in_ledger(self._key, (LEDGER, _holder_name(row)))

    def refused(self, position: int, why: str) -> None:
        """Note that an address was refused, so that another one is picked; who has it is read soon. O(log n)."""
        self._refusals[position] = (why, time.monotonic() + REFUSED_S)
        self._caches.record(self._key).book.hold((LEDGER, why), position)
        self.look()

    def _drop_refusals(self) -> bool:
        """Forget refusals whose time is over; return whether there were any."""
        now = time.monotonic()
        over = [position for position, (_, until) in self._refusals.items() if until < now]
        for position in over:
            del self._refusals[position]
        return bool(over)

    def _compare(self) -> None:
        """Look at the claims that have an address which the ledger does not hold for them, as far as is known."""
        record = self._caches.record(self._key)
        pool = self._caches.pools.get(self._key)
        for address in self._caches.addresses_of(self._key):
            claim = owner_of(address, self._caches)
            if claim is None or pool is None:
                continue
            row = self._state.rows.get(ledger_owner(self.binding.realm, id_of(claim)))
            is_kept = row is not None and row.position == position_of(address)
            if row is None or not is_kept or not is_written_on(row, claim, uid_of(pool)):
                record.dirty.add(id_of(claim))
        self._caches.status_due(self._key)


def _is_first(row: LedgerRow) -> bool:
    """Return whether a row is what a claim has: claims have one address each, and no slots."""
    return not row.slot and row.is_owned


def _holder_name(row: LedgerRow) -> str:
    """Name a holder: a claim by its owner alone, all else so that no two rows have one name."""
    return row.owner if _is_first(row) else f"{row.owner} ({row.slot or row.generation})"
