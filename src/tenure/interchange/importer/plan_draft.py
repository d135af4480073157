"""The whole plan drafted: every edit of a source tried on what the ledger has, faults told with their place."""

from collections.abc import Iterable
from dataclasses import replace

from tenure.interchange.formats.source_items import Fault, Oddity, SourcePlace
from tenure.interchange.importer.draft import Differs, ImportedNetwork
from tenure.interchange.importer.dry_run_report import DryRunReport
from tenure.kernel.errors import AlreadyExists, Invalid, NotFound, TenureError
from tenure.kernel.names import check_name, shown
from tenure.kernel.plan.apply_edit import new_network
from tenure.kernel.plan.edits import (
    AddNetwork,
    AddPool,
    AddSubnet,
    Connect,
    Edit,
    ModifyNetwork,
    ModifyPool,
    ModifySubnet,
    Preallocate,
    Reserve,
)
from tenure.kernel.plan.invariants import judge
from tenure.kernel.plan.layout import Layout
from tenure.kernel.plan.plan_model import Configuration

COUNTED = {
    AddNetwork: "networks",
    AddSubnet: "subnets",
    AddPool: "pools",
    Reserve: "reserved ranges",
    Preallocate: "pre-allocations",
    Connect: "connections",
    ModifyNetwork: "retirements",
    ModifySubnet: "retirements",
    ModifyPool: "retirements",
}


class PlanDraft:
    """The plan as it would be, the edits that lead there, and the retirements that come after the holdings."""

    def __init__(self, spaces: Iterable[Configuration], report: DryRunReport) -> None:
        self._report = report
        self._spaces = {space.name: space for space in spaces}
        self.drafts = {
            name: ImportedNetwork(network, space.name)
            for space in self._spaces.values()
            for name, network in space.networks.items()
        }
        self._in_ledger = set(self.drafts)
        # By space: networks that share one must not keep one address for two owners.
        self._claimed = {
            (space.name, wish.position): str(wish.owner)
            for space in self._spaces.values()
            for network in space.networks.values()
            for wish in network.preallocations
        }
        self.spoilt: set[str] = set()
        self.edits: list[Edit] = []
        self.retirements: list[Edit] = []
        self.gateways: dict[tuple[str, str], SourcePlace] = {}

    def take(self, place: SourcePlace, edit: Edit) -> None:
        """Try one edit: it is new, or there already, or a fault."""
        kind = COUNTED[type(edit)]
        if not isinstance(edit.network, str):
            self._report.add(Fault(place, "network", "invalid", "a name in text is needed"))
            return
        try:
            differs = self._try(place, edit)
        except TenureError as error:
            follows = edit.network in self.spoilt and (isinstance(error, NotFound) or kind == "retirements")
            if not follows:  # what follows from another fault is not told
                self._report.add(fault_of(place, error))
            self.spoilt.add(edit.network)
            return
        if differs is None:
            self._report.new[kind] += 1
            (self.retirements if kind == "retirements" else self.edits).append(edit)
        else:
            self._report.already[kind] += 1
            for one in differs:
                self._report.add(Oddity(place, one.field, "differs", one.reason))

    def _try(self, place: SourcePlace, edit: Edit) -> list[Differs] | None:
        name = edit.network
        if isinstance(edit, AddNetwork):
            return self._add_network(edit)
        draft = self.drafts.get(name)
        if draft is None:
            raise NotFound("network", name)
        if isinstance(edit, AddSubnet):
            differs = draft.add_subnet(edit)
            # A gateway that is not kept back may be held like any other address.
            kept = edit.keep_back is None or "gateway" in edit.keep_back
            if differs is None and edit.gateway is not None and kept:
                self.gateways[draft.space, str(edit.gateway)] = place
            return differs
        if isinstance(edit, AddPool):
            return draft.add_pool(edit)
        if isinstance(edit, Reserve):
            return draft.reserve(edit)
        if isinstance(edit, Connect):
            return draft.connect(edit)
        if isinstance(edit, Preallocate):
            return self._preallocate(draft, edit)
        return self._retire(draft, edit)

    def _add_network(self, edit: AddNetwork) -> list[Differs] | None:
        known = self.drafts.get(edit.network)
        if known is not None:
            if edit.space is not None and known.space != edit.space:
                raise Invalid(f"space: the network is in space {known.space!r}, not {edit.space!r}", field="space")
            if edit.network not in self._in_ledger:
                raise AlreadyExists("network", edit.network, hint="it comes twice in the source")
            return []
        space = edit.network if edit.space is None else check_name(edit.space, field="space")
        if edit.space is None and space in self._spaces:
            raise AlreadyExists("space", space, field="network")
        # No ledger has negative numbers, so a drafted network is never taken for a real one.
        network = new_network(edit, -1 - len(self.drafts), edit.uuid or "drafted")
        self._spaces.setdefault(space, Configuration(-1 - len(self._spaces), space))
        self.drafts[edit.network] = ImportedNetwork(network, space)
        return None

    def _preallocate(self, draft: ImportedNetwork, edit: Preallocate) -> list[Differs] | None:
        wish = draft.preallocate(edit)
        if isinstance(wish, list):
            return wish
        holder = self._claimed.get((draft.space, wish.position))
        if holder is not None:
            raise AlreadyExists("pre-allocation", str(edit.address), hint=f"it waits for {holder}", field="address")
        self._claimed[draft.space, wish.position] = wish.owner
        return None

    def _retire(self, draft: ImportedNetwork, edit: Edit) -> list[Differs] | None:
        assert isinstance(edit, ModifyNetwork | ModifySubnet | ModifyPool)
        if not isinstance(edit.retired, bool):
            raise Invalid(f"retired: true or false is needed, not {shown(edit.retired)}", field="retired")
        subnet = edit.subnet if isinstance(edit, ModifySubnet) else None
        pool = edit.pool if isinstance(edit, ModifyPool) else None
        return [] if draft.retired(subnet, pool) else None

    def layouts(self, place: SourcePlace) -> dict[str, Layout]:
        """Lay out every space as it would be, by name, judged as the ledger would judge it."""
        laid: dict[str, Layout] = {}
        for name, space in self._spaces.items():
            networks = {each: draft.network() for each, draft in self.drafts.items() if draft.space == name}
            configuration = replace(space, networks=networks)
            # Where an edit failed the whole plan would fail, too, and only repeat what was reported.
            if self.spoilt.isdisjoint(networks):
                self._judge(configuration, place)
            laid[name] = Layout(configuration)
        return laid

    def _judge(self, configuration: Configuration, place: SourcePlace) -> None:
        """Let the ledger's own judgement have the last word."""
        try:
            judge(configuration)
        except TenureError as error:
            self._report.add(fault_of(place, error))
            self.spoilt.update(configuration.networks)


def fault_of(place: SourcePlace, error: TenureError) -> Fault:
    """Tell an error of the ledger as a fault of a place."""
    field = error.field or ""
    return Fault(place, field, error.code, str(error).removeprefix(f"{field}: "))
