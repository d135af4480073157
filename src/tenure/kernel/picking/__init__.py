"""Which free address a claim gets: the set of free numbers of a pool, and the policies that pick from the set.

Only ``service`` and the integrations that run the allocator themselves import it. Begin with ``policies``.
"""
