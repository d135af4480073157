"""Where a pool's allocations are kept: in the seed's ConfigMap, an object for each address, shards, or a ledger.

``async_vm_pool`` uses them. Begin with ``pool_place``, which says what every mode can do; ``allocation_book`` says what
a mode has to bring that is not the seed's, and ``book_place`` makes a place of it.
"""
