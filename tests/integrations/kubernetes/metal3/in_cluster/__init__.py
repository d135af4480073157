"""Pools of the in-cluster provider, and pools that several namespaces share."""
