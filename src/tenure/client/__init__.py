"""The other end of a ledger's verbs: a server that is asked over HTTP, where ``engine_ledger`` asks a store.

Imported by ``wiring``, and by commands of the command line that speak with servers. Begin with ``remote_ledger``;
``transport`` sends each request until it is answered, by the rules of ``retry_policy``.
"""
