"""What every replica knows of the server: caches of pools, claims, addresses and clusters, and a record for each pool.

The rest of ``metal3`` imports it. Begin with ``ipam_caches``, which puts the parts together: ``followed_objects`` holds
what the server has, ``pool_records`` what is remembered of pools. ``changed_pools``, ``changed_claims``,
``changed_addresses`` and ``changed_clusters`` say what a change of an object means to the records. ``cramped_kinds``
remembers which definitions drop our fields.
"""
