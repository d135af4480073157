"""Addresses that a plan kept under another network's name: when it is taken back, they go back where they were.

The network may have other subnets by now, or be gone: then an address gets a block of its own there, as where a subnet
goes that it is held in.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tenure.integrations.bosh.planning.step_operations import MOVED_FROM
from tenure.integrations.bosh.running_vms.possible_addresses import PossibleAddress
from tenure.integrations.bosh.running_vms.reserve_running import operations_for
from tenure.integrations.bosh.state.instance_state import DeploymentInstance
from tenure.kernel.addressing.ranges import Cidr
from tenure.kernel.holdings.holding_model import Holding
from tenure.kernel.plan.plan_model import Network
from tenure.service.apply.operations import Expect, Operation


@dataclass(frozen=True, slots=True)
class LedgerNetworks:
    """The networks of the ledger, by name, and the space that they lie in."""

    networks: Mapping[str, Network]
    space: str


@dataclass(frozen=True, slots=True)
class Stray:
    """An address of an instance that is under another network's name, until the plan is done for it."""

    instance: DeploymentInstance
    held: Holding


def strays_of(instance: DeploymentInstance, plan: str) -> list[Stray]:
    """Return what goes back to another network if a plan is taken back for an instance."""
    if instance.former is None or instance.former["plan"] != plan:
        return []
    return [Stray(instance, each) for each in instance.holdings if MOVED_FROM in each.labels and each.plan is None]


def brought_home(strays: Iterable[Stray], ground: LedgerNetworks) -> list[Operation]:
    """Return the operations that reserve addresses where they were; they are free now."""
    networks = ground.networks
    founds = [_found(each, networks) for each in strays]
    touched = sorted({each.network for each in founds if each.network in networks})
    rests = [Expect(network=name, serial=networks[name].serial, uuid=networks[name].uuid) for name in touched]
    # The expectations stand first, because the edits behind them raise the serials.
    return [*rests, *operations_for(founds, networks, ground.space)]


def _found(stray: Stray, networks: Mapping[str, Network]) -> PossibleAddress:
    held = stray.held
    home, block = held.labels[MOVED_FROM], Cidr(held.row.first, held.unit)
    subnets = networks[home].subnets if home in networks else ()
    lies_in_one = any(each.cidr.range.covers(block.range) and not each.retired for each in subnets)
    return PossibleAddress(stray.instance, home, block, remnant=not lies_in_one, request=held.request)
