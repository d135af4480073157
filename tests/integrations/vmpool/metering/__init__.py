"""How operations are counted."""
