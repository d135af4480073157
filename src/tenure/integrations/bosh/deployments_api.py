"""Every verb on deployments, over one ledger; the command line and HTTP call these."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenure.integrations.bosh.cloud_config.configs import Configs, Uploaded, load_configs, remove_config, upload
from tenure.integrations.bosh.cloud_config.ledger_networks import SPACE
from tenure.integrations.bosh.cloud_config.managed_networks import Cloud, delete_network
from tenure.integrations.bosh.cloud_config.moved_instances import Moved
from tenure.integrations.bosh.cloud_config.site_survey import Orphan, load_orphans, moved_by_upload, survey
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.running_vms.vm_state import VmState
from tenure.integrations.bosh.state.compile_workers import Compiling, load_compiling
from tenure.integrations.bosh.state.instance_state import Deployment, DeploymentInstance, load_instance, load_instances
from tenure.integrations.bosh.state.managed_records import Managed, load_managed
from tenure.integrations.bosh.verbs import (
    cloud_check,
    compile_packages,
    errands,
    recreate,
    report_vm,
)
from tenure.integrations.bosh.verbs.check_input import check_document, check_ident, check_vm_state, check_vms
from tenure.integrations.bosh.verbs.cloud_check import Missing
from tenure.integrations.bosh.verbs.deploy import Deployed, deploy
from tenure.integrations.bosh.views.queries import (
    Compared,
    DeploymentStatus,
    Explained,
    compare,
    explain_instance,
    stand,
)
from tenure.kernel.holdings.holding_model import Holding
from tenure.kernel.names import check_name, check_number
from tenure.service.ledger.async_ledger import AsyncLedger


@dataclass(frozen=True, slots=True)
class Deployments:
    """Deployments of one site: they share a space, and their owners are instances."""

    ledger: AsyncLedger
    space: str = SPACE
    cloud: Cloud | None = None
    """Makes and deletes managed networks; without it they are networks like all others."""

    async def upload_config(self, text: str, *, name: str = "default", dry: bool = False) -> Uploaded:
        """Put a cloud config in force; all its faults are told at once, and nothing is changed then."""
        check_document(text, field="text")
        return await upload(self.ledger, check_name(name, field="config"), text, space=self.space, dry=dry)

    async def remove_config(self, name: str, *, dry: bool = False) -> Uploaded:
        """Take a cloud config out of force; the last one stays."""
        return await remove_config(self.ledger, name, space=self.space, dry=dry)

    async def configs(self) -> Configs | None:
        """Read the cloud configs in force, if there are any."""
        return await load_configs(self.ledger)

    async def plan(
        self,
        manifest: str,
        *,
        document: str = "manifest.yml",
        recreate: bool = False,
        hand_over: bool = False,
        vm_state: Mapping[str, VmState] | None = None,
        fix: bool = False,
    ) -> Deployed:
        """Tell what ``apply`` would do, with the addresses it would reserve; nothing is changed."""
        text, told = check_document(manifest, field="manifest"), check_vm_state(vm_state)
        asked: Any = {"recreate": recreate, "hand_over": hand_over, "vm_state": told, "fix": fix}
        return await deploy(self.ledger, document, text, dry=True, space=self.space, **asked)

    async def apply(
        self,
        manifest: str,
        *,
        document: str = "manifest.yml",
        recreate: bool = False,
        hand_over: bool = False,
        vm_state: Mapping[str, VmState] | None = None,
        fix: bool = False,
    ) -> Deployed:
        """Reserve all that a manifest wants, or nothing.

        With ``hand_over`` an instance may wait for what another one of the deployment gives up. ``vm_state`` is what
        running VMs say. Without a cloud config, and at the first deploy with one, they must be asked; a VM that did not
        answer is a refusal, or with ``fix`` made anew.
        """
        text, told = check_document(manifest, field="manifest"), check_vm_state(vm_state)
        asked: Any = {"recreate": recreate, "hand_over": hand_over, "vm_state": told, "fix": fix}
        return await deploy(self.ledger, document, text, space=self.space, cloud=self.cloud, **asked)

    async def abort(self, deployment: str, plan: str) -> list[Holding]:
        """Take a plan back; return what was freed."""
        return await report_vm.abort(self.ledger, deployment, plan, space=self.space)

    async def commit(
        self,
        deployment: str,
        instance: str,
        *,
        vm: str,
        hints: Mapping[str, str] | None = None,
        plan: str | None = None,
    ) -> DeploymentInstance:
        """Report that an instance's VM is up; with ``plan``, that it was made for that one, and no later one."""
        return await report_vm.commit(self.ledger, deployment, check_ident(instance), vm=vm, hints=hints, plan=plan)

    async def fail(self, deployment: str, instance: str, *, plan: str | None = None) -> DeploymentInstance:
        """Report that an instance's VM could not be made; with ``plan``, that of that one, and no later one."""
        return await report_vm.fail(self.ledger, deployment, check_ident(instance), plan=plan)

    async def lose(self, deployment: str, instance: str, *, vm: str | None = None) -> DeploymentInstance | None:
        """Report that an instance's VM is gone; with ``vm``, that one, and no later one."""
        return await report_vm.lose(self.ledger, deployment, check_ident(instance), vm=vm)

    async def stop(
        self, deployment: str, instance: str, *, hard: bool = False, vm: str | None = None
    ) -> DeploymentInstance:
        """Report that an instance is stopped; with ``vm``, that one, and no later one."""
        return await report_vm.stop(self.ledger, deployment, check_ident(instance), hard=hard, vm=vm)

    async def start(self, deployment: str, instance: str) -> DeploymentInstance:
        """Let an instance be started again."""
        return await report_vm.start(self.ledger, deployment, check_ident(instance))

    async def ignore(self, deployment: str, instance: str, *, ignored: bool = True) -> DeploymentInstance:
        """Leave an instance out of deploys, or take it in again."""
        return await report_vm.ignore(self.ledger, deployment, check_ident(instance), ignored=ignored)

    async def clean_up_orphan(self, vm: str) -> Sequence[Holding]:
        """Report that an orphaned VM is deleted."""
        return await report_vm.clean_up_orphan(self.ledger, vm)

    async def delete(self, deployment: str) -> list[DeploymentInstance]:
        """Let a deployment go; return whose VMs must be deleted first."""
        return await report_vm.delete(self.ledger, deployment)

    async def instances(self, deployment: str) -> list[DeploymentInstance]:
        """Read a deployment's instances with all they hold."""
        return await load_instances(self.ledger, deployment)

    async def instance(self, deployment: str, ident: str) -> DeploymentInstance:
        """Find an instance by ``group/uuid`` or ``group/index``."""
        return await load_instance(self.ledger, deployment, check_ident(ident))

    async def moved_by(self, text: str | None, *, name: str = "default") -> list[Moved]:
        """Tell whose addresses would no longer fit if this were the cloud config of that name; None: without it."""
        text = None if text is None else check_document(text, field="text")
        return await moved_by_upload(self.ledger, check_name(name, field="config"), text)

    async def every(self) -> list[tuple[Deployment, list[DeploymentInstance]]]:
        """Read all deployments with their instances."""
        return await survey(self.ledger)

    async def standing(self, deployment: str) -> DeploymentStatus:
        """Read how a deployment stands."""
        return await stand(self.ledger, deployment)

    async def why(self, deployment: str, instance: str) -> Explained:
        """Explain why an instance has its addresses, and what would change them."""
        return await explain_instance(self.ledger, deployment, check_ident(instance))

    async def diff(self, manifest: str, *, document: str = "manifest.yml") -> Compared:
        """Tell how a manifest differs from what is deployed; nothing is planned."""
        return await compare(self.ledger, document, check_document(manifest, field="manifest"))

    async def orphans(self) -> list[Orphan]:
        """Read the VMs that were replaced and are to be deleted."""
        return await load_orphans(self.ledger)

    async def begin_compiling(
        self, deployment: str, plan: str | None = None, *, workers: int | None = None
    ) -> Compiling:
        """Reserve an address for each worker that compiles for the last plan (``plan``, to be sure), all or none."""
        return await compile_packages.begin(self.ledger, deployment, plan, workers=workers)

    async def compiling(self, deployment: str) -> Compiling | None:
        """Read a deployment's compile, if one goes on or broke off; what VMs are made with only its begin tells."""
        return await load_compiling(self.ledger, deployment)

    async def commit_worker(self, deployment: str, plan: str | None, number: int, *, vm: str) -> None:
        """Report that a worker's VM is up."""
        await compile_packages.commit(self.ledger, deployment, plan, check_number(number, field="number"), vm=vm)

    async def end_compiling(self, deployment: str, plan: str | None = None) -> Compiling | None:
        """Report that a compile is over and its VMs are deleted, or orphaned where the cloud config says so."""
        return await compile_packages.end(self.ledger, deployment, plan)

    async def run_errand(self, deployment: str, errand: str, *, dry: bool = False) -> Deployed:
        """Reserve what an errand's instances need to be run, all or nothing."""
        return await errands.run(self.ledger, deployment, check_name(errand, field="errand"), dry=dry)

    async def end_errand(self, deployment: str, errand: str) -> list[DeploymentInstance]:
        """Report that the VMs of an errand are deleted; its instances keep their addresses."""
        return await errands.end(self.ledger, deployment, check_name(errand, field="errand"))

    async def check(self, deployment: str, vms: Collection[str]) -> list[Missing]:
        """Tell which instances lost their VMs, given all VMs that exist."""
        return await cloud_check.check(self.ledger, deployment, check_vms(vms))

    async def recreate_missing(self, deployment: str, instance: str, *, vm: str) -> DeploymentInstance:
        """Let an instance wait for a VM in place of a lost one."""
        return await cloud_check.recreate(self.ledger, deployment, check_ident(instance), vm=vm)

    async def delete_reference(self, deployment: str, instance: str, *, vm: str) -> DeploymentInstance:
        """Forget an instance's VM; its addresses stay its."""
        return await cloud_check.delete_reference(self.ledger, deployment, check_ident(instance), vm=vm)

    async def recreate(self, deployment: str, instance: str | None = None, *, dry: bool = False) -> Deployed:
        """Let an instance, or all of a deployment, wait for a new VM, without a deploy."""
        ident = None if instance is None else check_ident(instance)
        return await recreate.recreate(self.ledger, deployment, ident, dry=dry)

    async def managed_networks(self) -> list[Managed]:
        """Read the managed networks that were made in the cloud; one that no deployment uses is an orphan."""
        return list((await load_managed(self.ledger)).values())

    async def delete_network(self, name: str) -> None:
        """Delete a managed network that no deployment uses, in the cloud and here."""
        if self.cloud is None:
            raise Refused(BoshErrorKind.GENERIC, "No cloud is known that could delete a network")
        await delete_network(self.ledger, self.cloud, name, space=self.space)
