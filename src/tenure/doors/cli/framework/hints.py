"""What to do next about an error: hints in words of the command line, so that they fit the command that failed."""

from typing import TYPE_CHECKING, Any

from tenure.doors.cli.session import Session
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused, Rejected
from tenure.kernel.errors import (
    AddressReserved,
    AlreadyExists,
    NotFound,
    Overlap,
    PoolExhausted,
    StillInUse,
    StoreUnavailable,
    TenureError,
)
from tenure.kernel.plan.invariants import WAITS

if TYPE_CHECKING:
    from tenure.kernel.plan.plan_model import Network

OTHER_SERVER = "look at `--server` or TENURE_SERVER: it may be of another release than this command"

HINTS = {
    "invalid": "`tenure {command} --help` shows what may be written",
    "bad_argument": "`tenure {command} --help` shows what may be written",
    "address_outside_subnet": "`tenure subnet list {network}` shows its blocks; `tenure subnet add` adds one",
    "template_refused": "mend the fields that are named; `tenure render metal3 --help` shows what may be written",
    "not_found": "`tenure show` lists what there is",
    "conflict": "read again with `tenure show`, then decide",
    "already_exists": "choose another name or slot, or use what exists: `tenure show`",
    "address_in_use": "`tenure why {address}` tells since when; name another address, or none to get the next free one",
    "address_reserved": "`--reserved allow` reaches reserved addresses, `--reserved force` kept-back ones, too",
    "overlap": "`tenure subnet list` and `tenure pool list` show what is there",
    "still_in_use": "change or remove NICs with `tenure instance modify NAME --net …` first, and let go of what others "
    "hold with `tenure release`",
    "not_owner": "`tenure why {address}` tells who holds it since when",
    "pool_exhausted": "`tenure pool add` adds addresses, `tenure release` frees one, `--wait SECONDS` waits for one",
    "key_reused": "a key stands for one request: choose a new one for another",
    "address_covered": "`tenure network list` shows which network it is",
    "hook_failed": "correct what the hook complains of, then run the command again",
    "in_flight": "run the same command again when it is over",
    "unreadable": "`tenure neutron reconcile` writes rows of ours anew; those of Neutron are yours to mend",
    "unauthorised": "`--token-file FILE` or TENURE_TOKEN tells who you are; `tenure token add` makes a token",
    "forbidden": "`tenure token list` shows what a token may do; `tenure token add` makes another",
    **dict.fromkeys(("rate_limited", "share_used_up", "overloaded", "too_slow"), "run the same command again, later"),
    "too_large": "ask for less at once",
    "not_installed": "whoever runs the server installs what it names",
    "precondition_failed": "read again with `tenure show`, then decide",
    "internal": "whoever runs the server finds the reason in its log",
    **dict.fromkeys(
        (
            "no_such_route",
            "method_not_allowed",
            "not_json",
            "malformed",
            "precondition_required",
            "version_not_supported",
        ),
        OTHER_SERVER,
    ),
    "document_rejected": "nothing was changed; correct the document, then run the command again",
    "deployment_refused": "nothing was changed; `tenure deployment show DEPLOYMENT` tells how it stands",
    "cursor_expired": "read the present state with `tenure show`, then go on with `--after {oldest}`",
}

CASCADING = ("network remove", "subnet remove")
CASCADE = "release the holdings, retire it to let it run dry, or end them all with `--cascade`"
"""What commands that can do so say of things in use."""

PENDING = "wait until the operations that want it are done, or end them with `tenure cancel`"

LEDGER_MISSING = "look at `--store` or TENURE_STORE; `tenure network add NAME` begins a new ledger"
CONFIG_MISSING = "look at `--store` or TENURE_STORE; `tenure deployment upload-config FILE` begins a new ledger"
SERVER_SILENT = "look at `--server` or TENURE_SERVER; `tenure serve` starts a server"
ORIGINS = {"restore": "FILE is what `tenure backup FILE` wrote", "copy": "SOURCE is the URL of the ledger to copy"}
"""What to look at when the ledger to read is not there, in commands that fill another."""

RESERVED_HINTS = {
    "cooling": "wait until then, name another address, or none to get the next free one",
    "retired": "`--undo` of the command that retired it takes it back into use; or name another address",
    "waiting": "name another address, or wait in line with `--wait SECONDS` and without `--address`",
}
"""What to do about an address that no reach of ``--reserved`` gets, by what it is kept as."""

LISTED = {
    "network": "`tenure network list` lists them",
    "subnet": "`tenure subnet list {network}` lists them",
    "pool": "`tenure pool list {network}` lists them",
    "IPv4 pool": "`tenure pool list {network}` lists its pools",
    "IPv6 pool": "`tenure pool list {network}` lists its pools",
    "IPv4 subnet": "`tenure subnet list {network}` lists its subnets",
    "IPv6 subnet": "`tenure subnet list {network}` lists its subnets",
    "connection": "`tenure network info {network}` shows what it is connected to",
    "holding": "`tenure show {network}` lists what is held",
    "reserved range": "`tenure reserve list {network}` lists them",
    "pre-allocation": "`tenure preallocation list {network}` lists them",
    "group": "`tenure group list` lists them",
    "node": "`tenure node list` lists them",
    "instance": "`tenure instance list` lists them",
    "NIC": "`tenure instance info NAME` shows its NICs",
    "tag": "`tenure network list-tags {network}` lists them",
    "field": "`list-fields` lists them",
    "token": "`tenure token list` lists them",
    "deployment": "`tenure deployment list` lists them; `tenure deployment apply FILE` makes one",
    "errand": "an errand is a group of the deployed manifest whose lifecycle is `errand`",
    "compile worker": "`tenure deployment compile DEPLOYMENT` tells the workers of a compile, or begins one",
}
"""Where to look for what is not found, by its kind."""

TAKEN = {
    "mac": "leave mac= out to have one made up",
    "NIC": "choose another name=, or leave it out",
    "instance": "choose another name: `tenure instance list` lists those there are",
    "node": "choose another name: `tenure node list` lists those there are",
    "group": "choose another name: `tenure group list` lists those there are",
    "token": "`tenure token revoke {name}` frees the name",
}
"""What to do about a name that is taken, by what has it."""

IN_USE_HINTS = {
    "group": "`tenure group list` shows what is in a group",
    "node": "`tenure node list -o name,inst_list` shows what is on a node",
    "network": "`tenure network info {name}` shows who is on it",
}
"""Where to look for what keeps a thing from going, if that is no holding."""

PREALLOCATED = (
    "`tenure preallocation remove {network} OWNER` gives it up; `tenure preallocation list {network}` lists them"
)
RESERVED_OUTSIDE = "`tenure reserve list {network}` lists them; `tenure reserve remove {network} RANGE` lifts one"
NODE_ADDRESS = "give the node another address, or pass `--no-conflicts-check`"
FORM = "`--form revised` can say it"
LATER_NETWORK = "`tenure network list` lists them; `--allow-missing` lets scopes name networks that come later"
PLAN = (
    "`tenure deployment show DEPLOYMENT INSTANCE` names the plan that it waits for, and those of earlier VMs; `--plan` "
    "says which one you mean"
)
PLANLESS = (
    "`tenure deployment show DEPLOYMENT INSTANCE` tells of the earlier VMs, and what to say of them; "
    "`tenure deployment apply FILE` gives the VM that it waits for a plan"
)

INSTANCE_HINTS = {
    "address_reserved": "`--force` lets externally reserved addresses be had, too",
    "pool_exhausted": "`tenure network modify --pool add:RANGE {network}` adds addresses",
}
"""What commands on instances say otherwise."""

DEPLOYMENT_HINTS = {
    "not_found": "`tenure deployment show DEPLOYMENT` lists its instances",
    "conflict": "`tenure deployment show DEPLOYMENT` tells how it stands",
}
"""What commands on deployments say otherwise."""

UNIGNORE = "`tenure deployment unignore DEPLOYMENT INSTANCE` takes an instance into deploys again"
FAULT_HINTS = {
    BoshErrorKind.DEPLOYMENT_NO_NETWORKS: "`tenure deployment upload-config FILE` brings a cloud config with networks",
    BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE: "name another address, or free this one with a deploy of its own "
    "first",
    BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY: "widen the network in the cloud config, ask for fewer "
    "instances, or free addresses: `tenure deployment list` shows who has some, `tenure deployment cleanup-orphans` "
    "VMs to delete",
    BoshErrorKind.DEPLOYMENT_IGNORED_INSTANCES_MODIFICATION: UNIGNORE,
    BoshErrorKind.DEPLOYMENT_IGNORED_INSTANCES_DELETION: UNIGNORE,
}
"""What helps against a fault, by its kind."""

NEUTRON_HINTS = {
    "store_unavailable": "look at `--database` and `--ledger`, or at the configuration file",
    "not_found": "look at `--database` and `--ledger`, or at the configuration file",
    "conflict": "`tenure {command} --help` shows what may be said instead of the configuration file",
}
"""What commands on a Neutron say: its store is its own."""

VM_POOL_HINTS = {
    "not_found": "`tenure vmpool list` lists what is allocated",
    "conflict": "`tenure vmpool status` shows how the pool stands, and in which mode",
    "vm_pool_exhausted": "`tenure vmpool list` shows who has the VMs; `--wait SECONDS` waits for one; `tenure "
    "vmpool resize --add` adds addresses",
    "pool_swap_conflict": "run the same command again; `--operation-timeout` gives it more time",
    "pool_state_unreadable": "`kubectl get configmap NAME -o yaml` shows it; `tenure vmpool repair "
    "--replace-unreadable` copies it aside; without a readable state nothing is allocated then",
    "pool_state_misplaced": "`tenure vmpool verify` shows what is there; `tenure vmpool repair` moves it to data",
    "pool_namespace_missing": "`kubectl create namespace {namespace}` makes it; `--pool-namespace` names another one",
    "pool_unavailable": "run the same command again: under the same id it gets the same VM",
    "pool_forbidden": "`tenure vmpool manifests --pool-configmap-name NAME` prints the role that is needed; `--only "
    "rbac,modes` that for other modes and moves, `--only rbac,sizing` that for resizing",
    "pool_too_large": "`tenure vmpool status` shows the size; several pools have a ConfigMap each",
    "pool_write_refused": "`kubectl describe configmap NAME` shows whether it may be changed",
    "vm_not_ready": "see to the VM; `tenure vmpool status` lists failed cleanups",
    "vm_work_unfinished": "run the same command again",
    "instance_failed": "create the instance again; delete it first if its VM was not given back",
    "recovery_interrupted": "run `tenure vmpool recover` again: nothing was released",
    "node_mismatch": "run the agent on the node that it names, or name this one by `--node-name`",
    "namespace_unknown": "`--pool-namespace` or POOL_NAMESPACE names the namespace",
    "node_name_unknown": "`--node-name` or NODE_NAME names the node",
    "node_name_taken": "give each node a name of its own; `tenure vmpool agent --take-over` takes a dead one's place",
}
"""What commands on VM pools say: they have no ledger."""

WITHOUT_LEDGER = {"neutron": NEUTRON_HINTS, "vmpool": VM_POOL_HINTS}
"""Hints of commands whose store is not the ledger that ``--store`` names, by their first word."""

IPAM_HINTS = {
    "not_found": "`kubectl get ippools,ipclaims --all-namespaces` lists what the cluster has",
    "store_unavailable": "look at `--kubeconfig` and `--context`; or, if it is the ledger, at `--server` and `--store`",
    "forbidden": "`kubectl auth can-i --list` shows your rights; in a ledger those of the pool's Secret count",
}
"""What commands on a cluster's pools say: they ask with the user's own rights, and the ledger is the pool's."""

WITHOUT_HISTORY = (
    "`tenure ipam why {name}` tells who has it now; set spec.tenure.ledger of its pool, and what comes then is kept"
)
"""What is said of an address of a cluster whose pool has no ledger: none that is begun elsewhere knows of it."""

RENDER_HINTS = {"not_found": "`tenure render metal3 --help` shows what is read"}
"""What commands say that read files."""

RETIRED_NETWORK = "the network is retired: `tenure network retire {network} --undo` takes it back into use"
RETIRED_POOLS = (
    "all of it is retired: `--undo` of `tenure pool retire` or `tenure subnet retire` takes it back into use"
)

NOTHING_OPEN = (
    "`tenure reserve list {network}` shows what is reserved, `tenure reserve remove` lifts it; `tenure pool add` adds "
    "addresses; `tenure why ADDRESS` tells what else keeps one away"
)


def next_step(session: Session, error: TenureError) -> str | None:
    """Say what to do next, in words of the command line."""
    is_of_ledger = not session.command.startswith("vmpool ")
    text = _retired_hint(session, error) if isinstance(error, PoolExhausted) and is_of_ledger else None
    text = text or _special_hint(error, session.command) or HINTS.get(error.code)
    if text is None and isinstance(error, StoreUnavailable) and is_of_ledger:
        if error.outcome == "unknown":
            return "repeat the same command to learn the outcome"
        return SERVER_SILENT if session.named_server is not None else "look at `--store` or TENURE_STORE"
    return None if text is None else text.format_map(_Words({"command": session.command, **vars(error)}))


def _special_hint(error: TenureError, command: str) -> str | None:
    """Say what helps in cases for which the hint of the code would lead astray."""
    noun = command.partition(" ")[0]
    if noun in WITHOUT_LEDGER:
        return WITHOUT_LEDGER[noun].get(error.code)
    if found := _hint_beside_ledger(error, command):
        return found
    if isinstance(error, Refused | Rejected):
        return next((FAULT_HINTS[fault.kind] for fault in error.faults if fault.kind in FAULT_HINTS), None)
    if command in ORIGINS and error.field in ("path", "ledger"):
        return ORIGINS[command]
    if isinstance(error, NotFound):
        return _missing_hint(error.kind, noun)
    if isinstance(error, AlreadyExists) and error.kind in TAKEN:
        return TAKEN[error.kind]
    if isinstance(error, StillInUse):
        return _in_use_hint(error, command)
    if isinstance(error, Overlap) and error.first.startswith("reserved range "):
        return RESERVED_OUTSIDE
    if isinstance(error, AddressReserved) and (found := RESERVED_HINTS.get(error.kept_as or "")):
        return found
    return _field_hint(error, noun) or {"instance": INSTANCE_HINTS, "deployment": DEPLOYMENT_HINTS}.get(noun, {}).get(
        error.code
    )


def _hint_beside_ledger(error: TenureError, command: str) -> str | None:
    """Say what helps where a command reads a cluster or files, and only its networks and holdings are a ledger's."""
    if command == "ipam history" and isinstance(error, NotFound) and error.field == "address":
        return WITHOUT_HISTORY
    if isinstance(error, NotFound) and error.kind in ("network", "holding", "ledger"):
        return None
    if command == "render metal3":
        return RENDER_HINTS.get(error.code)
    return IPAM_HINTS.get(error.code) if command.startswith("ipam ") else None


def _field_hint(error: TenureError, noun: str) -> str | None:
    """Say what helps against an error of one field."""
    match (noun, error.code, error.field):
        case (_, "conflict", "form"):
            return FORM
        case ("deployment", "conflict", "plan"):
            # No ``--plan`` helps where the VM that is waited for has none.
            return PLANLESS if error.case == "awaited_vm_without_plan" else PLAN
        case ("token", "invalid", "scopes") if error.case == "missing_network":
            return LATER_NETWORK
    return None


def _missing_hint(kind: str, noun: str) -> str | None:
    if noun == "deployment" and kind == "instance":
        return DEPLOYMENT_HINTS["not_found"]
    if kind == "ledger":
        return CONFIG_MISSING if noun == "deployment" else LEDGER_MISSING
    return LISTED.get(kind)


def _in_use_hint(error: StillInUse, command: str) -> str | None:
    if any(f"{WAITS})" in holder for holder in error.holders):
        return PREALLOCATED
    # Owners of holdings have a slash in their names; a holder without one is a node, a group or an instance.
    if command.startswith("node ") or not all("/" in holder for holder in error.holders):
        return IN_USE_HINTS.get(error.kind, NODE_ADDRESS)
    if command in CASCADING:
        return CASCADE
    return PENDING if all(", pending" in holder for holder in error.holders) else None


def _retired_hint(session: Session, error: PoolExhausted) -> str | None:
    """Look whether nothing is free only because nothing is in use, or may be."""
    try:
        # The ledger of the command is closed by now, so the hint opens it once more.
        network = session.run(lambda ledger: ledger.network(error.network))
    except TenureError:
        return None  # a hint less; what went wrong is told anyway
    if network.retired:
        return RETIRED_NETWORK
    if _all_retired(network, error.pool):
        return RETIRED_POOLS
    return NOTHING_OPEN if error.case == "nothing_open" else None


def _all_retired(network: "Network", pool: str | None) -> bool:
    wanted = [(subnet, each) for subnet, each in network.pools() if pool in (None, each.name)]
    return bool(wanted) and all(subnet.retired or each.retired for subnet, each in wanted)


class _Words(dict[str, Any]):
    """What a hint may name; a word that an error does not carry is left as a place to fill in."""

    def __missing__(self, name: str) -> str:
        return name.upper()
