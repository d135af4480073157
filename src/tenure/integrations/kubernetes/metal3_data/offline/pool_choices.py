"""Where the addresses of a machine come from without a cluster: options, a ledger, or pools in files."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec, read_pool_spec
from tenure.integrations.kubernetes.metal3_data.offline.object_files import FiledObjects, name_of
from tenure.integrations.kubernetes.metal3_data.template.machine_facts import PoolAddress
from tenure.integrations.kubernetes.metal3_data.template.needed_addresses import NeededAddress
from tenure.kernel.addressing.addresses import format_address, parse_address, parse_unit, width
from tenure.kernel.errors import Invalid, NotFound
from tenure.kernel.picking.policies import POLICIES
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
        if not (name and equals and said):
            raise Invalid(f"pool: {pair!r:.80} is not of the form NAME=ADDRESS/PREFIX", field="pool")
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


class FiledPools:
    """The pools of files: which address an operator would give a machine that comes next."""

    def __init__(self, files: FiledObjects) -> None:
        self._files = files
        self._given: dict[str, set[int]] = {}
        """Addresses of each pool that are held, by objects in the files or by picks for this machine."""
        self.notes: list[str] = []

    def address_for(self, needed: NeededAddress, claim: str) -> PoolAddress:
        """Return the address of a claim: that of its object, else a fixed one, else the first that is free."""
        name = needed.pool.name
        for address in self._files.of_kind("IPAddress"):
            spec = address.get("spec") or {}
            if _reference(spec, "claim") == claim and _reference(spec, "pool") == name:
                return _of_object(spec, name_of(address))
        pool = self._files.named(needed.pool.kind, name) if needed.pool.is_ip_pool else None
        if pool is None:
            hint = f"give it with --pool {needed.suffix}=ADDRESS/PREFIX, or put the {needed.pool.kind} into the files"
            raise NotFound("pool", name, problem=f"{needed.pool.path}: there is no pool {name!r}", hint=hint)
        spec, faults = read_pool_spec(pool.get("spec"))
        if faults:
            raise Invalid(f"pool {name!r}: {faults[0]}", field=faults[0].field)
        return self._pick(spec, name, claim)

    def _pick(self, spec: PoolSpec, pool: str, claim: str) -> PoolAddress:
        held = self._given.setdefault(pool, self._held(pool))
        position = spec.pre_allocations.get(claim)
        if position is None:
            position = _first_free(spec, held)
            if POLICIES[spec.policy].striped:
                self.notes.append(f"pool {pool!r} picks at random: {format_address(position)} is an example")
        held.add(position)
        options = spec.options_at(position)
        return PoolAddress(format_address(position), options.prefix, options.gateway, options.dns_servers)

    def _held(self, pool: str) -> set[int]:
        specs = [each.get("spec") or {} for each in self._files.of_kind("IPAddress")]
        return {parse_address(str(each.get("address"))) for each in specs if _reference(each, "pool") == pool}


def _first_free(spec: PoolSpec, held: set[int]) -> int:
    """Return the first address that nobody holds. O(held), since at most so many are passed over."""
    for run in spec.runs():
        for piece in run:
            for position in range(piece.first, piece.last + 1):
                if position not in held:
                    return position
    raise Invalid("pool: Exhausted IP Pools", field="pool")


def _reference(spec: Mapping[str, Any], part: str) -> str:
    """Return the name that an IPAddress gives its claim or pool; Cluster API's kind spells it otherwise."""
    reference = spec.get(part) or spec.get(f"{part}Ref") or {}
    return str(reference.get("name") or "")


def _of_object(spec: Mapping[str, Any], name: str) -> PoolAddress:
    address = format_address(parse_address(str(spec.get("address")), field=f"IPAddress {name}"))
    servers = tuple(str(each) for each in spec.get("dnsServers") or ())
    return PoolAddress(address, int(spec.get("prefix") or 0), str(spec.get("gateway") or ""), servers)
