"""``tenure cluster``: what is said of the whole cluster.

Loaded by name from ``main``; begin with ``master_address``.
"""
