"""What controllers stand on, with a real API server, and one that misbehaves on purpose."""
