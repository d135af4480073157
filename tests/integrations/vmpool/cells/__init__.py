"""Objects that share one pool."""
