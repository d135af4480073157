"""What the keys of JSON documents mean: the reference is written from here, a test compares it with the documents."""

from tenure.doors.cli.output.deployment_json_keys import ANSWERS as DEPLOYMENT_ANSWERS
from tenure.doors.cli.output.deployment_json_keys import DOCUMENTS as OF_DEPLOYMENTS
from tenure.doors.cli.output.vm_pool_json_keys import ANSWERS as VM_POOL_ANSWERS
from tenure.doors.cli.output.vm_pool_json_keys import DOCUMENTS as OF_VM_POOLS
from tenure.kernel.plan.plan_model import Policy

Keys = dict[str, str]

_POLICIES = [f"`{policy}`" for policy in Policy]

NOTES: Keys = {"labels": "labels, name to text", "description": "a few words for people"}

HOLDING: Keys = {
    "address": "the address, or the first of a prefix",
    "last_address": "the last address of what is held; the same unless a prefix is held",
    "unit": "prefix length of what is held: 32 or 128 for one address",
    "family": "`ipv4` or `ipv6`",
    "network": "name of the network",
    "prefix": "prefix length of the subnet",
    "gateway": "gateway of the subnet, or null",
    "owner": "who holds it",
    "slot": "which of the owner's slots; empty for the only one",
    "state": "`pending`, `held`, `draining` or `cooling`",
    "generation": "sets this holding apart from earlier ones of the address",
    "since": "when it began",
    "until": "deadline of a pending or cooling one, or null",
    "request": "the request that made it, or null; in the answer to a release, the request that ended it",
    **NOTES,
    "carrier": "the machine that carries the address, or null",
    "plan": "the operation it belongs to, or null",
    "actor": "on whose word, like `request`: `token/NAME` over HTTP, or null",
    "request_id": "and by which request of a server, or null",
}

CHANGE: Keys = {
    "seq": "number in commit order",
    "at": "when",
    "verb": "what happened: `grant`, `release`, `network.add`, …",
    "network": "name of the network as it is now, or null",
    "address": "the address, or null",
    "owner": "as of the holding, or null",
    "slot": "as of the holding, or null",
    "generation": "as of the holding, or null",
    "request": "the caller's name for the request that made this change, or null",
    "actor": "on whose word this change was made: `token/NAME` over HTTP, or null",
    "request_id": "and by which request of a server, or null",
    "details": "what else is told",
}

POOL: Keys = {
    "network": "name of the network",
    "subnet": "block it lies in",
    "range": "first-last",
    "name": "its name, or null; ranges of one name are one pool",
    "policy": f"{', '.join(_POLICIES[:-1])} or {_POLICIES[-1]}",
    "cooling_s": "seconds a released address rests",
    "retired": "whether nothing is picked from it",
    "rank": "lower ones are picked from first",
    **NOTES,
}

SUBNET: Keys = {
    "network": "name of the network",
    "cidr": "the block",
    "uuid": "its uuid",
    "name": "its name, or null",
    "gateway": "its gateway, or null",
    "dns": "name servers",
    "dhcp": "whether DHCP serves it",
    "zones": "availability zones",
    "unit": "prefix length it hands out",
    "keep_back": "what it keeps back by itself",
    "pools": "its pools, as pools without `network` and `subnet`",
    "reserved": "its reserved ranges, without `network` and `subnet`",
    "retired": "whether nothing is picked in it",
    **NOTES,
}

NETWORK: Keys = {
    "name": "its name",
    "space": "the space it is in; null in the answer to an edit",
    "uuid": "its uuid",
    "kind": "`manual`, `dynamic` or `vip`",
    "mac_prefix": "how MAC addresses on it begin, or null",
    "tags": "its tags",
    "subnets": "its subnets, without `network`",
    "preallocations": "its pre-allocations, without `network`",
    "retired": "whether nothing is picked in it",
    **NOTES,
    "connections": "groups it reaches, each with `group`, `mode`, `link` and `vlan`",
    "serial": "how often it was edited, from 1 on",
    "created_us": "when it was added, in microseconds since 1970; 0 where that is not known",
    "modified_us": "when it was edited last, likewise",
}

RESERVED: Keys = {
    "network": "name of the network",
    "subnet": "block it lies in",
    "range": "first-last",
    "reason": "why, and on whose word",
    "request": "the request that made it, or null",
    **NOTES,
}

PREALLOCATION: Keys = {
    "network": "name of the network",
    "address": "the address that waits",
    "owner": "whom it waits for",
    "slot": "which of the owner's slots",
    "request": "the request that made it, or null",
    **NOTES,
}

OVERVIEW: Keys = {
    "network": "name of the network",
    "space": "the space it is in",
    "pool": "name of the pool, or null",
    "family": "`ipv4` or `ipv6`: families are never added up; null for a network without subnets",
    "unit": "prefix length of one unit: 32 or 128 for an address, likewise",
    "size": "how many units it has; null for a network without pools",
    "held": "how many of them are held",
    "pending": "… are pending",
    "draining": "… are draining",
    "cooling": "… are cooling",
    "reserved": "… are reserved, kept back, pre-allocated or retired",
    "free": "… can be picked",
    "waiting": "claims that wait and could be served from it",
}

WAITING: Keys = {
    "network": "name of the network",
    "owner": "who waits",
    "slot": "which of the owner's slots",
    "place": "place in the line of its space; 1 is next",
    "since": "since when",
    "until": "until when its caller waits, or its place is kept unless it is asked for again; null: for ever",
    "pool": "the pool it wants, or null",
    "subnet": "the subnet it wants, or null",
    "zone": "the zone it wants, or null",
    "family": "the family it wants, `ipv4` or `ipv6`, or null",
}

FINDING: Keys = {
    "network": "the network that says so",
    "status": "a state, `reserved`, `pre-allocated`, `kept back`, `retired`, `outside pools`, `free`; "
    "`held elsewhere` where the token may not read who holds it",
    "text": "the explanation in words",
    "owner": "who holds it, or whom it waits for, or null",
    "since": "since when it is held, or null",
    "until": "deadline, or null",
    "request": "the request behind it, or null",
    "reason": "why it is kept away",
    **NOTES,
    "holding": "the holding, or null",
}

TENURE: Keys = {
    "address": "the address, or the first of a prefix",
    "last_address": "the last address of what was held",
    "network": "name of the network, or null where it is not known any more",
    "owner": "who held it",
    "slot": "which of the owner's slots",
    "generation": "of that holding, or null",
    "since": "from when, or null where it is not known",
    "until": "until when; null while it lasts",
    "ending": "`still held`, `released`, `transferred`, `cooling`, `cancelled` or `deadline passed`",
    "state": "the state of one that lasts, or null",
    "request": "the request that made it, or null",
    "actor": "on whose word it began: `token/NAME`; null where that is not known",
    "request_id": "and by which request of a server, or null",
    "ended_by": "the request that ended it, or null",
    "ended_actor": "on whose word it ended, or null",
    "ended_request_id": "and by which request of a server, or null",
    "to": "whom it was transferred to, or null",
    "to_slot": "and into which slot",
    "confirmed": "when it was confirmed, or null",
    "deadline": "deadline of a pending one, end of cooling, or null",
}

FOUND: Keys = {
    "kind": "`network`, `subnet`, `pool`, `reserved`, `preallocation` or `holding`",
    "network": "name of the network",
    "name": "what it goes by: name, reason or owner",
    "address": "where it lies: a block, range or address, or null",
    **NOTES,
    "holding": "the holding, or null",
}

MAP: Keys = {
    "network": "name of the network",
    "subnet": "the subnet's block",
    "pool": "name of the pool, or null where the whole subnet is drawn",
    "first": "first address of the picture",
    "last": "last address of the picture",
    "unit": "prefix length the subnet hands out",
    "cell_addresses": "how many addresses one sign stands for",
    "closer": "whether it is the closer look at a part of the picture before",
    "counts": "addresses of each kind: `outside` (in no pool), `free`, `reserved` and the states",
    "rows": "rows of up to 32 signs (ASCII), each with the `address` it begins at and its `cells`",
}

NETWORK_MAP: Keys = {
    "network": "name of the network",
    "subnet": "the subnet's block",
    "name": "its name, or null",
    "unit": "prefix length it hands out",
    "counts": "addresses of each kind: `outside` (in no pool), `free`, `reserved` and the states",
    "pools": "its pools: `name`, `first`, `last`, `size` and `counts`",
    "ranges": "the whole subnet in ranges: `first`, `last`, `size` and `kind`",
}

INSTANCE: Keys = {
    "name": "its name",
    "node": "the node it is on",
    "group": "the group of that node",
    "nic_count": "number of its NICs",
    "nics": "its NICs: `uuid`, `name`, `mac`, `network`, `network_uuid`, `mode`, `link`, `vlan`, `ips`",
    "ips": "addresses, a list for each NIC",
    "macs": "the MAC of each NIC",
    "networks": "the network of each NIC, or null",
    "uuid": "its uuid",
    "serial_no": "how often it was changed, from 1",
}

HOOK: Keys = {
    "name": "name of the file",
    "outcome": "`success`, `failed`, `timeout` or `skipped`",
    "code": "its exit code, negative for a signal, or null",
    "output": "the end of what it printed, or why it was skipped",
    "seconds": "how long it ran",
}

NODE: Keys = {
    "name": "its name",
    "group": "the group it belongs to",
    "primary_ip": "its own address, or null",
    "secondary_ip": "its address for replication, or null",
    "inst_list": "instances on it",
    "inst_cnt": "number of these instances",
    "uuid": "its uuid",
}

GROUP: Keys = {
    "name": "its name",
    "node_list": "nodes of the group",
    "node_cnt": "number of these nodes",
    "inst_list": "instances in the group",
    "inst_cnt": "number of these instances",
    "network_list": "networks connected to it, each a list: name, mode, link, vlan",
    "network_cnt": "number of these networks",
    "uuid": "its uuid",
}

GANETI_IMPORT: Keys = {
    "form": "form of the file: `today` or `revised`",
    "ok": "whether nothing is in the way",
    "written": "whether it was written",
    "applied": "whether differences were carried out",
    "counts": "how many of each section are new, addresses of NICs, and addresses that no NIC has (`orphans`)",
    "new": "names of what is new, by section",
    "present": "names of what is there already, by section",
    "findings": "what is odd, each with `place` and `reason`",
    "conflicts": "what is in the way, in words",
    "differences": "how the ledger differs (if `applied`: differed) from a later file: `kind`, `name`, `reason` and "
    "`command`",
    "moved": "what `--apply` does to addresses: `handed_over` and `released`; null without it",
}

NEUTRON: Keys = {
    "mode": "where addresses are kept: `database` or `ledger`",
    "clean": "whether everything agrees, now that it is over",
    "agreed": "whether an import has made it what all servers must agree on",
    "subnets": "how many subnets were compared",
    "addresses": "how many addresses were compared",
    "counts": "how many drifts there are of each kind",
    "drifts": "what did not agree: `kind`, `subnet`, `address` (or null), `text`, `repairable` (whether it can be put "
    "right here) and `outcome`: `found`, `repaired`, `left` or `in-flight` (a transaction is open behind it)",
}

TOKEN: Keys = {
    "id": "its id, which is no secret",
    "name": "its name",
    "scopes": "what it may do: `read`, `allocate:NETWORK`, `allocate:*`, `admin`",
    "created": "when it was made",
    "created_by": "on whose word",
    "expires": "when it ends, or null",
    "revoked": "when it was revoked, or null",
    "revoked_by": "on whose word, or null",
}

COPY: Keys = {
    "seq": "the copy is the ledger as of this change",
    "counts": "how many of each kind were copied",
    "digest": "of the content; equal for equal ledgers",
    "breaches": "invariants that do not hold, as of `verify`",
}

DOCUMENTS: dict[str, Keys] = {
    "holding": HOLDING,
    "change": CHANGE,
    "network": NETWORK,
    "subnet": SUBNET,
    "pool": POOL,
    "reserved range": RESERVED,
    "pre-allocation": PREALLOCATION,
    "overview": OVERVIEW,
    "waiting claim": WAITING,
    "finding": FINDING,
    "tenure": TENURE,
    "found": FOUND,
    "map": MAP,
    "network map": NETWORK_MAP,
    "instance": INSTANCE,
    "hook": HOOK,
    "node": NODE,
    "group": GROUP,
    "Ganeti import": GANETI_IMPORT,
    "Neutron report": NEUTRON,
    **OF_DEPLOYMENTS,
    **OF_VM_POOLS,
    "copy": COPY,
    "token": TOKEN,
}

ANSWERS: dict[str, str] = {
    "network show": "a network",
    "network add, modify, rename, retire, connect, disconnect, add-tags, remove-tags": "a network, `warnings` and "
    "`hooks` (a list of hooks)",
    "network list": "a list of networks; with `-o` of objects of these fields",
    "network list-tags": "a list of tags",
    "network info": "a list of objects of all fields of `network list-fields`",
    "network list-fields, instance list-fields, node list-fields, group list-fields": "a list of `name`, `title` and "
    "`doc`",
    "network map": "a list of network maps, one a subnet",
    "network import-ganeti": "a Ganeti import",
    "network export-ganeti, convert-runtime": "the file itself; with FILE or `--output`: `files`, `form`, `warnings`",
    "instance add, modify, rename, move, remove": "an instance, `changed` and `hooks` (a list of hooks)",
    "instance info": "an instance",
    "instance list": "a list of instances; with `-o` of objects of these fields",
    "instance env": "the variables, name to value",
    "node add": "a node",
    "node modify, node rename": "a node and `changed`",
    "node list": "a list of nodes; with `-o` of objects of these fields",
    "group add": "a group",
    "group rename, group assign-nodes": "a group and `changed`",
    "cluster info": "`master_ip`: the master's address, or null",
    "cluster modify": "`master_ip` and `changed`",
    "group list": "a list of groups; with `-o` of objects of these fields",
    "subnet add, modify, retire": "a subnet",
    "subnet list": "a list of subnets",
    "pool add, modify, retire, remove, list": "a list of pools, one a range",
    "pool map, show NETWORK --map": "a list of maps",
    "subnet remove, node remove, group remove": '`{"removed": {…}}` with the names',
    "network remove": '`{"removed": {…}}` with the name, and `hooks` (a list of hooks)',
    "reserve add, remove, list": "a list of reserved ranges",
    "preallocation add, remove, list": "a list of pre-allocations",
    "allocate, hold": "a holding and `warnings`; with `--count` a list of these",
    "confirm, transfer, holding modify": "a holding",
    "release, cancel": "the holding that ended, or null",
    "release-owner, sweep": "a list of the holdings that ended",
    "holding list, show OWNER": "a list of holdings",
    "waiting list": "a list of waiting claims",
    "waiting withdraw": '`{"withdrawn": true}` or false',
    "show": "a list of overviews, one a pool and family",
    "show NETWORK": "`network`, `pools` (overviews), `holdings` (the first 50) and `more_holdings`",
    "show ADDRESS, why": "`address` and `findings`",
    "history": "`address`, `tenures`, `trimmed` and `complete_since`",
    "search": "a list of found objects",
    "watch": "one change a line",
    "import": "`source`, `ok`, `written`, `faults`, `oddities`, `new` and `already`",
    "audit": "`sources`, `ok`, `compared`, `faults` and `discrepancies`",
    "export": "the export itself; with `--output`, `file` and `format`",
    "render": "`text` (or `zones`, or with a file `file` or `files`) and `left_out`",
    "render metal3": "`metaData` and `networkData` (or with a file `file`), `claims` with their addresses, and `notes`",
    "backup, restore, copy": "a copy",
    "neutron verify, reconcile, import": "a Neutron report",
    **DEPLOYMENT_ANSWERS,
    "token add": "a token and its text, `token`",
    "token list": "a list of tokens",
    "token revoke": "a token",
    "serve": "once it serves, one line: `url`, `store` and `token` (the first one, or null); `--check`: all settings",
    "operator": "once it runs, one line: `url`, `identity` and `controllers`; `--check`: all settings, and `server`",
    "manifests": "a Kubernetes `List`, which `kubectl apply -f -` takes as well; with `--metadata` a `Metadata`",
    "ipam why": "`address`, `pools` (`pool`, `status`, `text`, `claim`, `object`, `since`) and `ledgers` (`network`, "
    "`address` and `findings`, as of `why`)",
    "ipam free": "`pool`, `total`, `free`, `used`, `kept`, `waiting`, `names_taken` (addresses that are not given "
    "since another object has the name of theirs) and `next` (a list); on a ledger also `network` and `held_by_others`",
    "ipam drain": "`pool`, `drain` (ranges), `is_set` (whether `spec.tenure.drain` has them), `left`, "
    "`free_elsewhere`, `has_room` and `holders` (`address`, `name`, `kind`, `claim`, `owner`)",
    "ipam history": "`address`, `tenures`, `trimmed` and `complete_since`",
    "ipam import, export": "`network`, `realm`, `ok`, `written`, `addresses` and `unchanged` (`address`, `owner`, "
    "`labels`), and `collisions` (`address`, `owner`, `reason`)",
    **VM_POOL_ANSWERS,
    "archive": "`moved`: how many changes",
    "verify": "`clean` and `breaches` (`invariant`, `text`)",
    "bench": "a list of `what`, `callers`, `per_s` and `ratio`",
    "completion": "`shell` and `script`",
}
