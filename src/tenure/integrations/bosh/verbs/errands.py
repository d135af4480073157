"""Errands: groups whose VMs are there only while they are run. Their instances keep what they once reserved."""

import secrets
import uuid
from collections.abc import Sequence
from dataclasses import replace

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.model.document_model import ERRAND, InstanceGroup, Manifest
from tenure.integrations.bosh.model.retry import Turn, until_done
from tenure.integrations.bosh.planning.instance_changes import Books
from tenure.integrations.bosh.planning.steps import Order, Step, draft
from tenure.integrations.bosh.state.instance_state import DeploymentInstance, is_overtaken
from tenure.integrations.bosh.state.vm_index import load_vms
from tenure.integrations.bosh.verbs.deploy import Deployed
from tenure.integrations.bosh.verbs.last_deployed import LastDeployed, redo, remember
from tenure.kernel.errors import NotFound
from tenure.service.ledger.async_ledger import AsyncLedger


async def run(ledger: AsyncLedger, deployment: str, errand: str, *, dry: bool = False) -> Deployed:
    """Reserve what an errand's instances need to be run, all or nothing; what they have from earlier they keep.

    Each then waits for its VM, as after a deploy. An instance whose VM is still there is left as it is.
    """
    order = Order(secrets.token_hex(8), errands=frozenset({errand}))

    def decide(remembered: LastDeployed) -> Sequence[Step]:
        group = remembered.group(errand)
        if group is None:
            raise NotFound("errand", errand, of=f"deployment {deployment}")
        _check_errand(group)
        own = [each for each in remembered.instances if each.group == errand]
        # The last deploy has adopted the instances of other groups already.
        only = Manifest(deployment, [replace(group, migrated_from=())])
        steps = draft(only, remembered.config, own, order, lambda: str(uuid.uuid4()))
        return [step for step in steps if step.after is not None]  # who is not wanted leaves by a deploy

    return await redo(ledger, deployment, order.plan, decide, dry=dry)


async def end(ledger: AsyncLedger, deployment: str, errand: str) -> list[DeploymentInstance]:
    """Take the report that the VMs of an errand are deleted, and none is being made any more.

    Returns the instances, with what they keep: what a deploy meanwhile gave up for them is free.
    """

    async def attempt(turn: Turn) -> list[DeploymentInstance]:
        remembered = await remember(ledger, deployment)
        group = remembered.group(errand)
        own = [each for each in remembered.instances if each.group == errand and each.errand]
        if group is not None:
            _check_errand(group)
        elif not own:
            raise NotFound("errand", errand, of=f"deployment {deployment}")
        books = Books(remembered.instances, await load_vms(ledger, [each.vm for each in own]))
        for each in own:
            _end(books, each)
        with turn:
            await ledger.apply(books.operations)
            return [each for each in (await remember(ledger, deployment)).instances if each.group == errand]

    return await until_done(attempt)


def _end(books: Books, instance: DeploymentInstance) -> None:
    """Let an instance rest. Of what it is not to keep it has nothing any more but what was its own without any VM."""
    given_up = [each for each in instance.parting if each.carrier is not None or is_overtaken(each)]
    if not instance.leaving:
        books.let_go(given_up)
        # lose below must not touch what is let go here.
        instance = replace(instance, holdings=tuple(each for each in instance.holdings if each not in given_up))
    books.lose(instance, plan=None, failed=False, earlier=())


def _check_errand(group: InstanceGroup) -> None:
    """Refuse a group whose VMs are to stay."""
    if group.lifecycle != ERRAND:
        told = f"Instance group '{group.name}' is not an errand. To mark an instance group as an errand"
        raise Refused(BoshErrorKind.GENERIC, f"{told} set its lifecycle to 'errand' in the deployment manifest.")
