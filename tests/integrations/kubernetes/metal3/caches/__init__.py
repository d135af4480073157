"""What the caches remember, without a server."""
