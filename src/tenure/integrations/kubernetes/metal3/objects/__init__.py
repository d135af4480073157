"""What pools, claims and addresses say, in the words of Metal3 and of Cluster API; nothing here keeps anything.

All of ``metal3`` imports it. Begin with ``ipam_kinds``, the names that controllers agree on, and ``claim_kind``, which
says in what the two kinds of claims differ; ``pool_spec`` reads a pool.
"""
