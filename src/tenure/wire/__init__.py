"""What travels over HTTP, for both ends: bodies of requests, responses, errors as problem documents.

The server (``doors/http``) and the ``client`` both import it, so that neither can say more than the other. Begin with
``responses`` and ``request_bodies``; ``encode`` and ``decode`` turn values of the ledger into them and back.
"""
