"""Prefixes instead of addresses: a subnet's unit is what it hands out, here a /64 of a /48."""

import tenure

with tenure.open("memory:") as ledger:
    ledger.add_network("customers")
    ledger.add_subnet("customers", "2001:db8:1::/48", unit=64)
    ledger.add_pool("customers", "2001:db8:1::/48", name="homes", policy="sticky")

    home = ledger.allocate("customers", owner="customer/4711")
    print(home)
    assert home.unit == 64

    # Sticky: the owner who comes back gets what it had before, if nobody else has it now.
    ledger.release("customers", home.address, owner="customer/4711")
    back = ledger.allocate("customers", owner="customer/4711")
    print(back)
    assert back.address == home.address
    assert back.generation != home.generation
