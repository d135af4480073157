"""What operators see of a server: the log of requests, counters for metrics, readiness.

Imported by ``access`` and the parts above it. Begin with ``request_log`` and ``counters``.
"""
