"""The use cases of the ledger: allocate, release, edit the plan, read it, check it.

Five parts, each of which imports only the parts before it: ``allocator`` (choose an address), ``apply`` (operations
inside a transaction), ``read`` (answers for readers), ``engine`` (the running process) and ``ledger`` (the public
verbs). Nothing here imports a store; ``wiring`` brings both together. Begin with ``ledger/async_ledger``.
"""
