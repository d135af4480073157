"""The library's first page, as it stands in the README. `make run` walks through it line by line."""

# Tenure is a library: one import.
import tenure

# Open a ledger. This one is a SQLite file, made on first use; memory: and postgresql://… work the same.
ledger = tenure.open("sqlite:///tenure.db")

# A network is a named thing machines attach to. It gets a space of its own; space="site" would share one.
ledger.add_network("net1")

# A subnet is a block of it. The network, broadcast and gateway addresses are kept back by themselves.
ledger.add_subnet("net1", "192.0.2.0/24", gateway="192.0.2.1", name="subnet1")

# A pool is where addresses are picked from. Its policy is `lowest` unless you say otherwise.
ledger.add_pool("net1", "192.0.2.10-192.0.2.100", name="pool1")

# A reserved range is kept away from picking.
ledger.reserve("net1", "192.0.2.20-192.0.2.50")

# The next free address, for an owner. It is durable before this line returns.
web0 = ledger.allocate("net1", owner="instance/web-0")

# This very address. It lies outside the pool: pools are for picking, a subnet is for naming.
db0 = ledger.allocate("net1", owner="instance/db-0", address="192.0.2.5")

# Another policy for one request, and labels for people and scripts.
six = ledger.allocate("net1", owner="instance/web-1", policy="random", labels={"team": "shop"})

# Forty owners in one transaction: all of them get an address, or none does.
many = ledger.allocate_many("net1", owners=[f"pod/{n}" for n in range(40)])

# A holding knows what a machine needs to configure itself.
print(web0.address, web0.prefix, web0.gateway, web0.owner, web0.state)

# A release names the owner, so it can never end somebody else's holding.
ledger.release("net1", web0.address, owner="instance/web-0")

# Everything an owner holds, in all networks, at once.
ledger.release_owner("instance/db-0")

# Every effect is in the log, in commit order, without gaps.
for change in ledger.changes(after=0):
    print(change.seq, change.verb, change.address, change.owner)

# And any address can be explained.
print(ledger.why("192.0.2.5"))

# What was answered is on disk. Closing only lets go of the file.
ledger.close()
