"""The operator for Kubernetes, with a real API server, and one that misbehaves on purpose."""
