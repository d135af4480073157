"""How operations and their results are counted: each once, in the process that did it and for the pool as a whole.

``pool_changes``, ``modes`` and ``async_vm_pool`` count with it, ``pool_metrics`` shows what was counted. It imports the
rules of ``state`` and the errors. Begin with ``operation_count``.
"""
