"""Tenure in the words of other systems: a package for each, none of which imports another.

``doors`` may import integrations, and integrations import ``service``, ``wiring`` and below. Begin with
``bosh/deployments_api``, ``ganeti/instances``, ``neutron/driver`` or ``vmpool/async_vm_pool``.
"""
