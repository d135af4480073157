"""Ganeti's own files: the configuration and the files of running instances, read into a ledger and written back.

Imported by the command line only. Begin with ``load/import_cluster`` and ``export_cluster``; ``file_model`` has the
values in between.
"""
