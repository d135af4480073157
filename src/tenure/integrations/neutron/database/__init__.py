"""The driver's tables in Neutron's database: subnets, allocations, and what all servers have agreed on.

Imported by every part of ``neutron`` above it. Begin with ``tables``, then ``subnet_records`` and ``allocation_rows``.
"""
