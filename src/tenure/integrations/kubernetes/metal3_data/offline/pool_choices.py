"""What options say of a machine's addresses: they are named, or held in a network of a ledger."""

from collections.abc import Iterable
from dataclasses import dataclass

from tenure.integrations.kubernetes.metal3_data.template.machine_facts import PoolAddress
from tenure.kernel.addressing.addresses import format_address, parse_address, parse_unit, width
from tenure.kernel.errors import Invalid, NotFound
from tenure.service.ledger.async_ledger import AsyncLedger

LEDGER = "ledger:"
"""What begins the choice of a network of the ledger."""


@dataclass(frozen=True)
class LedgerNetwork:
    """A network of the ledger in which the machine holds an address."""

    name: str


PoolChoice = PoolAddress | LedgerNetwork


def read_choices(pairs: Iterable[str]) -> dict[str, PoolChoice]:
    """Read what options say of pools: ``NAME=ADDRESS/PREFIX,gateway=…,dns=…``, or ``NAME=ledger:NETWORK``."""
    found: dict[str, PoolChoice] = {}
    for pair in pairs:
        name, equals, said = pair.partition("=")
        if not (name and equals and said.removeprefix(LEDGER)):
            raise Invalid(
                f"pool: {pair!r:.80} is not of the form NAME=ADDRESS/PREFIX or NAME=ledger:NETWORK", field="pool"
            )
        if name in found:
            raise Invalid(f"pool: {name!r:.80} is given twice", field="pool")
        found[name] = LedgerNetwork(said.removeprefix(LEDGER)) if said.startswith(LEDGER) else _read_address(said)
    return found


def _read_address(said: str) -> PoolAddress:
    written, *more = said.split(",")
    position, prefix = parse_unit(written, field="pool")
    gateways: list[str] = []
    servers: list[str] = []
    for word in more:
        name, _, value = word.partition("=")
        if name not in ("gateway", "dns"):
            raise Invalid(f"pool: {word!r:.80} is neither gateway=ADDRESS nor dns=ADDRESS", field="pool")
        (gateways if name == "gateway" else servers).append(format_address(parse_address(value, field="pool")))
    if len(gateways) > 1:
        raise Invalid("pool: a pool has one gateway", field="pool")
    prefix = width(position) if prefix is None else prefix
    return PoolAddress(format_address(position), prefix, "".join(gateways), tuple(servers))


async def address_in_ledger(ledger: AsyncLedger, network: str, owner: str, slot: str) -> PoolAddress:
    """Return the address that an owner holds in a network, with what its subnet says."""
    held = [each for each in await ledger.holdings(network, owner=owner) if each.slot == slot]
    single = [each for each in held if each.row.first == each.row.last]
    if not single:
        hint = f"`tenure allocate {network} {owner}{f' --slot {slot}' if slot else ''}` gives it one"
        problem = f"{owner} holds no address in network {network!r}"
        raise NotFound("holding", owner, network=network, problem=problem, hint=hint)
    if len(single) > 1:
        found = ", ".join(each.address for each in single)
        raise Invalid(f"pool: {owner} holds several addresses in network {network!r}: {found}", field="pool")
    (holding,) = single
    subnets = (await ledger.network(network)).subnets
    servers = next((each.dns for each in subnets if each.cidr.first <= holding.row.first <= each.cidr.last), ())
    return PoolAddress(holding.address, holding.prefix, holding.gateway or "", tuple(servers))
