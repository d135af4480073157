"""Memory: a ledger that lives as long as the process."""
