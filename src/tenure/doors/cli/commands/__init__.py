"""The commands, a module for each noun or verb that users type. A command is a thin call on the ledger.

Loaded by name, when they are typed, from the tables in ``main`` and in the groups (``*_group``); nothing imports
them. Begin with ``allocate``.
"""
