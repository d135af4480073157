"""Who may come in, and for what."""
