"""The memory store: a ledger that lives as long as the process.

Imported by ``wiring`` and ``testing`` only. Begin with ``store``; ``transaction`` holds what runs inside ``transact``.
"""
