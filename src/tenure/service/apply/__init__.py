"""``apply``: edits, allocations, releases, transfers and papers as one transaction, judged by the final state.

``operations`` holds the values that callers pass, and every package above may import it; the rest is for ``read``,
``engine`` and ``ledger``. Begin with ``apply_operations``; each ``*_effects`` module carries out one kind of
operation.
"""
