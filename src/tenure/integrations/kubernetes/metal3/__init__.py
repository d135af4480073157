"""Metal3's kinds, IPPool, IPClaim and IPAddress: what users may write, and the controller that serves claims.

``integrations.kubernetes.operator`` and ``doors`` import it. Begin with ``objects``, which reads pools, claims and
addresses, then ``pool_book``, which knows what is free in a pool; ``claim_decision`` decides, ``pool_pass`` writes.
``admission`` has the webhooks.
"""
