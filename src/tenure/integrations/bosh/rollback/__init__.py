"""Takes a plan back: the manifest to return to, and each address under the network that it had before.

Imported by ``verbs`` and ``views``. Begin with ``abort``.
"""
