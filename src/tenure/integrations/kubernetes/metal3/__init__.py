"""Pools, claims and addresses of Metal3, of Cluster API and of its in-cluster provider: one controller serves them all.

``integrations.kubernetes.operator`` and ``doors`` import it. Begin with ``objects``, which reads pools, claims and
addresses, then ``pool_book``, which knows what is free in a pool; ``claim_decision`` decides, ``pool_pass`` writes.
``caches`` has what a replica knows of the server, ``admission`` has the webhooks.
"""
