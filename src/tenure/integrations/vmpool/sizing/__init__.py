"""Who changes how large a pool is, and how VMs come and go with it (VS9).

Begin with ``size_decider`` (what grows and shrinks a pool), then ``resize_pool`` (what operators do). The rules are in
``state``: ``size_policy`` and ``sized_list``. It stands on ``modes``; the verbs of pools and the agent stand on it.
"""
