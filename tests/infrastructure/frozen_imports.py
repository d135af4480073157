"""Imported last by the fork server: the garbage collectors of its children leave alone what was imported before.

A pass over it would write to every object, and each child would have a copy of its own: 200 MB, times fifty processes.
"""

import gc

gc.collect()
gc.freeze()
