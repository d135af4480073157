"""Deployments and instances as the ledger keeps them: papers beside the holdings, written in the same ``apply``.

A paper never tells what is held: holdings do, so the two cannot disagree. What a paper tells is what the instance is
(its place, its VM, what it waits for) and which settings its VM was made with.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tenure.integrations.bosh.model.address_diff import Has
from tenure.integrations.bosh.model.document_model import DETACHED, DYNAMIC, STARTED, Properties
from tenure.integrations.bosh.state.pending_vms import ENDS, STAYS, Making, read_making, told
from tenure.kernel.errors import Conflict, Invalid, NotFound
from tenure.kernel.holdings.holding_model import Holding, Paper, State
from tenure.kernel.names import Owner, check_name
from tenure.service.apply.operations import Operation, RemovePaper, WritePaper
from tenure.service.ledger.async_ledger import AsyncLedger

REALM = "bosh"
CONFIG = "deployments.config"
SNAPSHOT = "deployments.snapshot"
DEPLOYMENT = "deployments.deployment"
INSTANCE = "deployments.instance"
ORPHAN = "deployments.orphan"
ORPHANED = "orphan"
"""The kind of owner that an orphaned VM is."""


def owner_of(uuid: str) -> Owner:
    """Return the owner of an instance's addresses: the instance, whatever VM it has."""
    return Owner(f"{REALM}:instance/{uuid}")


def orphan_of(vm: str) -> Owner:
    """Return the owner of an orphaned VM's addresses."""
    return Owner(f"{REALM}:{ORPHANED}/{vm}")


Place = tuple[str, int]
"""Where an address is: its network and position."""


def place_of(held: Holding) -> Place:
    """Return where a holding is."""
    return held.network, held.row.first


def addresses_in(settings: Properties) -> dict[str, str]:
    """Return the addresses of settings that are ours to give, by network."""
    return {name: said["ip"] for name, said in settings.items() if said["type"] != DYNAMIC and "ip" in said}


def is_overtaken(held: Holding) -> bool:
    """Tell whether an address was reserved for a VM by an earlier plan, and is not wanted any more by a later one."""
    return held.state is State.DRAINING and held.carrier is None and held.plan is not None


@dataclass(frozen=True, slots=True)
class DeploymentInstance:
    """An instance. ``vm`` carries its addresses now; ``made_with`` are the settings that VM was made with.

    ``leaving``: it is not wanted any more, and goes when its VM is gone. ``plan``: what it waits for, None if nothing.
    """

    deployment: str
    group: str
    uuid: str
    index: int
    az: str | None = None
    state: str = STARTED
    ignored: bool = False
    disk: bool = False
    errand: bool = False
    """Its VM is there only while its group is run."""
    vm: str | None = None
    lost_vm: str | None = None
    """The VM that it had before, as long as it has none: whoever tells of that once more has no news."""
    leaving: bool = False
    plan: str | None = None
    failed: bool = False
    failures: tuple[str, ...] = ()
    """Plans whose VMs could not be made, the latest last: who says so once more has no news."""
    swaps: bool = False
    """The VM that it waits for comes beside the one it has."""
    earlier: tuple[Making, ...] = ()
    """VMs that it does not wait for any more, of which nobody said what became of them."""
    waits: tuple[Properties, ...] = ()
    """Addresses that others are to hand over before its VM can be made: network, address, and whose it is."""
    hints: Mapping[str, str] = field(default_factory=dict)
    """Addresses that the IaaS picked, by dynamic network."""
    networks: Sequence[Properties] = ()
    """Which networks it is on, as its group said: name, nic_group, defaults."""
    made_with: Properties | None = None
    meant: Properties | None = None
    """Settings of the VM that it waits for; only in the in-memory mode, where no holding tells its addresses."""
    former: Properties | None = None
    """What it was before a plan that is not done for it: see ``previous_state``."""
    snapshot: str | None = None
    """The cloud configs that it is made with, where these are not its deployment's: a plan was taken back for it."""
    revision: int = 0
    holdings: tuple[Holding, ...] = ()

    @property
    def name(self) -> str:
        """Name it as BOSH does: ``group/uuid``."""
        return f"{self.group}/{self.uuid}"

    @property
    def long_name(self) -> str:
        """Name it with its index: ``group/uuid (index)``."""
        return f"{self.name} ({self.index})"

    @property
    def owner(self) -> Owner:
        """Return who holds its addresses."""
        return owner_of(self.uuid)

    @property
    def has(self) -> tuple[Has, ...]:
        """Return all that it holds, wanted or not."""
        return tuple(Has(each.network, each.row.first, each.unit, each.carrier is not None) for each in self.holdings)

    @property
    def wanted(self) -> tuple[Holding, ...]:
        """Return what it holds and is to keep."""
        return tuple(each for each in self.holdings if each.state is State.HELD)

    @property
    def parting(self) -> tuple[Holding, ...]:
        """Return what it holds until its VM is another."""
        return tuple(each for each in self.holdings if each.state is State.DRAINING)

    @property
    def rests(self) -> bool:
        """Tell whether it has no VM and no plan waits for one: so is who was stopped hard, and an errand that rests."""
        return self.vm is None and self.plan is None

    @property
    def is_told(self) -> bool:
        """Tell whether the VM that it waits for is perhaps being made: for its plan, or without in place of another."""
        if self.leaving or self.failed or self.waits:
            return False
        return self.plan is not None or (self.rests and self.is_started and bool(self.holdings))

    @property
    def is_started(self) -> bool:
        """Tell whether it is to have a VM at all times: not where it was stopped hard, or is run now and then."""
        return self.state != DETACHED and not self.errand

    @property
    def making(self) -> Making:
        """Return the VM that it waits for, on all that it is to keep; without a plan, of the one that reserved that."""
        plan = self.plan or next((each.plan for each in self.wanted if each.plan is not None), None)
        # A VM of the plan that is noted in former ends together with the plan that takes that one over.
        deployed = self.is_coming if self.former is None else self.former["plan"] == plan
        addresses = map(told, self.wanted) if self.meant is None else addresses_in(self.meant).values()
        return Making(plan, tuple(addresses), ENDS if deployed else STAYS)

    @property
    def makings(self) -> tuple[Making, ...]:
        """Return all VMs that are perhaps being made for it, the one that it waits for last."""
        return (*self.earlier, self.making) if self.is_told else self.earlier

    @property
    def is_awaited(self) -> bool:
        """Tell whether its first VM, or one in place of a lost one, is perhaps being made."""
        return self.vm is None and bool(self.makings)

    def is_under_way(self, held: Holding) -> bool:
        """Tell whether a VM that no report told of yet is perhaps being made on an address that it has."""
        return held.carrier is None and any(each.has(held) for each in self.makings)

    @property
    def is_new(self) -> bool:
        """Tell whether it never had a VM."""
        return self.vm is None and self.made_with is None

    @property
    def is_coming(self) -> bool:
        """Tell whether it is new by a plan that is not done for it; an errand's is there before it ever has a VM."""
        return self.former is None and self.is_new and not self.errand

    @property
    def is_deleted(self) -> bool:
        """Tell whether it leaves with its deployment, and not by a plan, which would be noted on it."""
        return self.leaving and self.former is None

    @property
    def remembered(self) -> dict[str, str]:
        """Return the addresses that only its VM holds, or is to hold, by network: so it is in the in-memory mode."""
        settings = self.meant or (self.made_with if self.vm is not None else None) or {}
        return {} if self.holdings else addresses_in(settings)

    def written(self) -> Operation:
        """Return the operation that writes it down, over the revision that was read."""
        return WritePaper(kind=INSTANCE, name=self.paper_name, document=_document(self), revision=self.revision)

    def removed(self) -> Operation:
        """Return the operation that takes it out of the books."""
        return RemovePaper(kind=INSTANCE, name=self.paper_name, revision=self.revision)

    @property
    def paper_name(self) -> str:
        """Name its paper: papers of a deployment lie next to each other, those of a group too."""
        return f"{self.deployment}/{self.group}/{self.uuid}"


FIELDS = (
    "index", "az", "state", "ignored", "disk", "errand", "vm", "lost_vm", "leaving", "plan", "failed", "failures",
    "swaps", "earlier", "waits", "hints", "networks", "made_with", "meant", "former", "snapshot",
)  # fmt: skip


def _document(instance: DeploymentInstance) -> dict[str, Any]:
    said = {name: getattr(instance, name) for name in FIELDS}
    lists = {name: [dict(each) for each in said[name]] for name in ("networks", "waits")}
    lists |= {"earlier": [each.written() for each in instance.earlier]}
    return {**said, "hints": dict(instance.hints), "failures": list(instance.failures), **lists}


def _read(paper: Paper) -> DeploymentInstance:
    deployment, group, uuid = paper.name.split("/")
    said = {"lost_vm": None, "earlier": (), "failures": (), **paper.document}  # papers of before do not tell these
    said = {name: said[name] for name in FIELDS}
    said |= {name: tuple(said[name]) for name in ("waits", "failures")}
    said["earlier"] = tuple(map(read_making, said["earlier"]))
    return DeploymentInstance(deployment, group, uuid, revision=paper.revision, **said)


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment: what its author wants, and the cloud configs it was last deployed with (a snapshot's name).

    Without a snapshot it was deployed without any cloud config: its networks are its manifest's own.
    """

    name: str
    manifest: str
    snapshot: str | None
    plan: str | None = None
    revision: int = 0
    recent: tuple[str, ...] = ()
    """Addresses that it gave up, the latest last; kept only in the in-memory mode, which gives them again last."""
    undo: Properties | None = None
    """What it goes back to if its plan is taken back: see ``previous_state``. None if it stays as it is."""

    def as_of(self, instance: DeploymentInstance) -> "Deployment":
        """Return it with the cloud configs that an instance of it is made with."""
        return self if instance.snapshot is None else replace(self, snapshot=instance.snapshot)

    def written(self) -> Operation:
        """Return the operation that writes it down, over the revision that was read."""
        said: Properties = {"manifest": self.manifest, "snapshot": self.snapshot, "plan": self.plan, "undo": self.undo}
        said = {**said, "recent": list(self.recent)}
        return WritePaper(kind=DEPLOYMENT, name=self.name, document=said, revision=self.revision)

    def removed(self) -> Operation:
        """Return the operation that takes it out of the books."""
        return RemovePaper(kind=DEPLOYMENT, name=self.name, revision=self.revision)


async def load_deployment(ledger: AsyncLedger, name: str) -> Deployment | None:
    """Read a deployment, if there is one of that name."""
    try:
        return _deployment(await ledger.paper(DEPLOYMENT, name))
    except NotFound:
        return None


async def load_deployments(ledger: AsyncLedger) -> list[Deployment]:
    """Read all deployments, in order of name."""
    return [_deployment(paper) for paper in await ledger.papers(DEPLOYMENT)]


def _deployment(paper: Paper) -> Deployment:
    said = paper.document
    recent = tuple(said["recent"])
    fields = (said["manifest"], said["snapshot"], said["plan"], paper.revision, recent, said["undo"])
    return Deployment(paper.name, *fields)


def check_word(name: str, *, field: str) -> str:
    """Return a name that may stand between slashes."""
    if "/" in check_name(name, field=field):
        raise Invalid(f"{field}: {name[:80]!r} has a slash in it, which no deployment's name has", field=field)
    return name


async def load_instances(ledger: AsyncLedger, deployment: str) -> list[DeploymentInstance]:
    """Read a deployment's instances with all they hold, in order of group, AZ and index. Costs a look for each."""
    check_word(deployment, field="deployment")
    # With the slash, because the name of another deployment may begin with this one.
    found = [_read(paper) for paper in await ledger.papers(INSTANCE, prefix=f"{deployment}/")]
    held: dict[str, list[Holding]] = {each.owner: [] for each in found}
    for holding in await ledger.holdings_of([each.owner for each in found]):
        held[holding.owner].append(holding)
    whole = [replace(each, holdings=_ordered(held[each.owner])) for each in found]
    return sorted(whole, key=lambda each: (each.group, each.az or "", each.index))


async def load_bare(ledger: AsyncLedger, deployment: str, *, vm: str | None = None) -> list[DeploymentInstance]:
    """Read a deployment's instances, or only those that have a VM of this name, without what they hold."""
    check_word(deployment, field="deployment")
    papers = await ledger.papers(INSTANCE, prefix=f"{deployment}/")
    return [_read(paper) for paper in papers if vm is None or paper.document["vm"] == vm]


async def load_instance(ledger: AsyncLedger, deployment: str, ident: str) -> DeploymentInstance:
    """Find an instance by ``group/uuid``, or by ``group/index`` where only one has that: one that leaves may, too.

    Costs one look, by its index one for each of its group; how large the deployment is does not matter.
    """
    name, group = f"{check_word(deployment, field='deployment')}/{ident}", ident.partition("/")[0]
    # The exact name sorts before all longer ones that begin with it, so one row is enough.
    papers = [each for each in await ledger.papers(INSTANCE, prefix=name, limit=1) if each.name == name]
    papers = papers or await ledger.papers(INSTANCE, prefix=f"{deployment}/{group}/")
    found = find_instance([_read(each) for each in papers], deployment, ident)
    return replace(found, holdings=_ordered(await ledger.holdings_of([found.owner])))


def find_instance(instances: Sequence[DeploymentInstance], deployment: str, ident: str) -> DeploymentInstance:
    """Find an instance among all of its deployment, or of its group."""
    group, _, which = ident.partition("/")
    found = [each for each in instances if each.group == group and which in (each.uuid, str(each.index))]
    if not found:
        raise NotFound("instance", ident, of=f"deployment {deployment}")
    if len(found) > 1:
        names = " and ".join(each.name for each in found)
        raise Conflict(f"two instances of deployment {deployment} are {ident}; name one by its uuid: {names}")
    return found[0]


def _ordered(holdings: Sequence[Holding]) -> tuple[Holding, ...]:
    return tuple(sorted(holdings, key=place_of))
