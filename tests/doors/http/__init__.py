"""The HTTP door, through its own protocol."""
