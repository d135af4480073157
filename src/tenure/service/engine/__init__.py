"""One running process on one store: layouts and views kept in memory, batches of calls, lanes, claims that wait.

Imported by ``ledger``, ``wiring`` and ``testing``. Begin with ``engine``; ``batcher`` makes one store call of many.
"""
