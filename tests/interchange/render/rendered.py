"""A network with every sort of holding that a renderer meets."""

import tenure


async def furnish(ledger: tenure.AsyncLedger) -> None:
    """Make the network ``n``."""
    await ledger.add_network("n")
    await ledger.add_subnet("n", "192.0.2.0/24", gateway="192.0.2.1", dns=["192.0.2.2"], dhcp=True)
    await ledger.add_pool("n", "192.0.2.1-192.0.2.100")
    await ledger.reserve("n", "192.0.2.50-192.0.2.59")
    await ledger.add_subnet("n", "198.51.100.64/26")
    await ledger.add_subnet("n", "2001:db8::/64", dns=["2001:db8::2", "192.0.2.2"], dhcp=True)
    await ledger.add_subnet("n", "2001:db8:1::/48", unit=56)
    held = [
        ("192.0.2.10", "instance/web-0", "", {"mac": "AA-BB-CC-00-00-01"}),
        ("192.0.2.11", "instance/Web 1", "nic0/ip1", {"mac": "aabb.cc00.0002", "domain": "lab.example.net"}),
        ("192.0.2.12", "pod/a.b", "", {}),
        ("192.0.2.13", "pod/a-b", "", {}),
        ("192.0.2.14", "pod/ü", "", {}),
        ("192.0.2.15", "pod/x", "", {"hostname": "mail.example.org", "mac": "aa:bb"}),
        ("192.0.2.16", "pod/y", "", {"hostname": "under_score"}),
        ("192.0.2.17", "pod/z", "", {"mac": "aa:bb:cc:00:00:01"}),
        ("192.0.2.18", "pod/mail", "", {}),
        ("198.51.100.70", "instance/db", "", {}),
        ("2001:db8::10", "instance/web-0", "v6", {"mac": "aa:bb:cc:00:00:01"}),
        ("2001:db8::11", "instance/web-0", "v6b", {"mac": "aa:bb:cc:00:00:01"}),
        ("2001:db8:1:100::", "site/branch", "", {"duid": "00:03:00:01:aa"}),
        ("2001:db8:1:200::", "site/shop", "", {"duid": "x"}),
    ]
    await ledger.apply(
        [
            tenure.Allocate(network="n", owner=owner, slot=slot, address=address, labels=labels)
            for address, owner, slot, labels in held
        ]
    )
