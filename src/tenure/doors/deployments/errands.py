"""Errands: groups whose VMs are there only while they are run. Their instances keep what they once reserved."""

import secrets
import uuid
from collections.abc import Sequence
from dataclasses import replace

from tenure.doors.deployments.deploying import Deployed
from tenure.doors.deployments.drafting import Order, Step, draft
from tenure.doors.deployments.faults import Kind, Refused
from tenure.doors.deployments.model import ERRAND, Group, Manifest
from tenure.doors.deployments.parting import Books
from tenure.doors.deployments.records import Instance
from tenure.doors.deployments.remembering import Remembered, redo, remember
from tenure.doors.deployments.trying import turns
from tenure.kernel.errors import NotFound
from tenure.service.ledger import AsyncLedger


async def run(ledger: AsyncLedger, deployment: str, errand: str, *, dry: bool = False) -> Deployed:
    """Reserve what an errand's instances need to be run, all or nothing; what they have from earlier they keep.

    Each then waits for its VM, as after a deploy. An instance whose VM is still there is left as it is.
    """
    order = Order(secrets.token_hex(8), errands=frozenset({errand}))

    def decide(remembered: Remembered) -> Sequence[Step]:
        group = remembered.group(errand)
        if group is None:
            raise NotFound("errand", errand, of=f"deployment {deployment}")
        _check_errand(group)
        own = [each for each in remembered.instances if each.group == errand]
        only = Manifest(deployment, [replace(group, migrated_from=())])
        return draft(only, remembered.config, own, order, lambda: str(uuid.uuid4()))

    return await redo(ledger, deployment, order.plan, decide, dry=dry)


async def end(ledger: AsyncLedger, deployment: str, errand: str) -> list[Instance]:
    """Take the report that the VMs of an errand are deleted; return the instances, with what they keep."""
    async for turn in turns():
        remembered = await remember(ledger, deployment)
        group = remembered.group(errand)
        own = [each for each in remembered.instances if each.group == errand and each.errand]
        if group is not None:
            _check_errand(group)
        elif not own:
            raise NotFound("errand", errand, of=f"deployment {deployment}")
        books = Books(remembered.instances)
        for each in own:
            books.lose(each, plan=None, failed=False)
        with turn:
            await ledger.apply(books.operations)
            return [each for each in (await remember(ledger, deployment)).instances if each.group == errand]
    raise AssertionError("unreachable")


def _check_errand(group: Group) -> None:
    """Refuse a group whose VMs are to stay."""
    if group.lifecycle != ERRAND:
        told = f"Instance group '{group.name}' is not an errand. To mark an instance group as an errand"
        raise Refused(Kind.GENERIC, f"{told} set its lifecycle to 'errand' in the deployment manifest.")
