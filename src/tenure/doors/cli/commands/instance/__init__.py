"""``tenure instance``: instances and their NICs, in the words of Ganeti's revised design.

Loaded by name from ``instance_group``, where the table of its commands stands; begin there.
"""
