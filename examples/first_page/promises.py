"""What the ledger promises, tried on a network with three addresses."""

# The same library, and a ledger that is gone with the process: memory is a store that passes the same suites.
import tenure

ledger = tenure.open("memory:")

# Three addresses to hand out.
ledger.add_network("tiny")
ledger.add_subnet("tiny", "198.51.100.0/29", gateway="198.51.100.1")
ledger.add_pool("tiny", "198.51.100.2-198.51.100.4")

# Safe to repeat: the same request again gives the same answer, never a second address.
first = ledger.allocate("tiny", owner="vm/a")
again = ledger.allocate("tiny", owner="vm/a")
assert again == first

# Never two holders: whoever asks for a held address is told who holds it.
try:
    ledger.allocate("tiny", owner="vm/b", address=first.address)
except tenure.AddressInUse as error:
    print(error.code, "–", error)

# Whole or nothing: three owners do not fit into two free addresses, so none gets one.
try:
    ledger.allocate_many("tiny", owners=["vm/b", "vm/c", "vm/d"])
except tenure.PoolExhausted as error:
    print(error.code, "–", error)
assert [holding.owner for holding in ledger.holdings("tiny")] == ["vm/a"]

# A late release is harmless: it names a generation that is over, and the new holder keeps the address.
ledger.release("tiny", first.address, owner="vm/a")
second = ledger.allocate("tiny", owner="vm/a")
try:
    ledger.release("tiny", first.address, owner="vm/a", generation=first.generation)
except tenure.Conflict as error:
    print(error.code, "–", error)
assert ledger.holding("tiny", second.address) == second

# What is held can be explained; so can what is not free.
print(ledger.why(second.address))
print(ledger.why("198.51.100.1"))

# And the ledger can be asked to check itself: every invariant, each breach named. None here.
breaches = ledger.verify()
assert breaches == []

ledger.close()
