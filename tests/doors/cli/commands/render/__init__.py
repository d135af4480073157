"""Commands that print files."""
