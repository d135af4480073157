"""The ledger over HTTP: what travels (``shapes``, ``bodies``, ``problems``), and the ledger at its far end.

Both ends read and write by the same modules: the server's door in ``doors.rest``, the client here.
"""
