"""The ways in: the command line and the HTTP server. Doors translate words and errors, and decide nothing.

Nothing else imports a door; the command line may import the HTTP server, never the other way round. Begin with
``cli/main`` or ``http/app``.
"""
