"""The PostgreSQL store: many servers on one ledger.

Imported by ``wiring`` only. Begin with ``store`` (the port), then ``grants`` and ``transaction``. The SQL is in
``queries.sql``.
"""
