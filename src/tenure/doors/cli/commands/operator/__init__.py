"""``tenure operator``: controllers in a Kubernetes cluster.

Loaded by name from ``main``; begin with ``run_operator``.
"""
