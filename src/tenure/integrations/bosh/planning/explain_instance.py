"""Why an instance has the addresses it has, what would change them, and what it waits for. Pure: nothing is asked."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from tenure.integrations.bosh.cloud_config.moved_instances import misfit, was_asked_for
from tenure.integrations.bosh.model.address_diff import subnet_of
from tenure.integrations.bosh.model.document_model import DETACHED, DYNAMIC, VIP, CloudConfig, CloudNetwork, CloudSubnet
from tenure.integrations.bosh.planning.step_operations import DRAINED_BY
from tenure.integrations.bosh.state.instance_state import DeploymentInstance, is_overtaken
from tenure.integrations.bosh.state.pending_vms import Making, told
from tenure.kernel.holdings.holding_model import Holding, State

A_VM, DELETION, START, HAND_OVER = "vm", "deletion", "start", "hand_over"
"""What an instance may wait for: a VM that is made and reported, the deletion of the one it has, being started, or an
address that another is to hand over."""

LOSS = "nothing but the report that it is gone (`lose`): no VM of it is there or being made"

STATIC, PICKED, BY_IAAS, BY_VM = "static", "picked", "iaas", "vm"
"""How an address was come by: asked for by name, picked by us or the IaaS, or (without a cloud config) told by VMs."""

ALWAYS = "the group leaves the network, or the instance goes"
SWAPPED = "it is recreated under create-swap-delete: the new VM cannot have what the old one still has"
CHANGES = {
    STATIC: (ALWAYS, "static_ips lists it no more", "the cloud config takes it out of the static addresses"),
    PICKED: (
        ALWAYS,
        "the group asks for static_ips",
        "the cloud config takes it out of the range, the availability zone or what is picked from",
        SWAPPED,
    ),
    BY_IAAS: (ALWAYS, "the IaaS gives another one to a new VM"),
    BY_VM: (ALWAYS, "the manifest's networks have it no more", "a cloud config is uploaded where it does not fit"),
}
VIP_CHANGES = {
    STATIC: (ALWAYS, "static_ips lists it no more"),
    PICKED: (ALWAYS, "the cloud config takes it out of the pool, or out of its availability zone"),
}
"""What would change an address. Another gateway, DNS or cloud property makes a new VM, on the same address."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an instance has one address. ``address`` is None on a dynamic network where the IaaS told none yet.

    ``moves`` says why the next deploy gives it another, None if it does not; ``plan`` is the one that reserved it.
    """

    network: str
    address: str | None
    state: str | None
    origin: str
    why: str
    subnet: str | None = None
    azs: tuple[str, ...] | None = None
    since: datetime | None = None
    plan: str | None = None
    carrier: str | None = None
    moves: str | None = None
    changes: tuple[str, ...] = ()


def explain(instance: DeploymentInstance, deployed_with: CloudConfig, in_force: CloudConfig | None) -> list[Reason]:
    """Explain every address of an instance: networks in the order of its group, then what it is about to give up."""
    places = {said["name"]: number for number, said in enumerate(instance.networks)}
    wanted = sorted(instance.wanted, key=lambda held: (places.get(held.network, len(places)), held.row.first))
    kept = [_held(instance, held, deployed_with, in_force) for held in wanted]
    return [
        *kept,
        *_remembered(instance),
        *_from_iaas(instance, deployed_with),
        *(_parting(instance, held) for held in instance.parting),
    ]


def _remembered(instance: DeploymentInstance) -> Iterator[Reason]:
    """Explain an instance of the in-memory mode: nothing is held, its VM knows what it was made with."""
    for name, address in instance.remembered.items():
        why = "its VM is made with it; without a cloud config the ledger holds no addresses, and asks the VMs"
        yield Reason(name, address, None, BY_VM, why, carrier=instance.vm, changes=CHANGES[BY_VM])


def _held(
    instance: DeploymentInstance, held: Holding, deployed_with: CloudConfig, in_force: CloudConfig | None
) -> Reason:
    network, position = deployed_with.networks.get(held.network), held.row.first
    subnet = None if network is None else subnet_of(network, position, instance.az)
    origin = STATIC if was_asked_for(deployed_with, held) else PICKED
    is_vip = network is not None and network.kind == VIP
    moves = None if in_force is None or instance.leaving else misfit(in_force, deployed_with, instance, held)
    return Reason(
        network=held.network, address=told(held), state=str(held.state), origin=origin,
        why=_why(instance, network, subnet, origin), subnet=None if subnet is None else str(subnet.range),
        azs=None if subnet is None else subnet.azs, since=held.since, plan=held.plan or held.request,
        carrier=held.carrier, moves=moves, changes=(VIP_CHANGES if is_vip else CHANGES)[origin],
    )  # fmt: skip


def _why(instance: DeploymentInstance, network: CloudNetwork | None, subnet: CloudSubnet | None, origin: str) -> str:
    if network is not None and network.kind == VIP:
        return "static_ips names it" if origin == STATIC else "it was the first free one in the pool of the vip network"
    place = "its subnet" if subnet is None else f"subnet {subnet.range}"
    zone = "" if instance.az is None or subnet is None or subnet.azs is None else f", which serves '{instance.az}'"
    if origin == STATIC:
        return f"static_ips names it; it is among the static addresses of {place}{zone}"
    return f"it was the lowest free address of {place}{zone}"


def _from_iaas(instance: DeploymentInstance, config: CloudConfig) -> Iterator[Reason]:
    """Explain dynamic networks: nothing is reserved on them."""
    for said in instance.networks:
        network = config.networks.get(said["name"])
        if network is not None and network.kind == DYNAMIC:
            hint = instance.hints.get(network.name)
            why = "the network is dynamic: the IaaS picks, and told none yet" if hint is None else "the IaaS picked it"
            yield Reason(network.name, hint, None, BY_IAAS, why, carrier=instance.vm, changes=CHANGES[BY_IAAS])


def _parting(instance: DeploymentInstance, held: Holding) -> Reason:
    by = held.labels.get(DRAINED_BY)
    plans = " and ".join(dict.fromkeys(each.plan for each in instance.earlier if each.plan and each.has(held)))
    until = (
        f"it is known what became of the VM of plan {plans}" if plans and is_overtaken(held) else "the VM is another"
    )
    why = "it is not wanted any more" + ("" if by is None else f" since plan {by}") + f"; freed once {until}"
    return Reason(
        network=held.network, address=told(held), state=str(State.DRAINING), origin=PICKED, why=why,
        since=held.since, plan=held.request, carrier=held.carrier,
    )  # fmt: skip


def waits_for(instance: DeploymentInstance) -> str | None:
    """Tell what an instance waits for, in one word for programs; None if for nothing."""
    if instance.leaving:
        return DELETION
    if instance.waits:
        return HAND_OVER
    if instance.plan is not None:
        return A_VM
    if instance.state == DETACHED:
        return START
    return A_VM if instance.vm is None and not instance.errand else None


def _of(making: Making) -> str:
    return "" if making.plan is None else f" for plan {making.plan}"


def waiting_text(instance: DeploymentInstance) -> str:
    """Tell what an instance waits for, in words."""
    wanted = waits_for(instance)
    made = [f"a VM that is perhaps being made{_of(each)}" for each in instance.earlier]
    if wanted == DELETION:
        there = [] if instance.vm is None else [f"its VM {instance.vm}"]
        awaited = f"the deletion of {' and of '.join(there + made)}" if there + made else LOSS
        return f"{awaited}; its addresses are freed then"
    if wanted == START:
        return "being started: it was stopped hard, and keeps its addresses"
    if wanted == HAND_OVER:
        named = ", ".join(f"{each['address']} of {each['of']}" for each in instance.waits)
        return f"{named}, to be handed over once the VM there is replaced or gone; then a VM with its settings"
    if wanted is None:
        awaited = f"nothing but word of what became of {' and of '.join(made)}" if made else "nothing"
        return awaited if instance.vm is not None else f"{awaited}: it rests until errand {instance.group} is run"
    text = "a VM with its settings" if instance.vm is None else f"a VM in place of {instance.vm}, with its settings"
    return f"{text}; the last one could not be made" if instance.failed else text
