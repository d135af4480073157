"""``tenure ipam``, which is also ``kubectl tenure``: questions about pools of a cluster, and moving them into a ledger.

Loaded by name from ``main``; begin with ``ipam_group``, which lists the commands, and ``open_cluster``, which has the
options that they share.
"""
