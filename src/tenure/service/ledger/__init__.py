"""The ledger that users hold: the public verbs, as coroutines. ``blocking`` has the same verbs for callers who block.

Everything above ``service`` imports the ledger from here. Begin with ``async_ledger``, which has every verb once;
``ledger_api`` says what a verb asks of its end, and ``engine_ledger`` is the end that works on a store.
"""
