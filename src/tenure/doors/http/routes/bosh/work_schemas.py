"""What the API answers and is asked about work on deployments: errands, compiles, checks, explanations."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tenure.doors.http.routes.bosh.deployment_schemas import (
    MOST_VMS,
    Compile,
    DeployedInstance,
    EarlierVm,
    ManifestText,
)
from tenure.wire import field_types
from tenure.wire.responses import Shape, Time

MOST_WORKERS = 10_000

DryRun = Annotated[bool, Meta(description="Only tell what would be done; nothing is changed.")]
PlanName = Annotated[
    str,
    field_types.told_name("The plan that is compiled for; if it is another's, this is refused.", "0f8fad5bd9cb469f"),
]
Vm = Annotated[str, field_types.told_name("The VM, as the IaaS names it.", "vm-17")]


class DifferenceBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A manifest to hold against the one that is deployed."""

    manifest: ManifestText
    document: Annotated[str, field_types.told_name("How faults name the manifest.", "manifest.yml")] = "manifest.yml"


class DryRunBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Whether anything is to be done, or only told."""

    dry_run: DryRun = False


class VmsBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """All VMs that exist; those of others do no harm."""

    vms: Annotated[list[Vm], Meta(description="All VMs that the IaaS has, by name.", max_length=MOST_VMS)]


class LostVmBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The VM that is gone: if the instance has another one by now, nothing is done."""

    vm: Vm


class CompileBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """For which plan packages are compiled, and by how many workers."""

    plan: PlanName | None = None
    workers: (
        Annotated[
            int, Meta(description="At most so many; else as many as the cloud config says.", ge=1, le=MOST_WORKERS)
        ]
        | None
    ) = None


class WorkerBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A worker whose VM is up."""

    plan: PlanName | None = None
    number: Annotated[int, Meta(description="The worker's number.", ge=0, le=MOST_WORKERS)]
    vm: Vm


class EndCompileBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which compile is over."""

    plan: PlanName | None = None


class Difference(Shape, frozen=True, kw_only=True):
    """Something that the manifest has otherwise than what is deployed; null where it is not there."""

    path: str
    before: Any
    after: Any


class ManifestDifference(Shape, frozen=True, kw_only=True):
    """How a manifest differs from what is deployed; ``networks`` changed in the cloud config since."""

    deployment: str
    same: bool
    differences: list[Difference]
    networks: list[str]


class AddressReason(Shape, frozen=True, kw_only=True):
    """Why an instance has one address, and what would change it. ``moves`` tells why the next deploy gives another."""

    network: str
    address: str | None
    state: str | None
    origin: str
    why: str
    subnet: str | None
    azs: list[str] | None
    since: Time | None
    plan: str | None
    vm: str | None
    moves: str | None
    changes: list[str]


class ExplainedInstance(Shape, frozen=True, kw_only=True):
    """An instance with the reasons for its addresses; ``waiting`` says in words what it waits for."""

    name: str
    deployment: str
    group: str
    index: int
    az: str | None
    state: str
    vm: str | None
    waits_for: str | None
    earlier: list[EarlierVm]
    waiting: str
    reasons: list[AddressReason]


class MissingVm(Shape, frozen=True, kw_only=True):
    """A VM that is gone, and the instance that had it."""

    vm: str
    instance: DeployedInstance


class EndedCompile(Shape, frozen=True, kw_only=True):
    """What was ended; nothing, if there was no compile (any more)."""

    deployment: str
    ended: bool
    compile: Compile | None


class ManagedSubnet(Shape, frozen=True, kw_only=True):
    """A subnet that the cloud made, by the cloud's own name (``cid``), with what the cloud chose for it."""

    name: str
    cid: str
    range: str | None
    gateway: str | None
    reserved: list[str]
    cloud_properties: dict[str, Any]


class ManagedNetwork(Shape, frozen=True, kw_only=True):
    """A managed network: ready, or somebody creates or deletes it now. Used by no deployment it is an orphan."""

    name: str
    state: str
    orphaned: bool
    deployments: list[str]
    subnets: list[ManagedSubnet]
