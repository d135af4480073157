"""The ledger that users hold: the public verbs, as coroutines. ``blocking`` has the same verbs for callers who block.

Everything above ``service`` imports the ledger from here. Begin with ``async_ledger``; its verbs are in
``plan_verbs``, ``holding_verbs``, ``waiting_verbs`` and ``reading_verbs``.
"""
