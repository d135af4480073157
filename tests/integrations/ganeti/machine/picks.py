"""``ip=pool`` is the first free address in the order of the maps that a query showed just before."""

from collections.abc import Sequence

import tenure
from tenure.integrations.ganeti.machine_model import Instance
from tests.integrations.ganeti.machine.sight import Sight
from tests.integrations.ganeti.machine.wishes import NicText

PICKED = ("pool", "POOL", "p1", "p2")
Pick = tuple[str, str, str | None]
"""A network's uuid, the word that asked for a pick, and what came of it."""


def picks_of_new(instance: Instance, said: Sequence[NicText]) -> list[Pick]:
    """List the picks for a new instance: each word made one address, in order."""
    found: list[Pick] = []
    for nic, text in zip(instance.nics, said, strict=True):
        assert len(nic.ips) == len(text.wanted), (nic, text)
        pairs = zip(nic.ips, text.wanted, strict=True)
        found += [(nic.network or "", spec, ip.address) for ip, spec in pairs if spec in PICKED]
    return found


def picks_of_change(before: Instance, after: Instance, said: Sequence[NicText]) -> list[Pick]:
    """List the picks for a changed instance, where what is no pick can be told from them without doubt."""
    words = {spec for text in said for spec in text.specs if spec in PICKED}
    literals = {spec for text in said for spec in text.specs if spec not in PICKED}
    loose = {address for nic in after.nics if nic.network is None for address in nic.addresses}
    had = {nic.uuid: nic.network for nic in before.nics}
    places = {(nic.network, address) for nic in before.nics for address in nic.addresses}
    new = [(n.network, a) for n in after.nics if n.network for a in n.addresses if (n.network, a) not in places]
    moved = any(had.get(nic.uuid, nic.network) != nic.network for nic in after.nics)
    if moved or loose & literals or len(words) != 1 or len({network for network, _ in new}) != 1:
        return []
    [word] = words
    return [(network, word, address) for network, address in new if address not in literals]


def check_picks(before: Sight, picks: Sequence[Pick], after: Instance, overdue: set[tuple[str, str]]) -> None:
    """Compare with the maps, without what the command named.

    What came to be overdue since the maps were read may be had, and where none is free, what the instance gives back.
    """
    known = before.instance(after.name)
    own = {(nic.network or "", each) for nic in (known.nics if known else ()) for each in nic.addresses}
    picked = {(uuid, address) for uuid, _, address in picks}
    taken = {(nic.network or "", each) for nic in after.nics for each in nic.addresses} - picked
    for uuid, word, address in picks:
        network = before.network(uuid)
        assert network is not None
        line = before.line(network, None if word.lower() == "pool" else word)
        free = [each for each in line if (uuid, each) not in taken]
        if free and (uuid, address or "") not in overdue:
            assert address == free[0], f"{address} was picked, {free[0]} is the first free of {word}"
        else:
            assert (uuid, address or "") in overdue | own, f"{address} was picked, and {word} was full"
        taken.add((uuid, address or ""))


def check_refusal(before: Sight, error: tenure.TenureError, said: Sequence[NicText]) -> None:
    """What a refusal says of addresses is true: full is full, in use is in use."""
    if isinstance(error, tenure.PoolExhausted):
        network = before.network(error.network)
        assert network is not None
        wanted = [spec for text in said for spec in text.wanted]
        assert len(before.line(network, error.pool)) < len(wanted), f"{error}: there is room"
    elif isinstance(error, tenure.AddressInUse):
        held = {holding.address for _, holding in before.rows}
        again = {address for each in before.instances for nic in each.nics for address in nic.addresses}
        specs = [spec for text in said for spec in text.specs]
        assert error.address in held | again or specs.count(error.address) > 1, str(error)
    elif isinstance(error, tenure.AddressReserved):
        lines = [address for network in before.networks for address in before.line(network, None)]
        assert lines.count(error.address) < len(before.networks), str(error)
