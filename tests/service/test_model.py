"""The ledger against a short model of it: dictionaries, and nothing clever.

Two networks share a space, so that they lie over each other. After every step the whole ledger must be what the
model says, ``lowest`` must have picked the first free address in written order, and asking again must change nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import tenure
from tests.profiles import examples

NETWORKS = ["n1", "n2"]
BLOCK = [f"10.0.0.{number}" for number in range(16)]
SUBNETS = {"low": BLOCK[:8], "high": BLOCK[8:]}
CIDRS = {"low": "10.0.0.0/29", "high": "10.0.0.8/29"}
OWNERS = ["pod/a", "pod/b", "pod/c", "pod/d", "pod/e"]
SLOTS = ["", "nic1"]

networks = st.sampled_from(NETWORKS)
owners = st.sampled_from(OWNERS)
slots = st.sampled_from(SLOTS)
addresses = st.sampled_from(BLOCK)
policies = st.sampled_from(["lowest", "random", "hashed", "sticky", None])
spans = st.tuples(st.integers(0, 15), st.integers(0, 15)).map(sorted).map(lambda pair: BLOCK[pair[0] : pair[1] + 1])


class Model:
    """What is planned and who holds what."""

    def __init__(self) -> None:
        self.subnets: dict[str, list[str]] = {}
        self.pools: dict[str, dict[str, list[list[str]]]] = {}
        self.reserved: dict[str, set[str]] = {}
        self.retired: set[str] = set()
        self.held: dict[str, tuple[str, str, str]] = {}

    def network_of(self, network: str) -> set[str]:
        """Return the addresses of a network's subnets."""
        return {address for name in self.subnets.get(network, ()) for address in SUBNETS[name]}

    def away(self) -> set[str]:
        """Return what is kept away from picking, in the whole space."""
        return {address for kept in self.reserved.values() for address in kept}

    def line(self, network: str) -> list[str]:
        """List what may be picked, in written order of subnets, pools and ranges."""
        if network in self.retired:
            return []
        written = (pool for name in self.subnets[network] for pool in self.pools[network].get(name, []))
        return [address for pool in written for address in pool if address not in self.away()]

    def free(self, network: str) -> list[str]:
        """List what is free on the line."""
        return [address for address in self.line(network) if address not in self.held]

    def holding(self, network: str, owner: str, slot: str) -> str | None:
        """Return the address that an owner's slot holds."""
        return next((a for a, who in self.held.items() if who == (network, owner, slot)), None)

    def pooled(self, network: str) -> list[str]:
        """List what lies in pools, whatever is kept away."""
        return [a for pools in self.pools[network].values() for pool in pools for a in pool]


@contextmanager
def nothing_changes(ledger: tenure.Ledger) -> Iterator[None]:
    """Check that what is done inside leaves no entry in the log."""
    before = ledger.last_change()
    yield
    assert ledger.last_change() == before


@contextmanager
def refused(ledger: tenure.Ledger, *kinds: type[tenure.TenureError]) -> Iterator[None]:
    """Check that what is done inside is refused, without a trace."""
    with nothing_changes(ledger), pytest.raises(kinds):
        yield


class LedgerMachine(RuleBasedStateMachine):
    """Do to the ledger what is done to the model."""

    url = staticmethod(lambda: "memory:")

    @initialize()
    def begin(self) -> None:
        self.ledger = tenure.open(self.url())
        self.model = Model()
        for network in NETWORKS:
            self.add_network(network)
            self.add_subnet(network, "low")
        self.add_pool("n1", BLOCK[2:7])

    def teardown(self) -> None:
        self.ledger.close()

    @rule(network=networks)
    def add_network(self, network: str) -> None:
        if network in self.model.subnets:
            with refused(self.ledger, tenure.AlreadyExists):
                self.ledger.add_network(network, space="site")
            return
        self.ledger.add_network(network, space="site")
        self.model.subnets[network], self.model.pools[network] = [], {}

    @rule(network=networks, cascade=st.booleans())
    def remove_network(self, network: str, cascade: bool) -> None:
        model = self.model
        mine = [address for address, who in model.held.items() if who[0] == network]
        if network not in model.subnets:
            with refused(self.ledger, tenure.NotFound):
                self.ledger.remove_network(network, cascade=cascade)
        elif mine and not cascade:
            with refused(self.ledger, tenure.StillInUse):
                self.ledger.remove_network(network)
        else:
            self.ledger.remove_network(network, cascade=cascade)
            self._forget(network, mine)
            del model.subnets[network], model.pools[network]
            model.retired.discard(network)

    def _forget(self, network: str, released: list[str]) -> None:
        for address in released:
            del self.model.held[address]
        for key in [key for key in self.model.reserved if key.startswith(network)]:
            if key == network or key.startswith(f"{network}/"):
                del self.model.reserved[key]

    @rule(network=networks, subnet=st.sampled_from(list(SUBNETS)))
    def add_subnet(self, network: str, subnet: str) -> None:
        if network not in self.model.subnets:
            with refused(self.ledger, tenure.NotFound):
                self.ledger.add_subnet(network, CIDRS[subnet])
        elif subnet in self.model.subnets[network]:
            with refused(self.ledger, tenure.AlreadyExists, tenure.Overlap):
                self.ledger.add_subnet(network, CIDRS[subnet], name=subnet, keep_back=[])
        else:
            self.ledger.add_subnet(network, CIDRS[subnet], name=subnet, keep_back=[])
            self.model.subnets[network].append(subnet)

    @rule(network=networks, subnet=st.sampled_from(list(SUBNETS)), cascade=st.booleans())
    def remove_subnet(self, network: str, subnet: str, cascade: bool) -> None:
        model = self.model
        mine = [a for a in SUBNETS[subnet] if a in model.held and model.held[a][0] == network]
        if subnet not in model.subnets.get(network, ()):
            with refused(self.ledger, tenure.NotFound):
                self.ledger.remove_subnet(network, subnet, cascade=cascade)
        elif mine and not cascade:
            with refused(self.ledger, tenure.StillInUse):
                self.ledger.remove_subnet(network, subnet)
        else:
            self.ledger.remove_subnet(network, subnet, cascade=cascade)
            for address in mine:
                del model.held[address]
            model.subnets[network].remove(subnet)
            model.pools[network].pop(subnet, None)
            model.reserved.pop(f"{network}/{subnet}", None)

    def _subnet_around(self, network: str, span: list[str]) -> str | None:
        return next((s for s in self.model.subnets.get(network, ()) if set(span) <= set(SUBNETS[s])), None)

    @rule(network=networks, span=spans)
    def add_pool(self, network: str, span: list[str]) -> None:
        text, subnet = f"{span[0]}-{span[-1]}", self._subnet_around(network, span)
        if subnet is None:
            with refused(self.ledger, tenure.NotFound):
                self.ledger.add_pool(network, text)
        elif set(span) & set(self.model.pooled(network)):
            with refused(self.ledger, tenure.Overlap):
                self.ledger.add_pool(network, text)
        else:
            self.ledger.add_pool(network, text)
            self.model.pools[network].setdefault(subnet, []).append(span)

    @rule(network=networks, span=spans)
    def remove_pool(self, network: str, span: list[str]) -> None:
        text = f"{span[0]}-{span[-1]}"
        if not set(span) & set(self.model.pooled(network) if network in self.model.pools else ()):
            with refused(self.ledger, tenure.NotFound):
                self.ledger.remove_pool(network, text)
            return
        self.ledger.remove_pool(network, text)
        for subnet, pools in self.model.pools[network].items():
            pieces = (piece for pool in pools for piece in _without(pool, span))
            self.model.pools[network][subnet] = [piece for piece in pieces if piece]

    @rule(network=networks, span=spans)
    def reserve(self, network: str, span: list[str]) -> None:
        subnet = self._subnet_around(network, span)
        if subnet is None:
            with refused(self.ledger, tenure.NotFound):
                self.ledger.reserve(network, f"{span[0]}-{span[-1]}")
            return
        self.ledger.reserve(network, f"{span[0]}-{span[-1]}")
        self.model.reserved.setdefault(f"{network}/{subnet}", set()).update(span)

    @rule(network=networks, span=spans)
    def unreserve(self, network: str, span: list[str]) -> None:
        kept = self.model.reserved.get(f"{network}/{self._subnet_around(network, span)}", set())
        if not kept & set(span):
            with refused(self.ledger, tenure.NotFound):
                self.ledger.unreserve(network, f"{span[0]}-{span[-1]}")
            return
        self.ledger.unreserve(network, f"{span[0]}-{span[-1]}")
        kept.difference_update(span)

    @precondition(lambda self: self.model.subnets)
    @rule(data=st.data(), retired=st.booleans())
    def retire(self, data: st.DataObject, retired: bool) -> None:
        network = data.draw(st.sampled_from(sorted(self.model.subnets)))
        self.ledger.modify_network(network, retired=retired)
        (self.model.retired.add if retired else self.model.retired.discard)(network)

    @rule(network=networks, owner=owners, slot=slots, policy=policies)
    def allocate(self, network: str, owner: str, slot: str, policy: str | None) -> None:
        model = self.model
        held = model.holding(network, owner, slot)
        if held is not None:
            with nothing_changes(self.ledger):
                assert self.ledger.allocate(network, owner=owner, slot=slot, policy=policy).address == held
        elif network not in model.subnets or not model.pooled(network):
            with refused(self.ledger, tenure.NotFound):
                self.ledger.allocate(network, owner=owner, slot=slot, policy=policy)
        elif not model.free(network):
            with refused(self.ledger, tenure.PoolExhausted):
                self.ledger.allocate(network, owner=owner, slot=slot, policy=policy)
        else:
            got = self.ledger.allocate(network, owner=owner, slot=slot, policy=policy, labels={"by": owner})
            assert got.address in (model.free(network)[:1] if policy in (None, "lowest") else model.free(network))
            assert (got.labels, got.state, got.owner, got.slot) == ({"by": owner}, "held", owner, slot)
            model.held[got.address] = (network, owner, slot)

    @rule(network=networks, owner=owners, slot=slots, address=addresses, reach=st.sampled_from(["refuse", "allow"]))
    def allocate_named(self, network: str, owner: str, slot: str, address: str, reach: str) -> None:
        errors = self._named_refusals(network, owner, slot, address, reach)
        wish = tenure.Allocate(network=network, owner=owner, slot=slot, address=address, reserved=reach)
        if errors:
            with refused(self.ledger, *errors):
                self.ledger.allocate(network, owner=owner, slot=slot, address=address, reserved=reach)
            with refused(self.ledger, *errors):
                self.ledger.apply([wish])
            return
        self.ledger.allocate(network, owner=owner, slot=slot, address=address, reserved=reach)
        self.model.held[address] = (network, owner, slot)
        with nothing_changes(self.ledger):
            self.ledger.apply([wish])

    def _named_refusals(
        self, network: str, owner: str, slot: str, address: str, reach: str
    ) -> tuple[type[tenure.TenureError], ...]:
        model = self.model
        if address not in model.network_of(network):
            # A network that is not there; or an owner who holds another address, which may be told instead.
            return (tenure.NotFound, tenure.AddressOutsideSubnet, tenure.AlreadyExists)
        kept = network in model.retired or (reach == "refuse" and address in model.away())
        held = model.holding(network, owner, slot)
        if held == address:  # the same request again, whatever was planned since
            return ()
        if kept or held is not None:
            return (tenure.AddressReserved, tenure.AlreadyExists)
        return (tenure.AddressInUse,) if address in model.held else ()

    @rule(network=networks, some=st.lists(owners, min_size=1, max_size=4))
    def allocate_many(self, network: str, some: list[str]) -> None:
        model = self.model
        new = [owner for owner in dict.fromkeys(some) if model.holding(network, owner, "") is None]
        if network not in model.subnets or (new and not model.pooled(network)):
            with refused(self.ledger, tenure.NotFound):
                self.ledger.allocate_many(network, owners=some)
            return
        free = model.free(network) if new else []
        if len(free) < len(new):
            with refused(self.ledger, tenure.PoolExhausted):
                self.ledger.allocate_many(network, owners=some)
            return
        model.held.update((address, (network, owner, "")) for address, owner in zip(free, new, strict=False))
        got = self.ledger.allocate_many(network, owners=some)
        assert [holding.address for holding in got] == [model.holding(network, owner, "") for owner in some]
        with nothing_changes(self.ledger):
            self.ledger.allocate_many(network, owners=some)

    @rule(network=networks, address=addresses, owner=owners)
    def release(self, network: str, address: str, owner: str) -> None:
        who = self.model.held.get(address)
        if address not in self.model.network_of(network):
            with refused(self.ledger, tenure.NotFound, tenure.AddressOutsideSubnet):
                self.ledger.release(network, address, owner=owner)
        elif who is None:
            with nothing_changes(self.ledger):
                assert self.ledger.release(network, address, owner=owner) is None
        elif who[:2] != (network, owner):
            with refused(self.ledger, tenure.NotOwner, tenure.NotFound):
                self.ledger.release(network, address, owner=owner)
        else:
            held = self.ledger.holding(network, address)
            with refused(self.ledger, tenure.Conflict):
                self.ledger.release(network, address, owner=owner, generation=held.generation + 1)
            assert self.ledger.release(network, address, owner=owner, generation=held.generation) == held
            del self.model.held[address]

    @rule(owner=owners)
    def release_owner(self, owner: str) -> None:
        mine = {address for address, who in self.model.held.items() if who[1] == owner}

        assert {holding.address for holding in self.ledger.release_owner(owner)} == mine
        for address in mine:
            del self.model.held[address]
        with nothing_changes(self.ledger):
            assert self.ledger.release_owner(owner) == []

    @precondition(lambda self: self.model.held)
    @rule(data=st.data(), to=owners, slot=slots)
    def transfer(self, data: st.DataObject, to: str, slot: str) -> None:
        address = data.draw(st.sampled_from(sorted(self.model.held)))
        network, owner, old_slot = self.model.held[address]
        if self.model.holding(network, to, slot) is not None and (to, slot) != (owner, old_slot):
            with refused(self.ledger, tenure.AlreadyExists):
                self.ledger.transfer(network, address, owner=owner, to=to, to_slot=slot)
            return
        got = self.ledger.transfer(network, address, owner=owner, to=to, to_slot=slot)
        assert (got.address, got.owner, got.slot) == (address, to, slot)
        self.model.held[address] = (network, to, slot)

    @precondition(lambda self: self.model.held)
    @rule(data=st.data(), owner=owners, fail=st.booleans())
    def swap_in_one_group(self, data: st.DataObject, owner: str, fail: bool) -> None:
        """Release and grant as one: the address passes on, or nothing happens at all."""
        address = data.draw(st.sampled_from(sorted(self.model.held)))
        network, old, _ = self.model.held[address]
        blocked = network in self.model.retired or address in self.model.away()
        other = self.model.holding(network, owner, "")
        group: list[tenure.Release | tenure.Allocate] = [
            tenure.Release(network=network, address=address, owner=old),
            tenure.Allocate(network=network, owner=owner, address=address),
        ]
        if fail:
            group.append(tenure.Allocate(network=network, owner=owner, slot="x", address=address))
        if fail or blocked or other not in (None, address):
            with refused(self.ledger, tenure.Conflict):
                self.ledger.apply(group)
            return
        released, granted = self.ledger.apply(group)
        assert isinstance(released, tenure.Holding)
        assert isinstance(granted, tenure.Holding)
        assert (released.owner, granted.owner, granted.address) == (old, owner, address)
        self.model.held[address] = (network, owner, "")

    @invariant()
    def the_ledger_is_what_the_model_says(self) -> None:
        every = [holding for network in self.model.subnets for holding in self.ledger.holdings(network)]

        assert {h.address: (h.network, h.owner, h.slot) for h in every} == self.model.held
        assert len(every) == len({h.address for h in every}) == len({(h.network, h.owner, h.slot) for h in every})

    @invariant()
    def the_ledger_has_no_breaches(self) -> None:
        assert self.ledger.verify() == []


def _without(pool: list[str], hole: list[str]) -> tuple[list[str], list[str]]:
    below = [a for a in pool if BLOCK.index(a) < BLOCK.index(hole[0])]
    above = [a for a in pool if BLOCK.index(a) > BLOCK.index(hole[-1])]
    return below, above


def test_the_ledger_in_memory_does_what_the_model_does() -> None:
    run_state_machine_as_test(LedgerMachine, settings=settings(max_examples=examples(1), stateful_step_count=30))


def test_the_ledger_in_a_file_does_what_the_model_does() -> None:
    numbers = count()
    with TemporaryDirectory() as folder:

        class FileMachine(LedgerMachine):
            url = staticmethod(lambda: f"sqlite:///{Path(folder)}/{next(numbers)}.db")

        run_state_machine_as_test(FileMachine, settings=settings(max_examples=examples(0.2), stateful_step_count=25))
