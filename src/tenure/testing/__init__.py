"""For our users' own tests: a ledger in memory, and faults on demand."""
