"""How much of every network is held and free, where and since when: counts, maps, trends, kept current from the log.

Imported by ``routes``, ``server_state`` and ``non_api``. Begin with ``census``.
"""
