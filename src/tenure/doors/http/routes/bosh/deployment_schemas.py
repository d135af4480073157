"""What the API answers and is asked about deployments. Nothing here needs what reads documents."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tenure.wire import field_types
from tenure.wire.responses import Address, Holding, Shape, Time

MOST_TEXT = 1_000_000
"""Characters of a document: whoever reads it lets all others wait meanwhile."""

MOST_VMS = 10_000
MOST_HINTS = 100
LONGEST_HINT = 64

EXAMPLE = "networks: [{name: edge, type: dynamic}]"

ConfigText = Annotated[
    str,
    Meta(description="A cloud config, as YAML or JSON.", min_length=1, max_length=MOST_TEXT, examples=[EXAMPLE]),
]
ManifestText = Annotated[
    str, Meta(description="A manifest, as YAML or JSON.", min_length=1, max_length=MOST_TEXT, examples=["name: shop"])
]
Settings = Annotated[
    dict[str, Any], Meta(description="By network: what a VM is made with. Null while addresses are missing.")
]


TheVm = Annotated[
    str, field_types.told_name("The VM that is meant; refused if the instance has another by now.", "vm-17")
]


class CloudConfigBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A cloud config to put in force."""

    text: ConfigText
    dry_run: Annotated[bool, Meta(description="Only tell what would change, and who would be moved.")] = False


class VmState(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a running VM says of itself: its name, and by network the settings it has, of which ``ip`` counts."""

    vm: Annotated[str, field_types.told_name("The VM, as the IaaS names it.", "vm-17")]
    networks: Annotated[dict[str, dict[str, Any]], Meta(examples=[{"apps": {"ip": "10.44.16.2"}}])]


VmStates = Annotated[
    dict[str, VmState | None],
    Meta(
        description="What running VMs say, by group/index or group/uuid; null is one that did not answer. They must be "
        "asked where there is no cloud config, and at the first deploy with one.",
        max_length=MOST_VMS,
    ),
]


class ManifestBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A manifest to plan or to deploy."""

    manifest: ManifestText
    document: Annotated[str, field_types.told_name("How faults name the manifest.", "manifest.yml")] = "manifest.yml"
    recreate: Annotated[bool, Meta(description="Have every VM made anew, also where nothing changed.")] = False
    hand_over: Annotated[
        bool, Meta(description="Let an instance wait for what another of the deployment gives up.")
    ] = False
    vm_state: VmStates | None = None
    fix: Annotated[bool, Meta(description="Have VMs made anew that did not answer.")] = False


class AbortBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which plan is taken back."""

    plan: Annotated[str, field_types.told_name("The plan, as its answer named it.", "0f8fad5bd9cb469f")]


class CommitBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The VM that is up."""

    vm: Annotated[str, field_types.told_name("The VM, as the IaaS names it.", "vm-17")]
    hints: Annotated[
        dict[field_types.Name, Annotated[field_types.Address, Meta(max_length=LONGEST_HINT)]],
        Meta(
            description="Addresses that the IaaS picked, by dynamic network.",
            max_length=MOST_HINTS,
            examples=[{"edge": "198.51.100.9"}],
        ),
    ] = msgspec.field(default_factory=dict)
    plan: (
        Annotated[
            str, field_types.told_name("The plan it was made for; one of another plan is refused.", "0f8fad5bd9cb469f")
        ]
        | None
    ) = None


class StopBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How an instance was stopped."""

    hard: Annotated[bool, Meta(description="Its VM is deleted, too; its addresses wait for it.")] = False
    vm: TheVm | None = None


class LoseBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which VM is gone."""

    vm: TheVm | None = None


class FailBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which VM could not be made."""

    plan: (
        Annotated[
            str, field_types.told_name("The plan it was to be made for; another one is refused.", "0f8fad5bd9cb469f")
        ]
        | None
    ) = None


class ReportBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A report that says no more than its path."""


class FaultPlace(Shape, frozen=True, kw_only=True):
    """Where in a document: line and column count from 1; ``path`` is the way there."""

    document: str
    line: int
    column: int
    path: str


class DocumentFault(Shape, frozen=True, kw_only=True):
    """One thing that is wrong, or worth a warning, by the name and the number that BOSH has for it."""

    error: str
    number: int
    message: str
    place: FaultPlace | None


class ConfigRemovalBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How a cloud config is taken out of force."""

    dry_run: bool = False


class CloudConfig(Shape, frozen=True, kw_only=True):
    """A cloud config that is in force."""

    name: str
    revision: int
    text: str


class MovedAddress(Shape, frozen=True, kw_only=True):
    """An address that an instance gives up at its next deploy, and why."""

    deployment: str
    instance: str
    uuid: str
    ignored: bool
    network: str
    address: str
    reason: str


class UploadedConfig(Shape, frozen=True, kw_only=True):
    """What came of an upload, or would: networks that change, addresses that no longer fit, warnings."""

    name: str
    written: bool
    networks: list[str]
    moves: list[MovedAddress]
    warnings: list[DocumentFault]


class PlannedNetwork(Shape, frozen=True, kw_only=True):
    """An instance on one network: what it gives up (``before``), and what it has then (``after``)."""

    network: str
    type: str | None
    before: list[str]
    after: str | None
    new: bool
    static: bool


class HandOver(Shape, frozen=True, kw_only=True):
    """An address that is waited for, and the instance that is to give it up first."""

    network: str
    address: str
    of: str


class EarlierVm(Shape, frozen=True, kw_only=True):
    """A VM that is not wanted any more, and that nobody told of: on these addresses (or prefixes) it may come up.

    Where ``plan`` is null, it was to be made in place of one that was lost, or is one that was forgotten. It ends by
    ``fail``, ``abort``, ``lose`` of who leaves, ``end-errand``, or the report of another VM.
    """

    plan: str | None
    addresses: list[str]


class PlannedInstance(Shape, frozen=True, kw_only=True):
    """What a plan does with one instance. ``waits_for`` tells what is to be done and reported next.

    ``plan`` is the one that it waits for; ``calls_off`` the one whose VM it waited for, where none is wanted any more.
    ``needs_plan``: the report must say which plan the VM was made for, since an earlier one wanted other settings.
    """

    instance: str
    uuid: str | None
    group: str
    index: int
    az: str | None
    vm: str | None
    action: str
    waits_for: str | None
    plan: str | None
    calls_off: str | None
    needs_plan: bool
    earlier: list[EarlierVm]
    swaps: bool
    hand_overs: list[HandOver]
    networks: list[PlannedNetwork]
    settings: Settings | None


class CompileWorker(Shape, frozen=True, kw_only=True):
    """A worker that compiles. On a dynamic network the IaaS picks its address; only :compile tells ``settings``."""

    number: int
    vm: str | None
    address: str | None
    settings: Settings | None


class Compile(Shape, frozen=True, kw_only=True):
    """A compile that goes on. ``orphan_workers``: its VMs keep their addresses until they are cleaned up."""

    deployment: str
    plan: str
    network: str
    az: str | None
    orphan_workers: bool
    workers: list[CompileWorker]


class DeploymentPlan(Shape, frozen=True, kw_only=True):
    """A plan. One that was only tried has no name, and its new instances have no uuids.

    ``ends_compile``: the compile of the deployment that ends with it; workers' VMs that are known of are orphans then.
    """

    deployment: str
    plan: str | None
    applied: bool
    changes: bool
    counts: dict[str, int]
    ends_compile: Compile | None
    instances: list[PlannedInstance]


class HeldAddress(Shape, frozen=True, kw_only=True):
    """An address (or prefix) that is held; ``vm`` carries it now, ``plan`` reserved it.

    Without a cloud config it is *remembered*: the ledger does not hold it, and ``since`` is null.
    """

    network: str
    address: str
    state: str
    vm: str | None
    plan: str | None
    since: Time | None


class InstanceNetwork(Shape, frozen=True, kw_only=True):
    """A network that an instance is on, as its group says."""

    name: str
    nic_group: str | None
    defaults: list[str]


class DeployedInstance(Shape, frozen=True, kw_only=True):
    """An instance with its addresses, its VM, and the settings that a VM of it is made with."""

    name: str
    deployment: str
    group: str
    index: int
    uuid: str
    az: str | None
    state: str
    vm: str | None
    waits_for: str | None
    plan: str | None
    needs_plan: bool
    earlier: list[EarlierVm]
    failed: bool
    leaving: bool
    ignored: bool
    errand: bool
    addresses: list[HeldAddress]
    hand_overs: list[HandOver]
    hints: dict[str, Address]
    networks: list[InstanceNetwork]
    settings: Settings | None


class ReportedInstance(DeployedInstance, frozen=True, kw_only=True):
    """How an instance stands after a report; ``gone`` if it left with it."""

    gone: bool


class DeploymentSummary(Shape, frozen=True, kw_only=True):
    """A deployment in numbers. ``config`` is current, older (another is in force since), or own."""

    name: str
    plan: str | None
    config: str
    groups: list[str]
    instances: int
    waiting: int
    leaving: int
    ignored: int
    addresses: int


class Deployment(Shape, frozen=True, kw_only=True):
    """A deployment with its instances."""

    name: str
    plan: str | None
    config: str
    instances: list[DeployedInstance]


class TakenBack(Shape, frozen=True, kw_only=True):
    """What became free when a plan was taken back."""

    taken_back: Annotated[
        bool,
        Meta(description="Whether anything was left of the plan: else it is done, taken back already, or unknown."),
    ]
    items: list[Holding]


class Orphan(Shape, frozen=True, kw_only=True):
    """A VM that was replaced, and keeps its addresses until it is deleted."""

    vm: str
    deployment: str
    instance: str
    addresses: list[HeldAddress]
