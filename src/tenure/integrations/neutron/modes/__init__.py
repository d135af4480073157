"""The two modes of the driver: the allocator inside Neutron's transaction, or a ledger that decides.

Imported by ``installation`` only. Begin with ``database_mode`` and ``ledger_mode``.
"""
