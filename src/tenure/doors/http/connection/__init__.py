"""One connection of a client: limits on slow and large requests, and the fast way of plain allocations.

Imported by ``process`` only. Begin with ``limits_protocol``; ``fast_allocate`` answers without the application.
"""
