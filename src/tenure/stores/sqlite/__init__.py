"""The SQLite store: one file, one machine, nothing to install.

Imported by ``wiring`` only. Begin with ``store`` (the port), then ``threads`` (one writer, several readers) and
``grants`` (a batch as one statement). The SQL is in ``queries.sql`` and ``grants.sql``.
"""
