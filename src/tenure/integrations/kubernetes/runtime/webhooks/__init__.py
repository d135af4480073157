"""Webhooks that the API server calls, and the certificates that they show: made, mounted, replaced while they serve.

The rest of ``kubernetes`` imports it. Begin with ``webhook_host``; ``webhook_certificates`` are made by the leader and
followed by every replica, a ``mounted_certificate`` is somebody else's to make.
"""
