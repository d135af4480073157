"""The etcd store: a book (no plan, no log) that survives the loss of a machine.

Imported by ``wiring`` only. Begin with ``store``; ``gateway`` speaks etcd's HTTP interface.
"""
