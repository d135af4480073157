"""An instance's NICs as a command will leave them: what is kept, what is taken, what goes from one to another.

Pure: it is given the NICs, the networks and names for new slots, and reads nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from tenure.integrations.ganeti.instance_records import rewired
from tenure.integrations.ganeti.machine_model import DEFAULT_LINK, DEFAULT_MAC_PREFIX, DEFAULT_MODE, Nic, NicIp
from tenure.integrations.ganeti.options.nic_drafts import NicDraft
from tenure.integrations.ganeti.options.nic_grammar import NicWish
from tenure.integrations.ganeti.options.option_errors import blamed
from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.errors import AddressInUse, AddressOutsideSubnet, AlreadyExists, Invalid, NotFound
from tenure.kernel.plan.edits import Keep
from tenure.kernel.plan.plan_model import Network

TO_MAKE_UP = ""
"""The MAC of a NIC for which one is still to be made up."""


@dataclass(frozen=True, slots=True)
class Take:
    """An address that a NIC is to get in a network (its uuid): this one, or the next of a pool, or of any pool."""

    network: str
    slot: str
    address: str | None = None
    pool: str | None = None
    option: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """An instance's NICs as they will be, the option that says so of each, and the addresses to take for them."""

    nics: tuple[Nic, ...]
    options: tuple[str, ...]
    takes: tuple[Take, ...] = ()


@dataclass(frozen=True, slots=True)
class _Entry:
    """One address of a NIC to be: one that stays where it is, a literal one, or one of a pool."""

    stays: NicIp | None = None
    address: str | None = None
    pool: str | None = None


def shape(
    owner: str,
    group: str,
    drafts: Sequence[NicDraft],
    networks: Mapping[str, Network],
    slots: Iterator[str],
    before: Sequence[Nic] = (),
) -> Shape:
    """Put an instance's NICs together; an address that moves from one NIC to another keeps its slot.

    ``networks`` are found in it by what the options call them, and by uuid; ``before`` are the NICs that there were.
    """
    wired = []
    for draft in drafts:
        with blamed("--net", draft.option):
            nic = _wired(draft, networks, group)
            wired.append((draft, nic, _entries(draft, nic)))
    bench = _Bench(owner, networks, slots)
    # All NICs are known before any address is given: an address that stays with a later one is not free.
    bench.note(before, [(nic, entries) for _, nic, entries in wired])
    nics = []
    for draft, nic, entries in wired:
        with blamed("--net", draft.option):
            nics.append(replace(nic, ips=tuple(bench.ip(nic, entry, draft.option) for entry in entries)))
            _check_name(nics)
    # Literal addresses first: a pick must not take what the same command names.
    options = tuple(draft.option for draft in drafts)
    return Shape(tuple(nics), options, tuple(sorted(bench.takes, key=lambda take: take.address is None)))


def loose_options(made: Shape) -> dict[str, str]:
    """Find the option behind each address that is in no network, by address."""
    pairs = zip(made.nics, made.options, strict=True)
    return {address: option for nic, option in pairs if nic.network is None for address in nic.addresses}


class _Bench:
    """What is held, and what has been given to a NIC by now."""

    def __init__(self, owner: str, networks: Mapping[str, Network], slots: Iterator[str]) -> None:
        self.takes: list[Take] = []
        self._owner = owner
        self._networks = networks
        self._slots = slots
        self._held: dict[tuple[str | None, str], str] = {}
        self._given: set[tuple[str | None, str]] = set()

    def note(self, before: Sequence[Nic], after: Sequence[tuple[Nic, Sequence[_Entry]]]) -> None:
        """Note the slots of addresses that are held, and the addresses that stay where they are."""
        for nic in before:
            self._held.update({(nic.network, ip.address): ip.slot for ip in nic.ips if ip.address is not None})
        for nic, entries in after:
            staying = [entry.stays.address for entry in entries if entry.stays is not None]
            self._given.update((nic.network, address) for address in staying if address is not None)

    def ip(self, nic: Nic, entry: _Entry, option: str) -> NicIp:
        """Give a NIC one of its addresses, or note that it is to be taken."""
        if entry.stays is not None:
            return entry.stays
        if entry.address is not None:
            return self._literal(nic.network, entry.address, option)
        if nic.network is None:
            raise Invalid(f"ip={entry.pool or 'pool'} needs network=NETWORK to pick from")
        _check_pool(self._networks[nic.network], entry.pool)
        return self._take(Take(nic.network, next(self._slots), None, entry.pool, option))

    def _literal(self, network: str | None, address: str, option: str) -> NicIp:
        if (network, address) in self._given:
            raise AddressInUse(address, f"{self._owner} already")
        self._given.add((network, address))
        if network is None:
            return NicIp("", address)
        _check_inside(self._networks[network], address)
        # An address that another NIC of the instance had keeps its slot: it changes NICs without being released.
        slot = self._held.get((network, address))
        if slot is not None:
            return NicIp(slot, address)
        return self._take(Take(network, next(self._slots), address, None, option))

    def _take(self, take: Take) -> NicIp:
        self.takes.append(take)
        return NicIp(take.slot, take.address)


def mac_prefix(network: Network | None) -> str:
    """Return how the MAC of a NIC begins that is made up for a network, or for none."""
    return DEFAULT_MAC_PREFIX if network is None else network.mac_prefix or DEFAULT_MAC_PREFIX


def _wired(draft: NicDraft, networks: Mapping[str, Network], group: str) -> Nic:
    """Return a NIC with its words and wires, as the draft says; its addresses are those it had."""
    wish, before = draft.wish, draft.before
    nic = before if before is not None else Nic(str(uuid4()), TO_MAKE_UP)
    if not isinstance(wish.name, Keep):
        nic = replace(nic, name=wish.name)
    old = None if nic.network is None else networks[nic.network]
    network = old if isinstance(wish.network, Keep) else None if wish.network is None else networks[wish.network]
    if not isinstance(wish.mac, Keep):
        nic = replace(nic, mac=TO_MAKE_UP if wish.mac in (None, "auto", "generate") else wish.mac)
    elif mac_prefix(old) != mac_prefix(network):
        # Filters and DHCP servers of a network go by its prefix, so a MAC of another one would not work there (N18).
        nic = replace(nic, mac=TO_MAKE_UP)
    return _loose(nic, wish) if network is None else _attached(nic, wish, network, group)


def _attached(nic: Nic, wish: NicWish, network: Network, group: str) -> Nic:
    """Let a NIC inherit its wires from the network's connection."""
    for word in ("mode", "link", "vlan", "bridge"):
        if not isinstance(getattr(wish, word), Keep):
            raise Invalid(f"{word}= may not be given with a network: the NIC inherits it from network {network.name}")
    return rewired(nic, network, group)


def _loose(nic: Nic, wish: NicWish) -> Nic:
    """Return a NIC without network, with wires of its own."""
    # A NIC that leaves its network does not keep the wires that it inherited there.
    own = nic if nic.network is None else replace(nic, mode=DEFAULT_MODE, link=DEFAULT_LINK, vlan="")
    link = wish.link if isinstance(wish.bridge, Keep) else wish.bridge
    return replace(
        own,
        network=None,
        mode=own.mode if isinstance(wish.mode, Keep) else wish.mode or DEFAULT_MODE,
        link=own.link if isinstance(link, Keep) else link or DEFAULT_LINK,
        vlan=own.vlan if isinstance(wish.vlan, Keep) else wish.vlan or "",
    )


def _entries(draft: NicDraft, nic: Nic) -> list[_Entry]:
    """List the addresses that a NIC will have; ``none`` takes one out, and those behind it move up."""
    before = draft.before
    old = () if before is None else before.ips
    wanted = dict(draft.wish.ips)
    same_place = before is not None and before.network == nic.network
    entries: list[_Entry] = []
    for index, ip in enumerate(old):
        # Old indices throughout: addresses move up only when all options of the command are read (U23).
        spec = wanted.pop(index, None)
        if spec is None or (spec == ip.address and same_place):
            entries.extend([_Entry(stays=ip)] if same_place else _again(ip))
        else:
            entries.extend(_entry(spec))
    for place, index in enumerate(sorted(wanted), start=len(old)):
        if index != place:
            raise Invalid(f"ip{index} leaves a gap: the next address of this NIC is ip{place}")
        entries.extend(_entry(wanted[index]))
    return entries


def _again(ip: NicIp) -> list[_Entry]:
    """Ask for the same address in the network that the NIC moves to."""
    return [] if ip.address is None else [_Entry(address=ip.address)]


def _entry(spec: str) -> list[_Entry]:
    if spec == "none":
        return []
    if spec == "pool":
        return [_Entry()]
    # The grammar has refused broken addresses: a text that is none is the name of a pool.
    try:
        parse_address(spec)
    except Invalid:
        return [_Entry(pool=spec)]
    return [_Entry(address=spec)]


def _check_pool(network: Network, pool: str | None) -> None:
    names = {known.name for _, known in network.pools()}
    if pool is not None and pool not in names:
        raise NotFound("pool", pool, network=network.name, hint="it is neither an address nor a pool")
    if not names:
        raise NotFound("pool", "", network=network.name, hint="add one with --pool, or name an address")


def _check_inside(network: Network, address: str) -> None:
    position = parse_address(address)
    if not any(position in subnet.cidr.range for subnet in network.subnets):
        raise AddressOutsideSubnet(address, network.name)


def _check_name(nics: Sequence[Nic]) -> None:
    """Refuse a NIC's name that one before it has: names find NICs."""
    name = nics[-1].name
    if name is not None and any(nic.name == name for nic in nics[:-1]):
        raise AlreadyExists("NIC", name)
