"""The HTTP door: REST under /api/v1, events, the web page, access, metrics."""
