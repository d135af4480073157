"""``tenure vmpool``: which VM belongs to which pod. Its verbs lie in files that are read when one is called."""

import click

from tenure.doors.cli.framework.click_base import LazyNoun

VERBS = {
    "VMs of pods": {
        "allocate": "vmpool.vm_allocations:allocate",
        "deallocate": "vmpool.vm_allocations:deallocate",
        "get": "vmpool.vm_allocations:get",
        "list": "vmpool.vm_allocations:list_allocations",
        "status": "vmpool.vm_allocations:status",
    },
    "Care": {
        "verify": "vmpool.pool_care:verify",
        "repair": "vmpool.pool_care:repair",
        "recover": "vmpool.recover_node:recover",
        "move": "vmpool.move_vm_pool:move",
        "size": "vmpool.resize_vm_pool:size",
        "resize": "vmpool.resize_vm_pool:resize",
        "agent": "vmpool.run_pool_agent:agent",
        "manifests": "vmpool.print_pool_manifests:manifests",
    },
}


@click.group("vmpool", cls=LazyNoun, sections=VERBS)
def vmpool() -> None:
    """Give VMs that are there already to pods, one each: a pool on a ConfigMap, as Cloud API Adaptor has it.

    Go managers of the adaptor and these commands may share a pool. No ledger is needed. For large pools and many nodes
    there are other modes: an object for each VM, shards, or a ledger.

    For example:
      tenure vmpool allocate nginx-3f1c9d2e --pool-ips 192.0.2.10-192.0.2.29 --node-name worker-1
    """
