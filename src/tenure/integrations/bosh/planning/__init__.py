"""The plan of a deploy: a step for each instance, and the operations on the ledger that the steps need.

Imported by ``running_vms``, ``rollback``, ``verbs`` and ``views``. Begin with ``steps``, then ``step_operations``.
"""
