"""Recovery, instances and the agent of VM pools, on a real API server."""
