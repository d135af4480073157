"""Deployments without a cloud config, whose addresses only the running VMs know: their reports, matched to instances.

Imported by ``rollback``, ``verbs`` and ``deployments_api``. Begin with ``vm_state`` and ``match_vm_state``.
"""
