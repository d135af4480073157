"""Options as people write them: many of them good, many of them not, drawn with an eye on what there is."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from tenure.integrations.ganeti.machine_model import Instance
from tenure.integrations.ganeti.options.deprecated import OldOptions
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import parse_cidr
from tenure.kernel.plan.plan_model import Network

Text = st.SearchStrategy[str]

BLOCKS = (
    "10.0.0.0/28", "10.0.0.16/28", "10.0.0.0/27", "10.0.0.0/29", "10.0.0.8/29", "10.0.0.32/29", "10.0.0.32/31",
    "10.0.0.40/32", "10.0.0.0/26", "10.0.0.5/28", "2001:db8::/124", "2001:db8::10/124", "2001:db8::/123",
    "2001:db8::/125", "2001:db8::20/127", "2001:db8:1::/64",
)  # fmt: skip
FOUR = tuple(f"10.0.0.{number}" for number in range(42))
SIX = tuple(f"2001:db8::{number:x}" for number in range(34))
STRANGE = ("203.0.113.1", "10.0.0.300", "none", "")
SUBNETS, POOLS, NODES, INSTANCES = (
    ("s1", "s2", "s3"),
    ("p1", "p2"),
    ("node1", "node2", "node3"),
    ("a", "b", "c", "d", "e"),
)
BAD_NAMES = ("pool", "none", "10.0.0.1", "x=y", "add")
NEAR = 20
"""How many addresses of a subnet are drawn."""


def seldom(otherwise: int = 3) -> st.SearchStrategy[bool]:
    """Draw yes now and then: once to so many times no."""
    return st.integers(0, otherwise).map(lambda number: number == otherwise)


def mostly(good: Text, other: Text) -> Text:
    """Draw the first nine times out of ten."""
    return seldom(9).flatmap(lambda other_one: other if other_one else good)


def often(good: Sequence[str], other: Text) -> Text:
    """Draw mostly what is there, if there is something."""
    return mostly(st.sampled_from(good), other) if good else other


addresses = st.sampled_from([*FOUR, *SIX])
blocks = st.sampled_from(BLOCKS)
strange = st.sampled_from(STRANGE)
subnet_names = mostly(st.sampled_from(SUBNETS), st.sampled_from(BAD_NAMES))
pool_names = mostly(st.sampled_from(POOLS), st.sampled_from(BAD_NAMES))


def inside(network: Network | None) -> Text:
    """Draw an address of a network."""
    own = [] if network is None else [s.cidr.range for s in network.subnets]
    near = [format_address(p) for piece in own for p in range(piece.first, min(piece.last, piece.first + NEAR) + 1)]
    return often(near, mostly(addresses, strange))


def first_of(block: str) -> list[str]:
    """List the first addresses of a block."""
    piece = parse_cidr(ipaddress.ip_network(block, strict=False)).range
    return [format_address(p) for p in range(piece.first, min(piece.last, piece.first + NEAR) + 1)]


@st.composite
def ranges(draw: st.DrawFn, network: Network | None, blocks_there: Sequence[str] = ()) -> str:
    """Draw a range of a network: an address, first-last, a block; now and then that of a pool that is there."""
    pools = [] if network is None else [str(pool.range) for _, pool in network.pools()]
    subnets = [*([] if network is None else [str(s.cidr) for s in network.subnets]), *blocks_there]
    kind = draw(st.sampled_from(["one", "span", "span", "span", "block", "own"]))
    if kind == "block":
        return draw(often(subnets, blocks))
    if kind == "own" and pools:
        return draw(st.sampled_from(pools))
    line = first_of(draw(often(subnets, blocks)))
    start = draw(st.integers(0, len(line) - 1))
    end = min(start + (0 if kind == "one" else draw(st.integers(1, 6))), len(line) - 1)
    if draw(seldom(20)):
        start, end = end, start
    return line[start] if start == end else f"{line[start]}-{line[end]}"


def subnet_idents(network: Network | None) -> Text:
    """Draw what a subnet is called by: name, block, uuid."""
    own = [] if network is None else [w for s in network.subnets for w in (s.name, str(s.cidr), s.uuid) if w]
    return often(own, st.one_of(blocks, subnet_names))


def pool_idents(network: Network | None) -> Text:
    """Draw what a pool is called by: name, range."""
    own = [] if network is None else [w for _, p in network.pools() for w in (p.name, str(p.range)) if w]
    return often(own, pool_names)


@st.composite
def subnet_words(draw: st.DrawFn, block: str | None, *, new: bool) -> list[str]:
    """Draw what is said of a subnet; ``block`` is where it is."""
    if new or draw(st.booleans()):
        block = draw(blocks)
        words = [f"cidr={block}"]
    else:
        words = []
    if draw(seldom(2)):
        words.append(f"gateway={draw(mostly(st.sampled_from(first_of(block or BLOCKS[0])[1:6] or ['none']), strange))}")
    if draw(st.booleans()):
        words.append(draw(st.sampled_from(["dhcp", "dhcp=true", "no_dhcp"])))
    if draw(seldom(2)):
        words.append(f"name={draw(subnet_names)}")
    if new and draw(st.booleans()):
        words.append("pool")
    return words or ["dhcp"]


@st.composite
def subnet_options(draw: st.DrawFn, network: Network | None) -> str:
    """Draw one ``--subnet``."""
    verb = draw(st.sampled_from(["add", "add", "add", "modify", "modify", "modify", "remove"]))
    if verb == "add":
        return f"add:{','.join(draw(subnet_words(None, new=True)))}"
    ident = draw(subnet_idents(network))
    known = [] if network is None else [str(subnet.cidr) for subnet in network.subnets if subnet.answers_to(ident)]
    if verb == "remove":
        return f"{ident}:remove"
    return ",".join([f"{ident}:modify", *draw(subnet_words(known[0] if known else None, new=False))])


@st.composite
def pool_options(draw: st.DrawFn, network: Network | None, blocks_there: Sequence[str] = ()) -> str:
    """Draw one ``--pool``."""
    verb = draw(st.sampled_from(["add", "add", "add", "whole", "cut", "cut", "remove", "modify"]))
    name = f",name={draw(pool_names)}" if draw(st.booleans()) else ""
    match verb:
        case "add":
            return f"add:{draw(ranges(network, blocks_there))}{name}"
        case "whole":
            return f"add:subnet={draw(subnet_idents(network))}{name}"
        case "cut":
            return f"remove:{draw(ranges(network))}"
        case "remove":
            return f"{draw(pool_idents(network))}:remove"
    return f"{draw(pool_idents(network))}:modify,name={draw(pool_names)}"


def reserved_options(network: Network | None) -> Text:
    """Draw a list of ranges."""
    return st.lists(ranges(network), min_size=1, max_size=3).map(",".join)


@st.composite
def old_options(draw: st.DrawFn, network: Network | None) -> OldOptions:
    """Draw the options of today's networks."""
    if not draw(seldom(5)):
        return OldOptions()
    words = {
        "network": blocks, "gateway": inside(network), "network6": st.one_of(blocks, st.just("none")),
        "gateway6": inside(network),
    }  # fmt: skip
    chosen = draw(st.sets(st.sampled_from(list(words)), min_size=1, max_size=2))
    return OldOptions(**{word: draw(words[word]) for word in sorted(chosen)})


@dataclass(frozen=True)
class NicText:
    """What one ``--net`` says: its words, and those of them that say which addresses, in order."""

    words: str
    network: str | None = None
    specs: tuple[str, ...] = ()

    @property
    def wanted(self) -> tuple[str, ...]:
        """List what makes an address of its own."""
        return tuple(spec for spec in self.specs if spec != "none")


def ip_specs(network: Network | None, word: str) -> Text:
    """Draw an address, the word for a pick, or none."""
    pick = st.just(word if network is not None else "172.16.0.1")
    return seldom(8).flatmap(lambda none: st.just("none") if none else st.one_of(pick, inside(network)))


pick_words = st.sampled_from(["pool", "pool", "pool", "POOL", "p1", "p2"])


@st.composite
def nic_texts(draw: st.DrawFn, networks: list[Network], word: str, *, most: int = 3) -> NicText:
    """Draw what is said of a new NIC."""
    network = draw(st.sampled_from([*networks * 4, None]))
    specs = tuple(draw(st.lists(ip_specs(network, word), max_size=most)))
    keys = ["ip" if draw(st.booleans()) else "ip0", *(f"ip{number}" for number in range(1, len(specs)))]
    words = [f"{key}={spec}" for key, spec in zip(keys, specs, strict=False)]
    if network is not None:
        words.append(f"network={draw(st.sampled_from([network.name, network.name, network.uuid]))}")
    words += draw(odd_words)
    return NicText(",".join(words), None if network is None else network.name, specs)


one_odd_word = st.lists(
    st.sampled_from(["name=eth0", "name=eth1", "mac=aa:00:00:00:00:01", "link=br9", "vlan=.7", "network=nosuch"]),
    min_size=1, max_size=1,
)  # fmt: skip
odd_words = seldom(9).flatmap(lambda odd: one_odd_word if odd else st.just([]))


@st.composite
def changes(draw: st.DrawFn, instance: Instance | None, networks: list[Network], word: str) -> tuple[str, NicText]:
    """Draw one ``--net`` of a change: the option, and what it says."""
    nics = () if instance is None else instance.nics
    verb = draw(st.sampled_from(["add", "modify", "modify", "modify", "remove"]))
    if verb == "add" or not nics:
        said = draw(nic_texts(networks, word, most=2))
        return f"{draw(st.sampled_from(['-1:add,', 'add:', '0:add,', '1:add,']))}{said.words}", said
    place = draw(st.integers(0, len(nics) - 1))
    ident = draw(mostly(st.sampled_from([str(place), nics[place].uuid]), st.sampled_from(["-1", "7"])))
    if verb == "remove":
        return draw(st.sampled_from([f"{ident}:remove", "remove"])), NicText("")
    said = draw(nic_changes(len(nics[place].ips), nics[place].network, networks, word))
    return f"{ident}:modify,{said.words}", said


@st.composite
def plain_changes(draw: st.DrawFn, instance: Instance, networks: list[Network], word: str) -> tuple[str, NicText]:
    """Draw a change that takes one address from a pool: instead of another, beside others, or for a new NIC."""
    wired = [place for place, nic in enumerate(instance.nics) if nic.network is not None]
    if not wired or draw(st.booleans()):
        network = draw(st.sampled_from(networks))
        said = NicText(f"ip={word},network={network.name}", network.name, (word,))
        return f"-1:add,{said.words}", said
    place = draw(st.sampled_from(wired))
    nic = instance.nics[place]
    home = next(network.name for network in networks if network.uuid == nic.network)
    said = NicText(f"ip{draw(st.integers(0, len(nic.ips)))}={word}", home, (word,))
    return f"{place}:modify,{said.words}", said


@st.composite
def nic_changes(draw: st.DrawFn, ips: int, uuid: str | None, networks: list[Network], word: str) -> NicText:
    """Draw what is changed of a NIC: some of its addresses, one more, its network."""
    own = next((network for network in networks if network.uuid == uuid), None)
    moves = draw(st.sampled_from([False, False, False, True]))
    target = draw(st.sampled_from([*networks, None])) if moves else own
    indices = draw(st.sets(st.integers(0, ips), max_size=3))
    specs = {index: draw(ip_specs(target, word)) for index in sorted(indices)}
    words = [f"ip{index}={spec}" for index, spec in specs.items()]
    if moves:
        words.append(f"network={'none' if target is None else target.name}")
    words += draw(odd_words) if words else ["name=eth2"]
    return NicText(",".join(words), None if target is None else target.name, tuple(specs.values()))


@st.composite
def shuffles(draw: st.DrawFn, instance: Instance) -> list[str]:
    """Draw options that hand an instance's addresses around among its NICs."""
    places = [(nic, ip) for nic, each in enumerate(instance.nics) for ip in range(len(each.ips))]
    now = [ip.address or "none" for each in instance.nics for ip in each.ips]
    spread: dict[int, list[str]] = {}
    for (nic, ip), address in zip(places, draw(st.permutations(now)), strict=True):
        spread.setdefault(nic, []).append(f"ip{ip}={address}")
    return [f"{nic}:modify,{','.join(words)}" for nic, words in spread.items()]
