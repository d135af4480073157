"""Reads Ganeti's configuration: JSON in, values of ``file_model`` out, every error with its place.

Imported by the other parts of ``files`` and the command line. Begin with ``cluster_file``.
"""
