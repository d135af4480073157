"""What the ledger knows of deployments: instances, their VMs, pending VMs, compilation workers, managed networks.

Each is a paper of the ledger, read together with its holdings. Imported by the parts of ``bosh`` from
``cloud_config`` upwards, and by ``doors`` for their types. Begin with ``instance_state``.
"""
