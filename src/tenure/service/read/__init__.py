"""Answers for readers: holdings as users see them, why, history, search, the log, verify. Nothing here writes.

Imported by ``engine``, ``ledger`` and the packages above ``service``. Begin with ``presenter``.
"""
