"""What the keys of documents about deployments mean; a part of ``json_keys``."""

Keys = dict[str, str]

FAULT: Keys = {
    "error": "its name, as BOSH has it",
    "number": "its number, as BOSH has it",
    "message": "what is wrong",
    "place": "where: `document`, `line`, `column` and `path`; null where no document is at fault",
}

CONFIG_UPLOAD: Keys = {
    "name": "the cloud config's name",
    "written": "whether it is in force now, or with `delete-config` no more",
    "networks": "networks that it changes in the ledger",
    "moves": "addresses that fit no more: `deployment`, `instance`, `uuid`, `ignored`, `network`, `address`, `reason`",
    "warnings": "a list of faults that are none yet",
}

CLOUD_CONFIG: Keys = {
    "name": "its name",
    "revision": "how often it was uploaded",
    "text": "what was uploaded",
}

DEPLOYMENT_PLAN: Keys = {
    "deployment": "the deployment's name",
    "plan": "the plan's name; null for one that was only tried",
    "applied": "whether its addresses are reserved",
    "changes": "whether there is anything to do",
    "counts": "how many instances are `created`, `moved`, `changed`, `recreated`, `kept` or leave (`leaves`)",
    "ends_compile": "the compile that ends with it, whose workers' VMs are orphans then; null if none goes on",
    "instances": "a list of plan steps",
}

PLAN_STEP: Keys = {
    "instance": "the instance, as commands name it",
    "uuid": "its uuid; null for a new one in a plan that was only tried",
    "group": "its group",
    "index": "its number in the group",
    "az": "its availability zone, or null",
    "vm": "the VM it has now, or null",
    "action": "`created`, `moved` (to another address), `changed` (a network more or less), `recreated` (a new VM on "
    "the same addresses), `kept` or `leaves`",
    "waits_for": "`vm` (one to be made and committed), `deletion` (of the VM it has), `hand_over` (of addresses that "
    "others still have), `start` or null",
    "plan": "the plan that it waits for or leaves by; null if none, and in a plan that was only tried",
    "calls_off": "the plan whose VM it waited for, where none is wanted any more; null if none is called off",
    "needs_plan": "whether `commit` must say which plan the VM was made for: an earlier one wanted other settings",
    "earlier": "VMs that are not wanted any more and are perhaps being made: `plan` (null for one in place of a lost "
    "one, and for one that was forgotten) and `addresses` that each may come up on. It ends by `fail`, `abort`, `lose` "
    "of who leaves, `end-errand`, or another VM",
    "swaps": "whether its new VM is made beside the old one",
    "hand_overs": "addresses that others must give up first: `network`, `address`, `of` (whose it is)",
    "networks": "its networks: `network`, `type`, `before` (addresses it gives up), `after` (the one it has then), "
    "`static` and `new` (whether the plan reserves it)",
    "settings": "network settings for its VM, by network; null if it leaves, or has no addresses yet",
}

DEPLOYED_INSTANCE: Keys = {
    "name": "GROUP/UUID",
    "deployment": "its deployment",
    "group": "its group",
    "index": "its number in the group",
    "uuid": "its uuid",
    "az": "its availability zone, or null",
    "state": "`started`, `stopped` or `detached` (stopped hard)",
    "vm": "the VM that it has, or null",
    "waits_for": "as of a plan step",
    "plan": "the plan that it waits for, or null",
    "needs_plan": "as of a plan step",
    "earlier": "as of a plan step",
    "failed": "whether its last VM could not be made",
    "leaving": "whether it goes when its VM is deleted, and none is perhaps being made",
    "ignored": "whether deploys leave it alone",
    "errand": "whether its VM is there only while its group is run",
    "addresses": "what it holds: `network`, `address`, `state`, `vm` (that carries it), `plan` (that reserved it) "
    "and `since`; without a cloud config what it is made with, in state `remembered`",
    "hand_overs": "as of a plan step",
    "hints": "addresses that the IaaS picked, by dynamic network",
    "networks": "the networks it is on: `name`, `nic_group`, `defaults`",
}

DEPLOYMENT: Keys = {
    "name": "its name",
    "plan": "the last plan that was applied",
    "config": "`current` if it was deployed with the cloud config in force, `older`, or `own` for networks of its own",
    "groups": "its groups",
    "instances": "how many instances it has",
    "waiting": "how many of them wait for something, if only for word of an earlier VM",
    "leaving": "how many leave",
    "ignored": "how many are ignored",
    "addresses": "how many addresses they hold",
}

ADDRESS_REASON: Keys = {
    "network": "the network",
    "address": "the address; null where the IaaS has told none yet",
    "state": "`held`, `draining` (until the VM is another), or null for one that the ledger does not hold",
    "origin": "`static` (asked for by name), `picked`, `iaas`, or `vm` where the deployment has networks of its own",
    "why": "why it is this one",
    "subnet": "the subnet it lies in, or null",
    "azs": "the availability zones of that subnet, or null",
    "since": "since when it is held",
    "plan": "the plan that reserved it, or null",
    "vm": "the VM that carries it, or null",
    "moves": "why the next deploy gives another one; null if it does not",
    "changes": "what would change it, in words",
}

ORPHAN: Keys = {
    "vm": "the VM",
    "deployment": "the deployment it belonged to",
    "instance": "the instance it belonged to",
    "addresses": "what it keeps until it is deleted, as of a deployed instance",
}

LOST_VM: Keys = {
    "vm": "the VM that is gone",
    "resolution": "what was done about it: `recreate`, `forget`, or null",
    "instance": "whose it was: a deployed instance with `settings`, as it is now",
}

COMPILE: Keys = {
    "deployment": "the deployment",
    "plan": "the plan that is compiled for",
    "network": "the network that workers are in",
    "az": "their availability zone, or null",
    "orphan_workers": "whether their VMs keep their addresses until they are cleaned up",
    "workers": "a list: `number`, `vm` (null until it is reported), `address` (null where the IaaS picks) and "
    "`settings` (by network; only `compile` tells them)",
}

MANAGED_NETWORK: Keys = {
    "name": "its name in the cloud config",
    "state": "`ready`, or `creating` or `deleting` while somebody is at work on it",
    "orphaned": "whether no deployment uses it",
    "deployments": "which deployments use it",
    "subnets": "what the cloud made: `name`, `cid` (its name there), and what the cloud chose: `range`, `gateway`, "
    "`reserved`, `cloud_properties`",
}

DOCUMENTS: dict[str, Keys] = {
    "fault": FAULT,
    "config upload": CONFIG_UPLOAD,
    "cloud config": CLOUD_CONFIG,
    "deployment plan": DEPLOYMENT_PLAN,
    "plan step": PLAN_STEP,
    "deployment": DEPLOYMENT,
    "deployed instance": DEPLOYED_INSTANCE,
    "address reason": ADDRESS_REASON,
    "orphan": ORPHAN,
    "lost VM": LOST_VM,
    "compile": COMPILE,
    "managed network": MANAGED_NETWORK,
}

ANSWERS: dict[str, str] = {
    "deployment upload-config, delete-config": "a config upload",
    "deployment configs": "a list of cloud configs",
    "deployment plan, apply": "a deployment plan",
    "deployment abort": "`deployment`, `plan`, `taken_back` (whether anything was left of it) and `freed` "
    "(addresses as of a deployed instance)",
    "deployment delete": "`deployment`, `gone`, `waiting` (deployed instances whose VMs must be deleted first) and "
    "`orphans` (VMs of it that keep addresses until they are cleaned up)",
    "deployment commit, fail, lose, stop, start, ignore, unignore": "a deployed instance, `gone` (whether it is) and "
    "`settings`",
    "deployment cleanup-orphans": "a list of orphans: those that are cleaned up, or without VM all",
    "deployment recreate, run-errand": "a deployment plan",
    "deployment cck": "`deployment` and `missing` (a list of lost VMs)",
    "deployment end-errand": "`deployment`, `errand` and `instances` (deployed instances)",
    "deployment compile, commit-worker": "a compile",
    "deployment end-compile": "`deployment`, `ended` (whether there was one) and `compile` (the one that is over)",
    "deployment networks": "a list of managed networks",
    "deployment list": "a list of deployments",
    "deployment show DEPLOYMENT": "`name`, `plan`, `config` and `instances` (deployed instances)",
    "deployment show DEPLOYMENT INSTANCE": "a deployed instance and `settings`",
    "deployment diff": "`deployment`, `same`, `differences` (`path`, `before`, `after`) and `networks` (changed since)",
    "deployment why": "`name`, `deployment`, `group`, `index`, `az`, `state`, `vm`, `waits_for`, `earlier`, `waiting` "
    "(in words) and `reasons` (a list of address reasons)",
}
