"""The ledger in time against a short model of it: pending, held, draining, cooling; deadlines, keys and runs.

The clock is the test's own and stands still between steps. Two pools are in play: what is released in the first one
cools, what is released in the second one is free at once; one address beside them can only be had by name.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import tenure
from tenure.kernel.addressing.addresses import format_address
from tenure.service.engine.engine import Engine
from tenure.service.ledger.blocking.loop_thread import LoopThread
from tenure.service.ledger.engine_ledger import ledger_on
from tenure.stores.memory.store import MemoryStore
from tests.profiles import examples

COOL = [f"10.0.0.{number}" for number in range(10, 14)]
WARM = [f"10.0.0.{number}" for number in range(20, 23)]
BESIDE = ["10.0.0.30"]
OWNERS = ["pod/a", "pod/b", "pod/c"]
SLOTS = ["", "0", "1"]
COOLS_S, LASTS_S, KEYS_LIVE_S = 30, 20, 50
SECOND = 1_000_000

owners = st.sampled_from(OWNERS)
slots = st.sampled_from(SLOTS)
addresses = st.sampled_from([*COOL, *WARM, *BESIDE])
policies = st.sampled_from(["lowest", "random", "hashed", "sticky"])
keys = st.sampled_from(["k-1", "k-2", "k-3"])


@dataclass
class Held:
    """What the model knows of a holding."""

    owner: str
    slot: str
    state: str
    until_us: int | None = None


class Model:
    """Who holds what until when, and which keys stand for what."""

    def __init__(self) -> None:
        self.now_us = 1_000 * SECOND
        self.rows: dict[str, Held] = {}
        self.keys: dict[str, tuple[int, object, object]] = {}

    def mine(self, owner: str, slot: str) -> str | None:
        """Return the address that an owner's slot counts as taken by."""
        found = (a for a, row in self.rows.items() if (row.owner, row.slot) == (owner, slot))
        return next((a for a in found if self.rows[a].state in ("pending", "held")), None)

    def free(self) -> list[str]:
        """List what can be picked, in order, once what is overdue was removed."""
        return [address for address in [*COOL, *WARM] if address not in self.rows]

    def late(self) -> list[str]:
        """List what is overdue."""
        return [a for a, row in self.rows.items() if row.until_us is not None and row.until_us <= self.now_us]

    def held_for(self, address: str, owner: str) -> Held | None:
        """Return the holding at an address as an owner sees it: what is overdue is nobody's but its owner's."""
        row = self.rows.get(address)
        if row is None or row.state == "cooling" or (row.owner != owner and address in self.late()):
            return None
        return row

    def sweep(self) -> list[str]:
        """Remove what is overdue."""
        late = self.late()
        for address in late:
            del self.rows[address]
        return late

    def run(self, length: int) -> list[str] | None:
        """Find the lowest run of free addresses."""
        for pool in (COOL, WARM):
            for start in range(len(pool) - length + 1):
                if not any(address in self.rows for address in pool[start : start + length]):
                    return pool[start : start + length]
        return None


class TimeMachine(RuleBasedStateMachine):
    """Do to the ledger what is done to the model."""

    @initialize()
    def begin(self) -> None:
        self.model, self.portal = Model(), LoopThread()
        self.ledger = tenure.Ledger(self.portal.run(self._open()), self.portal)
        self.ledger.add_network("net")
        self.ledger.add_subnet("net", "10.0.0.0/24")
        self.ledger.add_pool("net", f"{COOL[0]}-{COOL[-1]}", cooling_s=COOLS_S)
        self.ledger.add_pool("net", f"{WARM[0]}-{WARM[-1]}")

    async def _open(self) -> tenure.AsyncLedger:
        self.store = store = MemoryStore(clock=lambda: self.model.now_us)
        live_us = KEYS_LIVE_S * SECOND
        return ledger_on(Engine(store, name="model", chance=random.Random(1), keys_live_us=live_us))

    def teardown(self) -> None:
        self.ledger.close()

    @contextmanager
    def refused(self, *kinds: type[tenure.TenureError], swept: int = 0) -> Iterator[None]:
        """Check that what is done inside is refused, with no other trace than that what was overdue is gone."""
        before = self.ledger.last_change()
        with pytest.raises(kinds):
            yield
        assert self.ledger.last_change() == before + swept

    @rule(seconds=st.integers(1, 40))
    def let_time_pass(self, seconds: int) -> None:
        self.model.now_us += seconds * SECOND

    @rule()
    def sweep(self) -> None:
        self.model.keys = {
            key: kept for key, kept in self.model.keys.items() if kept[0] >= self.model.now_us - KEYS_LIVE_S * SECOND
        }

        assert sorted(holding.address for holding in self.ledger.sweep()) == sorted(self.model.sweep())

    @rule(owner=owners, slot=slots, policy=policies, lasts=st.sampled_from([None, LASTS_S]), pending=st.booleans())
    def allocate(self, owner: str, slot: str, policy: str, lasts: int | None, pending: bool) -> None:
        self._allocate(owner, slot, policy, lasts, pending)

    @rule(owner=owners, slot=slots, policy=policies, pending=st.booleans(), key=keys)
    def allocate_with_key(self, owner: str, slot: str, policy: str, pending: bool, key: str) -> None:
        body = (owner, slot, policy, pending)
        if self._known(key, body, lambda: self._ask(owner, slot, policy, None, pending, key)):
            return
        got = self._allocate(owner, slot, policy, None, pending, key)
        if got is not None:
            self.model.keys[key] = (self.model.now_us, body, got)

    def _known(self, key: str, body: object, ask: Callable[[], object]) -> bool:
        """Tell whether a key stands for something, after checking that it does."""
        if key not in self.model.keys:
            return False
        _, old, answer = self.model.keys[key]
        before = self.ledger.last_change()
        if body == old:
            assert ask() == answer
        else:
            with pytest.raises(tenure.KeyReused):
                ask()
        assert self.ledger.last_change() == before
        return True

    def _ask(
        self, owner: str, slot: str, policy: str, lasts: int | None, pending: bool, key: str | None
    ) -> tenure.Holding:
        wish: dict[str, Any] = {"owner": owner, "slot": slot, "policy": policy, "key": key}
        return self.ledger.hold("net", lasts_s=lasts, **wish) if pending else self.ledger.allocate("net", **wish)

    def _allocate(
        self, owner: str, slot: str, policy: str, lasts: int | None, pending: bool, key: str | None = None
    ) -> tenure.Holding | None:
        model, swept = self.model, len(self.model.sweep())  # what is overdue goes before anything is granted
        mine = model.mine(owner, slot)
        if mine is not None and model.rows[mine].state == "pending" and not pending:
            with self.refused(tenure.AlreadyExists, swept=swept):
                self._ask(owner, slot, policy, lasts, pending, key)
            return None
        if mine is not None:
            got = self._ask(owner, slot, policy, lasts, pending, key)
            assert got.address == mine
            return got
        if not (free := model.free()):
            with self.refused(tenure.PoolExhausted, swept=swept):
                self._ask(owner, slot, policy, lasts, pending, key)
            return None
        got = self._ask(owner, slot, policy, lasts, pending, key)
        assert got.address in (free[:1] if policy == "lowest" else free)
        self._hold(got.address, owner, slot, lasts if pending else None, pending)
        return got

    def _hold(self, address: str, owner: str, slot: str, lasts: int | None, pending: bool) -> None:
        until_us = None if lasts is None else self.model.now_us + lasts * SECOND
        self.model.rows[address] = Held(owner, slot, "pending" if pending else "held", until_us)

    @rule(owner=owners, slot=slots, address=addresses, lasts=st.sampled_from([None, LASTS_S]))
    def allocate_named(self, owner: str, slot: str, address: str, lasts: int | None) -> None:
        def ask() -> tenure.Holding:
            if lasts is None:
                return self.ledger.allocate("net", owner=owner, slot=slot, address=address)
            return self.ledger.hold("net", owner=owner, slot=slot, address=address, lasts_s=lasts)

        model, swept = self.model, len(self.model.sweep())
        mine = model.mine(owner, slot)
        if mine is not None and (mine != address or (model.rows[mine].state == "pending" and lasts is None)):
            with self.refused(tenure.AlreadyExists, swept=swept):
                ask()
            return
        if mine is not None:
            assert ask().address == address
            return
        if address in model.rows:
            kind = tenure.AddressReserved if model.rows[address].state == "cooling" else tenure.AddressInUse
            with self.refused(kind, swept=swept):
                ask()
            return
        assert ask().address == address
        self._hold(address, owner, slot, lasts, pending=lasts is not None)

    @rule(owner=owners, length=st.integers(2, 3))
    def allocate_run(self, owner: str, length: int) -> None:
        saved = dict(self.model.rows)
        self.model.sweep()
        mine = [self.model.mine(owner, str(number)) for number in range(length)]
        if any(mine):
            self._repeated_run(owner, length, mine, saved)
            return
        found = self.model.run(length)
        if found is None:
            self.model.rows = saved  # a group that is refused leaves nothing, not even the removal of what is overdue
            with self.refused(tenure.PoolExhausted):
                self.ledger.allocate_many("net", owner=owner, count=length, contiguous=True)
            return
        got = self.ledger.allocate_many("net", owner=owner, count=length, contiguous=True)
        assert [holding.address for holding in got] == found
        for number, address in enumerate(found):
            self._hold(address, owner, str(number), None, pending=False)

    def _repeated_run(self, owner: str, length: int, mine: list[str | None], saved: dict[str, Held]) -> None:
        runs = [[*pool[start : start + length]] for pool in (COOL, WARM) for start in range(len(pool))]
        whole = mine in runs and all(self.model.rows[address or ""].state == "held" for address in mine)
        if not whole:
            self.model.rows = saved
            with self.refused(tenure.Conflict):
                self.ledger.allocate_many("net", owner=owner, count=length, contiguous=True)
            return
        again = self.ledger.allocate_many("net", owner=owner, count=length, contiguous=True)
        assert [holding.address for holding in again] == mine

    @rule(address=addresses, owner=owners)
    def confirm(self, address: str, owner: str) -> None:
        row = self.model.held_for(address, owner)
        if row is None:
            with self.refused(tenure.NotFound):
                self.ledger.confirm("net", address, owner=owner)
        elif row.owner != owner:
            with self.refused(tenure.NotOwner):
                self.ledger.confirm("net", address, owner=owner)
        else:
            if row.state == "pending":
                row.state, row.until_us = "held", None
            assert self.ledger.confirm("net", address, owner=owner).state == row.state

    @rule(address=addresses, owner=owners, verb=st.sampled_from(["cancel", "release"]))
    def end(self, address: str, owner: str, verb: str) -> None:
        row, call = self.model.held_for(address, owner), getattr(self.ledger, verb)
        if row is None:
            before = self.ledger.last_change()
            assert call("net", address, owner=owner) is None
            assert self.ledger.last_change() == before
        elif row.owner != owner or (verb == "cancel" and row.state != "pending"):
            with self.refused(tenure.Conflict):
                call("net", address, owner=owner)
        else:
            assert call("net", address, owner=owner).state == row.state
            self._end(address)

    def _end(self, address: str) -> None:
        row = self.model.rows[address]
        if row.state != "pending" and address in COOL:
            row.state, row.until_us = "cooling", self.model.now_us + COOLS_S * SECOND
        else:
            del self.model.rows[address]

    @rule(owner=owners, key=st.none() | keys)
    def release_owner(self, owner: str, key: str | None) -> None:
        def ask() -> list[tenure.Holding]:
            return self.ledger.release_owner(owner, key=key)

        if key is not None and self._known(key, ("release", owner), ask):
            return
        mine = [a for a, row in self.model.rows.items() if row.owner == owner and row.state != "cooling"]
        got = ask()
        assert sorted(holding.address for holding in got) == sorted(mine)
        for address in mine:
            self._end(address)
        if key is not None:
            self.model.keys[key] = (self.model.now_us, ("release", owner), got)

    @rule(address=addresses, owner=owners, state=st.sampled_from(["held", "draining"]))
    def move(self, address: str, owner: str, state: str) -> None:
        row = self.model.held_for(address, owner)
        taken = self.model.mine(owner, row.slot) if row is not None else None
        if (
            row is None
            or row.owner != owner
            or row.state == "pending"
            or ((row.state, state) == ("draining", "held") and taken is not None)
        ):
            # A pending one becomes held by being confirmed only, so that is Invalid.
            with self.refused(tenure.NotFound, tenure.Conflict, tenure.Invalid):
                self.ledger.modify_holding("net", address, owner=owner, state=state)
            return
        row.state = state
        assert self.ledger.modify_holding("net", address, owner=owner, state=state).state == state

    @rule(one=addresses, other=addresses)
    def swap(self, one: str, other: str) -> None:
        rows = self.model.rows
        if one == other or any(a not in rows or rows[a].state not in ("pending", "held") for a in (one, other)):
            return
        pairs = [(one, rows[one], rows[other]), (other, rows[other], rows[one])]
        transfers = [
            tenure.Transfer(network="net", address=a, owner=row.owner, to=to.owner, to_slot=to.slot)
            for a, row, to in pairs
        ]
        if {one, other} & set(self.model.late()):
            with self.refused(tenure.NotFound):  # what is overdue is nobody's to hand on
                self.ledger.apply(transfers)
            return
        self.ledger.apply(transfers)
        for address, row, to in pairs:
            rows[address] = Held(to.owner, to.slot, row.state, row.until_us)

    @invariant()
    def the_ledger_is_what_the_model_says(self) -> None:
        held = self.store.books[1].rows.values()
        rows = {format_address(row.first): Held(row.owner, row.slot, row.state.value, row.until_us) for row in held}
        assert rows == self.model.rows

    @invariant()
    def what_is_overdue_is_shown_to_nobody(self) -> None:
        found = {h.address: Held(h.owner, h.slot, h.state.value, h.row.until_us) for h in self.ledger.holdings("net")}
        late = self.model.late()

        assert found == {address: row for address, row in self.model.rows.items() if address not in late}

    @invariant()
    def the_ledger_has_no_breaches(self) -> None:
        assert self.ledger.verify() == []


def test_the_ledger_in_time_does_what_the_model_does() -> None:
    run_state_machine_as_test(TimeMachine, settings=settings(max_examples=examples(1.5), stateful_step_count=40))
