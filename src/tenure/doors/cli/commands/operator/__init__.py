"""``tenure operator`` and ``tenure manifests``: controllers in a Kubernetes cluster, and what they need there.

Loaded by name from ``main``; begin with ``run_operator``.
"""
