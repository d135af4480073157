"""The ledger at the far end: the same verbs as the local ledger, sent to a server over HTTP.

Imported by ``wiring``, and by commands of the command line that speak with servers. Begin with ``remote_ledger``;
``transport`` sends each request until it is answered, by the rules of ``retry_policy``.
"""
