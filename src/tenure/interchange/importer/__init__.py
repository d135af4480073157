"""Imports: a dry run that names every error with its line, and the import itself in batches of one transaction each.

Imported by ``audit``, ``exporter``, ``render`` and ``doors``. Begin with ``import_run``, then ``dry_run``.
"""
