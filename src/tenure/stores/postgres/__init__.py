"""PostgreSQL: many servers on one ledger."""
