"""The list of addresses that a pool keeps itself: the object that it is in, and how a process follows it (VS9).

It knows ConfigMaps and no modes, so that ``modes`` may follow a list; ``sizing`` changes it. What a list says, and what
becomes of an address, is in ``state/sized_list``.
"""
