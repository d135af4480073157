"""Networks, instances and NICs as Ganeti's revised design has them. Nothing here prints.

The command line imports it. Begin with ``instances`` (add, modify, remove) and ``networks``; ``machine_model`` has
the values that all parts share.
"""
