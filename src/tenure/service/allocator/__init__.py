"""The allocator: from a claim to the address that it gets. It awaits only the store: no loop, thread or clock.

Imported by the other parts of ``service``, and by integrations that run the allocator in a transaction of their own.
Begin with ``claim`` (what is asked for), ``allocation`` (one claim, step by step) and ``lane`` (exact picks).
"""
