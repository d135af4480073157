"""What every controller on Kubernetes stands on: a client, caches, a queue, a lease, webhooks. It knows no addresses.

``integrations/kubernetes`` and ``integrations/vmpool`` may import it; it imports nothing of Tenure. Begin with
``api_client`` (requests), then ``informer`` (a cache that follows the server) and ``work_queue``.
"""
