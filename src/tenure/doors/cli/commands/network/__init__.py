"""``tenure network``: networks in the words of Ganeti's revised design, and the import and export of its files.

Loaded by name from ``network_group``, where the table of its commands stands; begin there.
"""
