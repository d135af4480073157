"""The door itself: what people and programs may do with deployments, over one ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tenure.doors.deployments import finishing
from tenure.doors.deployments.configuring import Configs, Uploaded, load_configs, upload
from tenure.doors.deployments.deploying import Deployed, deploy
from tenure.doors.deployments.ground import SPACE
from tenure.doors.deployments.records import Instance, load_instance, load_instances
from tenure.kernel.values import Holding
from tenure.service.ledger import AsyncLedger


@dataclass(frozen=True, slots=True)
class Deployments:
    """Deployments of one site: they share a space, and their owners are instances."""

    ledger: AsyncLedger
    space: str = SPACE

    async def upload_config(self, text: str, *, name: str = "default", dry: bool = False) -> Uploaded:
        """Put a cloud config in force; all its faults are told at once, and nothing is changed then."""
        return await upload(self.ledger, name, text, space=self.space, dry=dry)

    async def configs(self) -> Configs | None:
        """Read the cloud configs in force, if there are any."""
        return await load_configs(self.ledger)

    async def plan(self, manifest: str, *, document: str = "manifest.yml", recreate: bool = False) -> Deployed:
        """Tell what ``apply`` would do, with the addresses it would reserve; nothing is changed."""
        return await deploy(self.ledger, document, manifest, recreate=recreate, dry=True)

    async def apply(self, manifest: str, *, document: str = "manifest.yml", recreate: bool = False) -> Deployed:
        """Reserve all that a manifest wants, or nothing."""
        return await deploy(self.ledger, document, manifest, recreate=recreate)

    async def abort(self, deployment: str, plan: str) -> list[Holding]:
        """Take a plan back; return what was freed."""
        return await finishing.abort(self.ledger, deployment, plan)

    async def commit(
        self, deployment: str, instance: str, *, vm: str, hints: Mapping[str, str] | None = None
    ) -> Instance:
        """Report that an instance's VM is up."""
        return await finishing.commit(self.ledger, deployment, instance, vm=vm, hints=hints)

    async def fail(self, deployment: str, instance: str) -> Instance:
        """Report that an instance's VM could not be made."""
        return await finishing.fail(self.ledger, deployment, instance)

    async def lose(self, deployment: str, instance: str) -> Instance | None:
        """Report that an instance's VM is gone."""
        return await finishing.lose(self.ledger, deployment, instance)

    async def stop(self, deployment: str, instance: str, *, hard: bool = False) -> Instance:
        """Report that an instance is stopped."""
        return await finishing.stop(self.ledger, deployment, instance, hard=hard)

    async def start(self, deployment: str, instance: str) -> Instance:
        """Let an instance be started again."""
        return await finishing.start(self.ledger, deployment, instance)

    async def ignore(self, deployment: str, instance: str, *, ignored: bool = True) -> Instance:
        """Leave an instance out of deploys, or take it in again."""
        return await finishing.ignore(self.ledger, deployment, instance, ignored=ignored)

    async def clean_up_orphan(self, vm: str) -> Sequence[Holding]:
        """Report that an orphaned VM is deleted."""
        return await finishing.clean_up_orphan(self.ledger, vm)

    async def delete(self, deployment: str) -> list[Instance]:
        """Let a deployment go; return whose VMs must be deleted first."""
        return await finishing.delete(self.ledger, deployment)

    async def instances(self, deployment: str) -> list[Instance]:
        """Read a deployment's instances with all they hold."""
        return await load_instances(self.ledger, deployment)

    async def instance(self, deployment: str, ident: str) -> Instance:
        """Find an instance by ``group/uuid`` or ``group/index``."""
        return await load_instance(self.ledger, deployment, ident)
