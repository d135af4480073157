"""The pools of files: which address the operator would give a machine that comes next."""

from collections.abc import Sequence

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import field, text
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec, read_pool_spec
from tenure.integrations.kubernetes.metal3_data.offline.object_files import (
    FiledObjects,
    Object,
    name_of,
    refused_object,
)
from tenure.integrations.kubernetes.metal3_data.template.machine_facts import PoolAddress
from tenure.integrations.kubernetes.metal3_data.template.needed_addresses import DATA_LABEL, NeededAddress
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.errors import Invalid, NotFound
from tenure.kernel.names import shown
from tenure.kernel.picking.policies import POLICIES

ADDRESS = "IPAddress"


class FiledPools:
    """Pools, and who holds which of their addresses: by objects in the files, or by picks for this machine."""

    def __init__(self, files: FiledObjects) -> None:
        self._files = files
        self._held: dict[str, dict[int, str]] = {}
        """The claims of held addresses, by pool and position."""
        self.notes: list[str] = []

    def claim_of(self, needed: NeededAddress, names: Sequence[str], data: str) -> str:
        """Return under which of its names a claim has an address in the files; the first if under none.

        The host may have had another machine, whose Metal3Data the claim's label names.
        """
        found = [each for each in self._files.of_kind(ADDRESS) if _reference(each, "pool") == needed.pool.name]
        own = [each for each in found if text(each, "metadata", "labels", DATA_LABEL) in ("", data)]
        held = {_reference(each, "claim") for each in own}
        return next((name for name in names if name in held), names[0])

    def keep(self, needed: NeededAddress, claim: str, address: str) -> None:
        """Keep an address that somebody chose for a claim from being picked; refuse one that another claim holds."""
        pool = needed.pool.name
        holder = self._held_of(pool).setdefault(parse_address(address), claim)
        if holder != claim:
            reason = f"{address} is for claim {claim!r:.80}, and claim {holder!r:.80} holds it"
            raise Invalid(f"pool {pool!r:.80}: {reason}", field="pool")

    def address_for(self, needed: NeededAddress, claim: str) -> PoolAddress:
        """Return the address of a claim: that of its object, else a fixed one, else the first that is free."""
        name = needed.pool.name
        found = [
            each
            for each in self._files.of_kind(ADDRESS)
            if (_reference(each, "claim"), _reference(each, "pool")) == (claim, name)
        ]
        if len(found) > 1:
            names = ", ".join(name_of(each) for each in found)
            raise Invalid(f"files: claim {claim!r:.80} has several addresses: {names}", field="files")
        return _address_of(found[0]) if found else self._pick(needed, claim, self._spec(needed))

    def _spec(self, needed: NeededAddress) -> PoolSpec:
        name = needed.pool.name
        what = needed.pool.kind if needed.pool.is_ip_pool else f"{ADDRESS} of its claim"
        hint = f"give it with --pool {needed.suffix}=ADDRESS/PREFIX, or put the {what} into the files"
        pool = self._files.named(needed.pool.kind, name) if needed.pool.is_ip_pool else None
        if pool is None:
            raise NotFound("pool", name, problem=f"{needed.pool.path}: there is no pool {name!r}", hint=hint)
        spec, faults = read_pool_spec(pool.get("spec"))
        if faults:
            raise refused_object(pool, faults[0].field, faults[0].reason)
        if spec.ledger is not None:
            choice = f"--pool {needed.suffix}=ledger:{spec.ledger.network}"
            raise refused_object(pool, "spec.tenure.ledger", f"its addresses are in a ledger: give one with {choice}")
        if spec.external:
            raise refused_object(pool, "spec.tenure.external", f"others make its addresses: {hint.partition(',')[0]}")
        return spec

    def _pick(self, needed: NeededAddress, claim: str, spec: PoolSpec) -> PoolAddress:
        pool = needed.pool.name
        held = self._held_of(pool)
        position = spec.pre_allocations.get(claim)
        if position is None:
            position = _first_free(spec, held, pool)
            if POLICIES[spec.policy].striped:
                self.notes.append(f"pool {pool!r} picks at random: {format_address(position)} is an example")
        else:
            self._check_fixed(position, claim, pool, held, spec)
        held[position] = claim
        options = spec.options_at(position)
        return PoolAddress(format_address(position), options.prefix, options.gateway, options.dns_servers)

    def _check_fixed(self, position: int, claim: str, pool: str, held: dict[int, str], spec: PoolSpec) -> None:
        """Refuse a fixed address that another claim holds; note one that the operator gives only by option (A10)."""
        address = format_address(position)
        if position in held:
            reason = f"{address} is fixed for claim {claim!r}, and claim {held[position]!r} holds it"
            raise Invalid(f"pool {pool!r}: {reason}", field=f"spec.preAllocations.{claim}")
        if spec.entry_at(position) is None and spec.allows_outside is not True:
            self.notes.append(
                f"pool {pool!r}: {address} is fixed, but outside the ranges: the operator gives it only with"
                " spec.tenure.outsidePreAllocations: allow"
            )

    def _held_of(self, pool: str) -> dict[int, str]:
        if pool not in self._held:
            found = [each for each in self._files.of_kind(ADDRESS) if _reference(each, "pool") == pool]
            self._held[pool] = {parse_address(_address_of(each).address): _reference(each, "claim") for each in found}
        return self._held[pool]


def _first_free(spec: PoolSpec, held: dict[int, str], pool: str) -> int:
    """Return the first address that nobody holds. O(held), since at most so many are passed over."""
    for run in spec.runs():
        for piece in run:
            for position in range(piece.first, piece.last + 1):
                if position not in held:
                    return position
    raise Invalid(f"pool {pool!r}: Exhausted IP Pools", field="pool")


def _reference(address: Object, part: str) -> str:
    """Return the name that an IPAddress gives its claim or pool; Cluster API's kind spells it otherwise."""
    return text(address, "spec", part, "name") or text(address, "spec", f"{part}Ref", "name")


def _address_of(object: Object) -> PoolAddress:
    """Return the address that an object is, with what comes with it."""
    prefix = field(object, "spec", "prefix") or 0
    if not isinstance(prefix, int) or isinstance(prefix, bool):
        raise refused_object(object, "spec.prefix", f"must be a whole number, not {shown(prefix)}")
    servers = field(object, "spec", "dnsServers") or []
    if not isinstance(servers, list):
        raise refused_object(object, "spec.dnsServers", f"must be a list, not {shown(servers)}")
    return PoolAddress(
        _checked_address(object, "spec.address", field(object, "spec", "address")),
        prefix,
        _checked_address(object, "spec.gateway", gateway) if (gateway := field(object, "spec", "gateway")) else "",
        tuple(_checked_address(object, f"spec.dnsServers[{place}]", each) for place, each in enumerate(servers)),
    )


def _checked_address(object: Object, path: str, value: object) -> str:
    try:
        if isinstance(value, str):
            return format_address(parse_address(value))
    except Invalid:
        pass
    raise refused_object(object, path, f"must be an IP address, not {shown(value)}")
