"""File formats: what is found in CSV, JSON and NetBox files, as items that know their line.

Imported by the other parts of ``interchange`` and by ``doors``. Begin with ``source_items``; ``detect`` finds out
which format a file has.
"""
