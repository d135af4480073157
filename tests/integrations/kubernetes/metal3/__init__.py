"""Metal3's kinds."""
