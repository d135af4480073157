"""What people said of a network by hand, in the ledger itself: an upload keeps it, as far as it still has a place.

Ranges that were reserved by hand stay reserved. Subnets keep their names and notes, pools how they pick and cool. Which
addresses there are, and which of them may be picked, is what the cloud config says.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tenure.integrations.bosh.cloud_config.ledger_networks import Block, blocks_in
from tenure.integrations.bosh.cloud_config.remnants import shared
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, BoshFault
from tenure.kernel.addressing.ranges import merge, subtract
from tenure.kernel.plan import plan_model as ledgers
from tenure.kernel.plan.plan_model import Reserved


def kept_by_hand(blocks: Iterable[Block], present: ledgers.Network | None) -> list[Block]:
    """Return blocks with what people reserved there."""
    made = _made(present)
    return [_with(block, made) for block in blocks] if made else list(blocks)


def _made(network: ledgers.Network | None) -> list[Reserved]:
    return [] if network is None else [each for block in blocks_in(network) for each in block.by_hand]


def _with(block: Block, made: Sequence[Reserved]) -> Block:
    own = [replace(each, range=piece) for each in made if (piece := shared(block.cidr.range, each.range)) is not None]
    return replace(block, by_hand=tuple(own))


def lost_by_hand(name: str, present: ledgers.Network | None, blocks: Sequence[Block]) -> list[BoshFault]:
    """Tell what people reserved in a network and no block has room for any more."""
    covers = merge(block.cidr.range for block in blocks)
    lost = [piece for each in _made(present) for piece in subtract(each.range, covers)]
    told = f"of network '{name}' was reserved by hand, and is in no subnet any more: nobody keeps it back"
    return [BoshFault(BoshErrorKind.GENERIC, f"Range '{piece}' {told}") for piece in lost]
