"""Several named pools."""
