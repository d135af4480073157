"""Addresses and ranges of both IP families as integers ("positions"), and the text that users write for them.

Every package may import it. Begin with ``addresses``; ``ranges`` builds on it.
"""
