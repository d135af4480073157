"""Tenure in a Kubernetes cluster, as an operator.

``doors/cli`` imports it. Begin with ``runtime``, which any controller stands on.
"""
