"""Data in and out: files are imported and exported, sources compared, ledgers copied, networks rendered.

Imported by ``doors`` only; reaches stores through ``wiring``. Begin with ``importer/import_run`` for imports and with
``copy_ledger`` for backup, restore and copy.
"""
