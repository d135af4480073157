"""Imports a cluster that was read from its files: a dry run first, then the operations, in batches.

Imported by the command line only. Begin with ``import_cluster``.
"""
