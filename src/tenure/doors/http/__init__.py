"""The HTTP server: REST under /api/v1, events, the web page, access, metrics.

The command line starts it (``process``); nothing else imports it. Begin with ``app`` (one request, one response) and
``routes/route_table``. ``server_state`` holds what one server process has: the ledger, access, logs, counts.
"""
