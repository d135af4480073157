"""Who may come in: tokens, logins, and how often."""
