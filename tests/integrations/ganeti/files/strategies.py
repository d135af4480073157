"""Configurations made by chance, in either form: consistent ones, with fields and spellings of their own."""

import ipaddress
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.integrations.ganeti.files.documents import Json

EXTRA = st.dictionaries(
    st.sampled_from(["x_one", "x_two", "x_three"]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
        max_leaves=4,
    ),
    max_size=2,
)
TAGS = st.lists(st.sampled_from(["prod", "test", "a:b"]), max_size=3)
WIRE = st.fixed_dictionaries(
    {},
    optional={"mode": st.sampled_from(["bridged", "routed"]), "link": st.sampled_from(["br0", ""]), "odd": st.none()},
)


@st.composite
def bit_strings(draw: st.DrawFn, size: int) -> str:
    """Draw a bit string."""
    return "".join(draw(st.lists(st.sampled_from("0001"), min_size=size, max_size=size)))


@st.composite
def old_networks(draw: st.DrawFn, number: int) -> tuple[Json, list[str]]:
    """Draw a network of today's form; return it, and addresses that NICs may have."""
    prefix = draw(st.integers(26, 31))
    block = ipaddress.ip_network(f"10.{number}.0.0/{prefix}")
    size = block.num_addresses
    own: Json = {"name": f"net{number}", "uuid": f"{number:08x}-net", "network": str(block), "tags": draw(TAGS)}
    own["reservations"], own["ext_reservations"] = draw(bit_strings(size)), draw(bit_strings(size))
    if draw(st.booleans()):
        own["gateway"] = draw(st.sampled_from([str(address) for address in list(block)[1:-1]] + [None]))
    addresses = [str(address) for address in block]
    if draw(st.booleans()):
        own["network6"] = f"2001:db8:{number:x}::/64"
        own["gateway6"] = draw(st.sampled_from([f"2001:DB8:{number:x}::1", "fe80::1", None]))
        addresses += [f"2001:db8:{number:x}::{host:x}" for host in range(1, 4)]
    if draw(st.booleans()):
        own["mac_prefix"] = draw(st.sampled_from(["aa:bb:cc", "AA:00:01", None]))
    return {**draw(EXTRA), **own}, addresses


def _range(draw: st.DrawFn, first: int, last: int) -> Any:
    """Spell a range in one of its ways."""
    start, end = str(ipaddress.ip_address(first)), str(ipaddress.ip_address(last))
    spellings: list[Any] = [f"{start}-{end}", {"start": start, "size": last - first + 1, "end": end}]
    spellings += [{"start": start, "size": last - first + 1, "more": 1}, *([start] if first == last else [])]
    return draw(st.sampled_from(spellings))


@st.composite
def new_networks(draw: st.DrawFn, number: int) -> tuple[Json, list[str]]:
    """Draw a network of the revised form; return it, and addresses that NICs may have."""
    subnets: list[Json] = []
    addresses: list[str] = []
    for place in range(draw(st.integers(0, 3))):
        v6 = place == 1
        block = ipaddress.ip_network(f"2001:db8:{number:x}::/124" if v6 else f"10.{number}.{place}.0/28")
        first = int(block.network_address)
        cuts = sorted(set(draw(st.lists(st.integers(0, 15), max_size=4))))
        pools: list[Json] = []
        for low, high in zip(cuts[::2], cuts[1::2], strict=False):
            pool: Json = {"range": _range(draw, first + low, first + high)}
            if draw(st.booleans()):
                pool["reservations"] = draw(bit_strings(high - low + 1))
            pools.append({**draw(EXTRA), **pool, **({"name": "p"} if draw(st.booleans()) else {})})
        subnet: Json = {"cidr": str(block), "pools": pools}
        if draw(st.booleans()):
            marks = sorted(draw(st.sets(st.integers(0, 15), max_size=6)))
            word = draw(st.sampled_from(["external", "reserved"]))
            subnet[word] = [_range(draw, first + mark, first + mark) for mark in marks]
        if draw(st.booleans()):
            subnet["gateway"] = str(block[draw(st.integers(1, 14))])
        if draw(st.booleans()):
            subnet.update(uuid=f"sub{place}", name=f"subnet{place}", dhcp=place < 2)
        subnets.append({**draw(EXTRA), **subnet})
        addresses += [str(address) for address in block]
    own: Json = {"name": f"net{number}", "uuid": f"{number:08x}-net", "tags": draw(TAGS), "subnets": subnets}
    return {**draw(EXTRA), **own}, addresses


@st.composite
def configurations(draw: st.DrawFn, *, revised: bool) -> Json:
    """Draw a whole configuration of one form."""
    make: Callable[[int], st.SearchStrategy[tuple[Json, list[str]]]] = new_networks if revised else old_networks
    made = [draw(make(number)) for number in range(1, draw(st.integers(2, 3)))]
    networks = {network["uuid"]: network for network, _ in made}
    free = {network["uuid"]: list(draw(st.permutations(addresses))) for network, addresses in made}
    connected = draw(st.sets(st.sampled_from(sorted(networks))))
    lines = {uuid: draw(WIRE) for uuid in sorted(connected)}
    group = {**draw(EXTRA), "name": "default", "uuid": "g1", "networks": lines}
    node = {**draw(EXTRA), "name": "node1", "uuid": "n1", "group": "g1", "primary_ip": "10.0.0.5"}
    instances: Json = {}
    for number in range(draw(st.integers(0, 3))):
        nics = [_nic(draw, number * 10 + n, free, revised) for n in range(draw(st.integers(0, 3)))]
        own = {"name": f"i{number}", "uuid": f"u{number}", "primary_node": "n1", "nics": nics}
        instances[f"u{number}"] = {**draw(EXTRA), **own, **({"serial_no": 4} if draw(st.booleans()) else {})}
    sections = {"networks": networks, "nodegroups": {"g1": group}, "nodes": {"n1": node}, "instances": instances}
    return {**draw(EXTRA), "serial_no": draw(st.integers(1, 9)), **sections}


def _nic(draw: st.DrawFn, number: int, free: dict[str, list[str]], revised: bool) -> Json:
    made: Json = {**draw(EXTRA), "mac": f"aa:00:00:00:00:{number:02x}"}
    network = draw(st.sampled_from([None, *free]))
    if network is not None:
        made["network"] = network
    pile = ["172.16.0.1", "172.16.0.2"] if network is None else free[network]
    wanted = draw(st.integers(0, 2 if revised else 1))
    ips = [pile.pop() for _ in range(min(wanted, len(pile)))]
    if draw(st.booleans()):
        made["uuid"] = f"{number:08x}-nic"
    if draw(st.booleans()):
        made["nicparams"] = draw(WIRE)
    if revised:
        made["ip"] = ips
    elif ips:
        made["ip"] = ips[0]
    elif draw(st.booleans()):
        made["ip"] = None
    return made
