"""What the keys of documents about deployments mean; a part of ``keys``."""

Keys = dict[str, str]

FAULT: Keys = {
    "error": "its name, as BOSH has it",
    "number": "its number, as BOSH has it",
    "message": "what is wrong",
    "place": "where: `document`, `line`, `column` and `path`; null where no document is at fault",
}

CONFIG_UPLOAD: Keys = {
    "name": "the cloud config's name",
    "written": "whether it is in force now",
    "networks": "networks that it changes in the ledger",
    "moves": "addresses that fit no more: `deployment`, `instance`, `uuid`, `ignored`, `network`, `address`, `reason`",
    "warnings": "a list of faults that are none yet",
}

DEPLOYMENT_PLAN: Keys = {
    "deployment": "the deployment's name",
    "plan": "the plan's name; null for one that was only tried",
    "applied": "whether its addresses are reserved",
    "changes": "whether there is anything to do",
    "counts": "how many instances are `created`, `moved`, `changed`, `recreated`, `kept` or leave (`leaves`)",
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
    "failed": "whether its last VM could not be made",
    "leaving": "whether it goes when its VM is deleted",
    "ignored": "whether deploys leave it alone",
    "addresses": "what it holds: `network`, `address`, `state`, `vm` (that carries it), `plan` (that reserved it) "
    "and `since`",
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
    "waiting": "how many of them wait for something",
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

DOCUMENTS: dict[str, Keys] = {
    "fault": FAULT,
    "config upload": CONFIG_UPLOAD,
    "deployment plan": DEPLOYMENT_PLAN,
    "plan step": PLAN_STEP,
    "deployment": DEPLOYMENT,
    "deployed instance": DEPLOYED_INSTANCE,
    "address reason": ADDRESS_REASON,
    "orphan": ORPHAN,
}

ANSWERS: dict[str, str] = {
    "deployment upload-config": "a config upload",
    "deployment plan, apply": "a deployment plan",
    "deployment abort": "`deployment`, `plan` and `freed` (addresses as of a deployed instance)",
    "deployment delete": "`deployment`, `gone` and `waiting` (deployed instances whose VMs must be deleted first)",
    "deployment commit, fail, lose, stop, start, ignore, unignore": "a deployed instance, `gone` (whether it is) and "
    "`settings`",
    "deployment cleanup-orphans": "a list of orphans: those that are cleaned up, or without VM all",
    "deployment list": "a list of deployments",
    "deployment show DEPLOYMENT": "`name`, `plan`, `config` and `instances` (deployed instances)",
    "deployment show DEPLOYMENT INSTANCE": "a deployed instance and `settings`",
    "deployment diff": "`deployment`, `same`, `differences` (`path`, `before`, `after`) and `networks` (changed since)",
    "deployment why": "`name`, `deployment`, `group`, `index`, `az`, `state`, `vm`, `waits_for`, `waiting` (in words) "
    "and `reasons` (a list of address reasons)",
}
