"""The command line.

Nothing imports it. Begin with ``main``; ``commands`` has a module for each noun, ``session`` opens the ledger.
"""
