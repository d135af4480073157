"""Pools whose addresses a ledger holds (``spec.tenure.ledger``): the ledger decides, the objects of the cluster follow.

``metal3`` and ``doors`` import it. Begin with ``pool_ledgers``, which has what passes over pools ask for: grant, keep
and release. ``network_mirror`` reads what a ledger has; ``ledger_secret`` says where the ledger is.
"""
