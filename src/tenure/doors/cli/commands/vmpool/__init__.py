"""``tenure vmpool``: pools of ready VMs on a ConfigMap.

Loaded by name from ``main``; begin with ``vmpool_group``, which lists the commands, and ``open_vm_pool``, which has the
settings that they share.
"""
