"""Instances and plans as documents, for programs and for whoever writes lines of them. Keys are stable."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tenure.integrations.bosh.cloud_config.moved_instances import Moved, was_asked_for
from tenure.integrations.bosh.model.bosh_errors import Refused
from tenure.integrations.bosh.model.document_model import DYNAMIC, CloudConfig
from tenure.integrations.bosh.planning.explain_instance import Reason, waiting_text, waits_for
from tenure.integrations.bosh.planning.steps import Step
from tenure.integrations.bosh.state.compile_workers import Compiling
from tenure.integrations.bosh.state.instance_state import DeploymentInstance, is_overtaken, place_of
from tenure.integrations.bosh.state.managed_records import Managed
from tenure.integrations.bosh.state.pending_vms import told
from tenure.integrations.bosh.state.vm_settings import by_network, settings_of
from tenure.integrations.bosh.verbs.deploy import Deployed
from tenure.integrations.bosh.views.queries import Compared, Explained
from tenure.kernel.holdings.holding_model import Holding

Document = dict[str, Any]

REMEMBERED = "remembered"
"""The state of an address that no ledger holds: without a cloud config only VMs do."""

CREATED, KEPT, RECREATED, CHANGED, MOVED, LEAVES = "created", "kept", "recreated", "changed", "moved", "leaves"
"""What a plan does with an instance. Recreated: a new VM on the same addresses. Changed: a network more or less."""

ACTIONS = (CREATED, MOVED, CHANGED, RECREATED, LEAVES, KEPT)


def instance_document(instance: DeploymentInstance) -> Document:
    """Write an instance with all that it holds."""
    return {
        "name": instance.name,
        "deployment": instance.deployment,
        "group": instance.group,
        "index": instance.index,
        "uuid": instance.uuid,
        "az": instance.az,
        "state": instance.state,
        "vm": instance.vm,
        "waits_for": waits_for(instance),
        "plan": instance.plan,
        "needs_plan": bool(instance.earlier),
        "earlier": _earlier(instance),
        "failed": instance.failed,
        "leaving": instance.leaving,
        "ignored": instance.ignored,
        "errand": instance.errand,
        "addresses": [*map(address_document, instance.holdings), *_remembered_documents(instance)],
        "hand_overs": [dict(each) for each in instance.waits],
        "hints": dict(instance.hints),
        "networks": [dict(said) for said in instance.networks],
    }


def _earlier(instance: DeploymentInstance | None) -> list[Document]:
    """Write the VMs that nobody told of, and that are not wanted any more."""
    earlier = () if instance is None else instance.earlier
    return [{"plan": each.plan, "addresses": list(each.addresses)} for each in earlier]


def _remembered_documents(instance: DeploymentInstance) -> Iterator[Document]:
    """Write the addresses that, without a cloud config, only an instance's VM holds."""
    vm = instance.vm if instance.meant is None else None
    for network, address in instance.remembered.items():
        yield {
            "network": network, "address": address, "state": REMEMBERED, "vm": vm, "plan": instance.plan, "since": None
        }  # fmt: skip


def address_document(held: Holding) -> Document:
    """Write an address that is held."""
    return {
        "network": held.network,
        "address": told(held),
        "state": str(held.state),
        "vm": held.carrier,
        "plan": held.plan or held.request,
        "since": time_text(held.since),
    }


def time_text(moment: datetime | None) -> str | None:
    """Write a time: ISO 8601, UTC."""
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def moved_document(moved: Moved) -> Document:
    """Write whom a cloud config would move."""
    instance = moved.instance
    return {
        "deployment": instance.deployment,
        "instance": f"{instance.group}/{instance.index}",
        "uuid": instance.uuid,
        "ignored": instance.ignored,
        "network": moved.held.network,
        "address": told(moved.held),
        "reason": moved.reason,
    }


def reason_document(reason: Reason) -> Document:
    """Write why an instance has an address."""
    return {
        "network": reason.network,
        "address": reason.address,
        "state": reason.state,
        "origin": reason.origin,
        "why": reason.why,
        "subnet": reason.subnet,
        "azs": None if reason.azs is None else list(reason.azs),
        "since": time_text(reason.since),
        "plan": reason.plan,
        "vm": reason.carrier,
        "moves": reason.moves,
        "changes": list(reason.changes),
    }


def why_document(explained: Explained) -> Document:
    """Write why an instance has its addresses."""
    document = instance_document(explained.instance)
    keys = ("name", "deployment", "group", "index", "az", "state", "vm", "waits_for", "earlier")
    return {
        **{key: document[key] for key in keys},
        "waiting": waiting_text(explained.instance),
        "reasons": [reason_document(reason) for reason in explained.reasons],
    }


def difference_document(compared: Compared) -> Document:
    """Write how a manifest differs from what is deployed."""
    differences = [{"path": each.path, "before": each.before, "after": each.after} for each in compared.differences]
    return {
        "deployment": compared.deployment,
        "same": not differences and not compared.networks,
        "differences": differences,
        "networks": list(compared.networks),
    }


def compile_document(compiling: Compiling) -> Document:
    """Write a compile; workers have settings only where it was just begun, which is told to whoever makes the VMs."""
    return {
        "deployment": compiling.deployment,
        "plan": compiling.plan,
        "network": compiling.network,
        "az": compiling.az,
        "orphan_workers": compiling.orphans,
        "workers": [
            {
                "number": each.number,
                "vm": each.vm,
                "address": None if each.holding is None else told(each.holding),
                "settings": each.settings or None,
            }
            for each in compiling.workers
        ],
    }


def managed_document(managed: Managed) -> Document:
    """Write a managed network: what the cloud made, and who uses it."""
    return {
        "name": managed.name,
        "state": managed.state,
        "orphaned": managed.orphaned,
        "deployments": list(managed.deployments),
        "subnets": [
            {
                "name": name,
                "cid": each.cid,
                "range": each.range,
                "gateway": each.gateway,
                "reserved": list(each.reserved),
                "cloud_properties": dict(each.cloud_properties),
            }
            for name, each in managed.subnets.items()
        ],
    }


def plan_document(deployed: Deployed, *, applied: bool) -> Document:
    """Write a plan: what it does with each instance, and with which settings VMs are to be made.

    One that was only tried has no name, and its new instances have no uuids: the next try would give others.
    """
    names = Counter((step.instance.group, step.instance.index) for step in deployed.steps)
    steps = [_step(step, deployed, names, applied=applied) for step in deployed.steps]
    counts = {action: sum(step["action"] == action for step in steps) for action in ACTIONS}
    return {
        "deployment": deployed.deployment,
        "plan": deployed.plan if applied else None,
        "applied": applied,
        "changes": deployed.changes,
        "counts": counts,
        "ends_compile": None if deployed.ends is None else compile_document(deployed.ends),
        "instances": steps,
    }


def _step(step: Step, deployed: Deployed, names: Mapping[tuple[str, int], int], *, applied: bool) -> Document:
    """Write what a plan does with one instance, which is named as briefly as it can be told from the others."""
    instance, after = step.instance, step.after
    known = applied or step.before is not None
    alone = names[instance.group, instance.index] == 1
    return {
        "instance": f"{instance.group}/{instance.index}" if alone or not known else instance.name,
        "uuid": instance.uuid if known else None,
        "group": instance.group,
        "index": instance.index,
        "az": instance.az,
        "vm": instance.vm,
        "action": _action(step, deployed.plan),
        "waits_for": _waits_for(step),
        "plan": _plan(step, deployed, applied=applied),
        "calls_off": None if not step.calls_off or step.before is None else step.before.making.plan,
        "needs_plan": step.after is not None and bool(step.after.earlier),
        "earlier": _earlier(step.after or step.goes),
        "swaps": step.swaps,
        "hand_overs": [dict(each) for each in instance.waits],
        "networks": network_documents(step, deployed),
        "settings": None if after is None else settings(after, deployed.config, _held_at_once(step, deployed)),
    }


def _plan(step: Step, deployed: Deployed, *, applied: bool) -> str | None:
    """Return the plan that an instance waits for once this one is applied; one that was only tried has no name yet."""
    plan = step.instance.plan if step.after is not None else deployed.plan
    return None if plan == deployed.plan and not applied else plan


def _waits_for(step: Step) -> str | None:
    """Tell what an instance waits for once the plan is applied; one that leaves and can have no VM is gone then."""
    if step.after is not None:
        return waits_for(step.after)
    return None if step.ends else waits_for(replace(step.instance, leaving=True))


def _action(step: Step, plan: str) -> str:
    if step.before is None:
        return CREATED
    if step.after is None:
        return LEAVES
    overtaken = {place_of(each) for each in step.before.holdings if is_overtaken(each)}  # given up by a plan before
    new = {each.network for each in step.bound.new}
    old = {each.network for each in step.bound.obsolete if (each.network, each.position) not in overtaken}
    if old & (new | {kept.wants.network for kept in step.bound.kept}):
        return MOVED
    if new or old:
        return CHANGED
    if step.after.plan != plan:
        return KEPT
    return CREATED if step.before.is_new else RECREATED


def held_after(step: Step, deployed: Deployed) -> list[Holding]:
    """Return what an instance holds and keeps once the plan is done, under the names that networks have now."""
    names = {(kept.has.network, kept.has.position): kept.wants.network for kept in step.bound.kept}
    had = () if step.before is None else step.before.holdings
    places = ((held, place_of(held)) for held in had)
    kept = [replace(held, network=names[place]) for held, place in places if place in names]
    given = {promise.held.network: promise.held for promise in step.gets}
    wishes = (wish.network for wish in step.bound.new)
    new = (deployed.granted.get((step.instance.uuid, name)) or given.get(name) for name in wishes)
    return kept + [held for held in new if held is not None]


def _held_at_once(step: Step, deployed: Deployed) -> list[Holding]:
    """Return what an instance has as soon as the plan is made: what it waits for is still another's."""
    awaited = {(each["network"], each["address"]) for each in step.instance.waits}
    return [held for held in held_after(step, deployed) if (held.network, held.address) not in awaited]


def network_documents(step: Step, deployed: Deployed) -> list[Document]:
    """Write an instance's addresses by network: those it gives up (``before``) and the one it has then (``after``)."""
    after = by_network(step.instance, deployed.config, held_after(step, deployed))
    given_up: dict[str, list[str]] = {}
    gone = {(each.network, each.position) for each in step.bound.obsolete}
    for held in () if step.before is None else step.before.holdings:
        if place_of(held) in gone:
            given_up.setdefault(held.network, []).append(told(held))
    said = [each["name"] for each in step.instance.networks] if step.after is not None else []
    new = {wish.network for wish in step.bound.new}
    return [
        {
            **_network(name, deployed.config, after.get(name), step.instance),
            "before": given_up.get(name, []),
            "new": name in new,
        }
        for name in [*said, *(name for name in given_up if name not in said)]
    ]


def _network(name: str, config: CloudConfig, after: Holding | None, instance: DeploymentInstance) -> Document:
    network = config.networks.get(name)
    by_iaas = instance.hints.get(name) if network is not None and network.kind == DYNAMIC else None
    return {
        "network": name,
        "type": None if network is None else network.kind,
        "after": by_iaas if after is None else told(after),
        "static": after is not None and was_asked_for(config, after),
    }


def settings(
    instance: DeploymentInstance, config: CloudConfig, held: Sequence[Holding] | None = None
) -> Mapping[str, Any] | None:
    """Return the settings that a VM is to be made with; None while none could be made, as before an errand."""
    if instance.meant is not None:
        return instance.meant
    try:
        return settings_of(instance, config, held)
    except Refused:  # the instance is there all the same, and what is told of it is what was done
        return None
