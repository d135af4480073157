"""What the keys of documents about VM pools mean; a part of ``json_keys``."""

Keys = dict[str, str]

VM_ALLOCATION: Keys = {
    "pool": "the name of the pool that the VM is of",
    "allocation_id": "under which id it is allocated",
    "ip": "the address of the VM",
    "node_name": "the node that allocated it",
    "pod_name": "the pod that it is for, or empty",
    "pod_namespace": "the pod's namespace, or empty",
    "allocated_at": "when, or null where another manager left it out",
}

VM_POOL_STATUS: Keys = {
    "pool": "namespace and name of the ConfigMap",
    "mode": "where allocations are kept: `configmap`, `per-ip`, `shards` or `ledger`",
    "total": "available and in use; not what is configured",
    "available": "how many VMs are free",
    "in_use": "how many are allocated",
    "pool_size": "how many addresses the pool has",
    "list_generation": "of the list of addresses that the pool keeps itself; 0: the list is that of the settings",
    "draining": "addresses that are allocated and not configured any more",
    "cleanup_failed": "by address, VMs that stay allocated because they could not be cleaned up: `allocation_id`, "
    "`cause`, `at`, `tries`",
    "is_there": "whether there is a ConfigMap with a state",
    "version": "of the state: how often it was written",
    "last_updated": "when, or null",
    "size_bytes": "of all values of the ConfigMap; 0 in other modes",
    "largest_bytes": "how large they may be",
    "warnings": "what an operator should know",
}

VM_POOL_FINDING: Keys = {
    "kind": "`unknown`, `duplicate`, `missing`, `double_allocated`, `invalid`, `outside_pool`, `misnamed`, "
    "`respelled`, `misplaced` or `unreadable_notes`",
    "ip": "the address, or empty",
    "allocation_id": "the id, or null",
    "message": "what is wrong, and what a repair does about it",
    "is_change": "whether a repair changes something for it",
}

VM_POOL_RECOVERY: Keys = {
    "node_name": "the node",
    "mode": "`keep` or `release`",
    "released": "a list of VM allocations that ended",
    "dropped": "those that ended without a VM being touched: no address, or another allocation has it, too",
    "changed": "those that others ended or made again meanwhile",
    "kept": "those that stay",
    "failed": "those that stay because their VM could not be cleaned up, with `cause`",
    "findings": "a list of VM pool findings that were repaired",
    "was_created": "whether there was no state before",
    "is_written": "whether anything was written",
}

VM_POOL_SIZE: Keys = {
    "is_sized": "whether the pool keeps the list of its addresses itself; if not, there are no other keys",
    "ips": "the addresses, in the order of the pool",
    "generation": "how often the list was changed",
    "policy": "when the pool grows and shrinks: `low`, `high`, `min`, `max`, `step`, `prefix`, `shrinkAfterSeconds`; "
    "or null",
    "making": "by request, VMs that are being made: `since`, `ip`, `is_begun`, `tries`, `cause`",
    "retiring": "by address, VMs that leave the pool: the same; `is_begun` says whether they are being removed",
    "problem": "why the pool is not as large as it should be, or null",
}

DOCUMENTS: dict[str, Keys] = {
    "VM allocation": VM_ALLOCATION,
    "VM pool status": VM_POOL_STATUS,
    "VM pool finding": VM_POOL_FINDING,
    "VM pool recovery": VM_POOL_RECOVERY,
    "VM pool size": VM_POOL_SIZE,
}

ANSWERS: dict[str, str] = {
    "vmpool allocate, get": "a VM allocation",
    "vmpool deallocate": '`{"released": true}` or false',
    "vmpool list": "a list of VM allocations",
    "vmpool status": "a VM pool status; of several pools, a list of them",
    "vmpool verify": "`ok` and `findings` (VM pool findings)",
    "vmpool repair": "`is_written`, `findings` (VM pool findings), `unfinished` (how many writes of killed processes "
    "were removed), `copy` (the ConfigMap with what could not be read, or null), `replaced` (a list of `state` and "
    "`notes`: what was begun afresh) and `in_use` (how many VMs are allocated now)",
    "vmpool recover": "a VM pool recovery",
    "vmpool move": "`from` and `to` (modes), `allocations` (how many) and `is_moved` (false if it was there already)",
    "vmpool size, resize": "a VM pool size",
    "vmpool agent": "once it runs, one line: `url`, `pool` and `node_name`; `--check`: all settings, of several pools "
    "a list",
    "vmpool manifests": "a Kubernetes `List`, which `kubectl apply -f -` takes as well",
}
