"""Hand-over inside one plan: what an instance gives up may be promised to another of the same deployment.

Where no VM carries the address, and none is perhaps being made on it, it changes hands in the plan's own ``apply``.
Else whoever is to get it waits, and gets it in the very ``apply`` that reports the old VM replaced or gone, or the new
one not made: in between nobody else can have it. Pure: steps and what they give up go in, steps come out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tenure.integrations.bosh.cloud_config.site_survey import Orphan
from tenure.integrations.bosh.model.address_diff import Has, Wants, fits
from tenure.integrations.bosh.model.document_model import CloudConfig
from tenure.integrations.bosh.planning.step_operations import given_up_by, is_free
from tenure.integrations.bosh.planning.steps import Promise, Step
from tenure.integrations.bosh.state.instance_state import Place, place_of
from tenure.service.apply.operations import Allocate


@dataclass(slots=True)
class Offers:
    """What a plan gives up and is promised to nobody yet, by network and position; free ones first, then by address.

    ``slow`` are those that go to an orphaned VM first. They are promised only to whoever names them: two instances that
    are swapped could else wait for each other, and for both VMs to be deleted.
    """

    config: CloudConfig
    left: dict[Place, Promise] = field(default_factory=dict)
    slow: frozenset[Place] = frozenset()

    def positions(self, network: str) -> set[int]:
        """Return what is on offer in a network."""
        return {position for name, position in self.left if name == network}

    def take_named(self, step: Step, wish: Wants, position: int) -> Promise | None:
        """Promise an address to an instance; None if it is not on offer, or does not fit."""
        return self._taken(step, wish, [self.left[place]] if (place := (wish.network, position)) in self.left else [])

    def take_any(self, step: Step, wish: Wants) -> Promise | None:
        """Promise the first address that fits to an instance; None if there is none."""
        return self._taken(step, wish, (each for each in self.left.values() if each.place not in self.slow))

    def _taken(self, step: Step, wish: Wants, some: Iterable[Promise]) -> Promise | None:
        found = next((each for each in some if self._fits(step, wish, each)), None)
        return None if found is None else self.left.pop(found.place)

    def _fits(self, step: Step, wish: Wants, promise: Promise) -> bool:
        held, network = promise.held, self.config.networks[wish.network]
        if held.network != wish.network or held.owner == step.instance.owner:
            return False
        has = Has(held.network, held.row.first, held.unit)
        return fits(network, step.instance.az, has, wish)


def offers_of(steps: Sequence[Step], orphans: Iterable[Orphan], config: CloudConfig) -> Offers:
    """Collect what steps give up, and what orphaned VMs of the deployment still have."""
    given_up = [(step, held) for step in steps for held in given_up_by(step)]
    offers = [Promise(held, step.instance.name, is_free(step, held)) for step, held in given_up]
    offers += [Promise(held, f"VM {each.vm}", False) for each in orphans for held in each.holdings]
    slow = {place_of(held) for step, held in given_up if step.swaps and held.carrier is not None}
    ordered = sorted(offers, key=lambda each: (not each.now, each.place))
    return Offers(config, {each.place: each for each in ordered}, frozenset(slow))


def promised(steps: Sequence[Step], offers: Offers, vips: Mapping[tuple[str, str], int]) -> list[Step]:
    """Promise what steps ask for by address, or have chosen from a VIP pool, and others give up."""
    return [_promised(step, offers, _named(step, vips)) for step in steps]


def _named(step: Step, vips: Mapping[tuple[str, str], int]) -> Iterator[tuple[Wants, int]]:
    for wish in step.bound.new:
        position = vips.get((step.instance.uuid, wish.network)) if wish.address is None else wish.address
        if position is not None:
            yield wish, position


def _promised(step: Step, offers: Offers, named: Iterable[tuple[Wants, int]]) -> Step:
    for wish, position in named:
        step = _with(step, offers.take_named(step, wish, position))
    return step


def _with(step: Step, promise: Promise | None) -> Step:
    if promise is None or step.after is None:
        return step
    held = promise.held
    waits = () if promise.now else ({"network": held.network, "address": held.address, "of": promise.of},)
    after = replace(step.after, waits=(*step.after.waits, *waits))
    return replace(step, after=after, gets=(*step.gets, promise))


def promised_instead(
    steps: Sequence[Step], offers: Offers, takes: Sequence[tuple[Step, Allocate]], first: int
) -> list[Step] | None:
    """Promise to whom the ledger has no room for, and to all like it that come later; None if nothing fits it.

    They draw from the same pools in the same order: where it found nothing, they would find nothing either.
    """
    network, zone = takes[first][1].network, takes[first][1].zone
    picks = (step for step, take in takes[first:] if (take.network, take.zone, take.address) == (network, zone, None))
    unserved = {step.instance.uuid for step in picks}
    done = [_served(step, offers, network) if step.instance.uuid in unserved else step for step in steps]
    who = takes[first][0].instance.uuid
    return done if any(step.instance.uuid == who and not step.takes(network) for step in done) else None


def _served(step: Step, offers: Offers, network: str) -> Step:
    wish = next(each for each in step.bound.new if each.network == network)
    return _with(step, offers.take_any(step, wish))
