"""What a transaction of Neutron's did with a ledger, and how the ledger learns how the transaction ended.

Imported by ``modes``, ``installation`` and ``maintenance``. Begin with ``recorded_steps``, then ``settle_steps``.
"""
