"""A pass over a machine's data: its claims are made and waited for, its secrets written once, and all of it let go.

Both secrets are rendered before the first is written. What stands after any write leads the next leader to the same
end: claims are found by their owner, addresses by their claims, and secrets are never written a second time (R8).
"""

import contextlib
import logging
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tenure.integrations.kubernetes.metal3.objects.claim_kind import owner_reference
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER_NAME,
    field,
    finalizers_of,
    is_terminating,
    labels_of,
    mapping,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.move_marks import is_marked
from tenure.integrations.kubernetes.metal3_data.claim_making import ClaimMaking, NotServedYet, waits_for_others
from tenure.integrations.kubernetes.metal3_data.data_caches import DataCaches, WorkKey, cluster_of
from tenure.integrations.kubernetes.metal3_data.data_kinds import (
    DATA,
    DATA_FINALIZER,
    META_DATA,
    METAL3_MACHINE,
    NETWORK_DATA,
    SECRET_TYPE,
    SUFFIXES,
    owner_references,
    owner_uids,
)
from tenure.integrations.kubernetes.metal3_data.data_writes import DataWrites, NamespaceGoing, refusal_text, type_of
from tenure.integrations.kubernetes.metal3_data.left_behind import LeftBehind, LeftObject
from tenure.integrations.kubernetes.metal3_data.template.data_yaml import data_yaml
from tenure.integrations.kubernetes.metal3_data.template.machine_facts import MachineFacts
from tenure.integrations.kubernetes.metal3_data.template.machine_reading import (
    HOST_ANNOTATION,
    host_key,
    machine_object,
    owner_named,
    read_facts,
)
from tenure.integrations.kubernetes.metal3_data.template.read_template import check_cluster, read_template
from tenure.integrations.kubernetes.metal3_data.template.render_data import RenderedData, RenderRules, render_data
from tenure.integrations.kubernetes.metal3_data.template.template_fields import TemplateRefused
from tenure.integrations.kubernetes.metal3_data.template.template_model import DataTemplate, ObjectSort
from tenure.integrations.kubernetes.metal3_data.template_pass import is_awaited
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ObjectExists
from tenure.integrations.kubernetes.runtime.patches import Step, finalizer_steps
from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, key_of, uid_of

LOG = logging.getLogger(__name__)

LOOKS_AGAIN_S = 600.0
"""After so long a machine that is ready is looked at again: somebody may have deleted its secrets."""
LONGEST_ERROR = 512
"""So many characters ``errorMessage`` may have in v1beta2."""
WAITS_S = 5.0
"""After so long a machine is tried again that waits for objects of which no change is seen."""


@dataclass(frozen=True)
class MachineObjects:
    """What a machine is rendered from, all of it there."""

    template: Object
    metal3_machine: Object
    machine: Object
    host: Object


class DataPasses:
    """Renders machines. Cost of a machine: a write for each claim, five more, and a read for each address."""

    def __init__(
        self,
        caches: DataCaches,
        writes: DataWrites,
        claims: ClaimMaking,
        left: LeftBehind,
        serves: Callable[[Object], bool],
        rules: RenderRules,
        add_after: Callable[[WorkKey, float], None],
    ) -> None:
        self._caches = caches
        self._writes = writes
        self._claims = claims
        self._left = left
        self._serves = serves
        self._rules = rules
        self._add_after = add_after
        self._seen: dict[Key, tuple[str, float]] = {}
        """Machines that are ready: in which version of their data, and until when their secrets need no look."""

    async def settle(self, key: Key) -> None:
        """Bring a machine's data to its end: rendered, or released."""
        # Also where the data is gone, since only then its claims are left behind.
        await self._left.release(WorkKey(DATA.kind, *key), self._left_claims(key))
        data = self._caches.datas.get(key)
        if data is None:
            self._seen.pop(key, None)
            return
        if is_marked(data) or not self._serves(data):
            return
        if self._caches.is_paused(data, self._cluster_of(data)):
            return
        try:
            await (self._release(data) if is_terminating(data) else self._render(data))
        except NamespaceGoing:
            LOG.info("Metal3Data %s/%s: its namespace is being deleted", *key)

    def _left_claims(self, key: Key) -> Iterator[LeftObject]:
        """Yield the claims of data of this name that is gone: their names are those of the next machine's claims."""
        datas = self._caches.datas
        for group, claim in self._caches.claims_naming(key):
            (uid, *_) = (text(each, "uid") for each in owner_references(claim) if text(each, "kind") == DATA.kind)
            if DATA_FINALIZER in finalizers_of(claim) and not self._caches.has_data(uid):
                yield LeftObject(group, claim, DATA_FINALIZER, datas, key, uid)

    async def _release(self, data: Object) -> None:
        """Let the claims of a machine go, whichever template they were made by (R11), its secrets, and its data."""
        claims = self._caches.claims_of(data)
        if is_awaited(data) or any(is_marked(claim) for _, claim in claims):
            return  # its claim still wants it; or it is moved, and without it nobody would release what stays here
        for kind, claim in claims:
            await self._writes.release(self._caches.claims_of_kind(kind), claim, DATA_FINALIZER)
        for name in self._secret_names(data):
            secret = await self._writes.read_secret((key_of(data)[0], name))
            if secret is not None and uid_of(data) in owner_uids(secret):
                await self._writes.delete_secret(secret)
        # Last: as long as the object is there, a next leader finds what is still to go.
        await self._writes.drop_finalizer(self._caches.datas, data, DATA_FINALIZER)

    def _cluster_of(self, data: Object) -> str:
        """Return the cluster of a machine: that of its claim's label, else that of its template."""
        template = self._caches.templates.get((key_of(data)[0], text(data, "spec", "template", "name")))
        return cluster_of(data) or (cluster_of(template) if template is not None else "")

    async def _render(self, data: Object) -> None:
        try:
            if await self._is_finished(data):
                return
            found = self._objects(data)
            template = read_template(found.template).template
            check_cluster(template, labels_of(data).get(CLUSTER_NAME) or "")
            self._check_index(data)
            # The finalizer comes before the first claim: data that goes leaves none behind.
            data = await self._writes.patch(self._caches.datas, data, _head_steps(data, found, template))
            missing = await self._missing_secrets(data)
            if missing:
                await self._write_secrets(data, found, template, missing)
        except TemplateRefused as error:
            await self._say(data, is_ready=False, error=error.message)
            self._add_after(WorkKey(DATA.kind, *key_of(data)), LOOKS_AGAIN_S)
            return
        except NotServedYet as waiting:
            await self._say(data, is_ready=False, error=waiting.reason)
            if not waiting.is_followed:
                self._add_after(WorkKey(DATA.kind, *key_of(data)), WAITS_S)
            return
        except ApiError as error:
            await self._report_refusal(data, error)
            raise  # so that the machine comes again, later each time
        await self._say(data, is_ready=True, error="")

    async def _report_refusal(self, data: Object, error: ApiError) -> None:
        """Say what the server refuses of a machine. One that is ready stays so: its secrets were not to be read."""
        message = refusal_text(error)
        if message and field(data, "status", "ready") is not True:
            with contextlib.suppress(ApiError):  # the pass is repeated anyway
                await self._say(data, is_ready=False, error=message)

    async def _is_finished(self, data: Object) -> bool:
        """Return whether a machine is ready and has its secrets, whatever became of its template since (R8).

        Its other objects change often: while its data has not changed, its secrets are looked at every ten minutes.
        """
        if field(data, "status", "ready") is not True:
            return False
        key, version = key_of(data), data["metadata"]["resourceVersion"]
        known, until = self._seen.get(key, ("", 0.0))
        if known == version and time.monotonic() < until:
            return True
        if await self._missing_secrets(data):
            return False
        self._seen[key] = version, time.monotonic() + LOOKS_AGAIN_S
        self._add_after(WorkKey(DATA.kind, *key), LOOKS_AGAIN_S)
        return True

    def _objects(self, data: Object) -> MachineObjects:
        """Return what the machine is rendered from; raise ``NotServedYet`` for a part that wakes it when it comes."""
        namespace, caches = key_of(data)[0], self._caches

        def there(found: Object | None, what: str) -> Object:
            if found is None:
                raise waits_for_others(data, f"it waits for {what}")
            return found

        name = text(data, "spec", "template", "name")
        template = there(caches.templates.get((namespace, name)), f"Metal3DataTemplate {name}")
        claim = caches.data_claims.get((namespace, text(data, "spec", "claim", "name")))
        name = owner_named(claim or data, METAL3_MACHINE.kind)
        own = there(caches.metal3_machines.get((namespace, name)), f"Metal3Machine {name}, which is to own its claim")
        owner, host = owner_named(own, "Machine"), host_key(own)
        machine = caches.machines.get((namespace, owner))
        return MachineObjects(
            template,
            own,
            there(machine, f"Machine {owner}, which is to own Metal3Machine {name}"),
            there(
                caches.hosts.get(host) if host else None,
                f"BareMetalHost {'/'.join(host)}"
                if host
                else f"a host: {HOST_ANNOTATION} of Metal3Machine {name} is to say NAMESPACE/NAME",
            ),
        )

    def _check_index(self, data: Object) -> None:
        """Refuse a number that an older machine of the template has: two machines would get the same names."""
        for other in self._caches.same_number(data):
            if _age(other) < _age(data):
                reason = f"{field(data, 'spec', 'index')} is also that of Metal3Data {key_of(other)[1]}"
                raise TemplateRefused([("spec.index", reason)])

    async def _missing_secrets(self, data: Object) -> dict[str, Object | None]:
        """Return the keys of secrets that are to be written, with the secret of a former machine that must go first."""
        missing: dict[str, Object | None] = {}
        for key in (META_DATA, NETWORK_DATA):
            name = text(data, "spec", key, "name")
            if not name:
                continue
            secret = await self._writes.read_secret((key_of(data)[0], name))
            if secret is None or await self._is_leftover(data, secret):
                missing[key] = secret
        return missing

    async def _is_leftover(self, data: Object, secret: Object) -> bool:
        """Return whether a secret is of a Metal3Data that is gone; one of a living one is waited for."""
        owners = [each for each in owner_references(secret) if text(each, "kind") == DATA.kind]
        if not owners or uid_of(data) in owner_uids(secret):
            return False  # somebody else's, or ours: neither is written again
        living = [each for each in owners if self._caches.has_data(text(each, "uid"))]
        if living:
            name = key_of(secret)[1]
            raise NotServedYet(f"Secret {name} is that of Metal3Data {text(living[0], 'name')}", is_followed=False)
        return True

    async def _write_secrets(
        self, data: Object, found: MachineObjects, template: DataTemplate, missing: dict[str, Object | None]
    ) -> None:
        """Write secrets; what they replace stays until all of them are rendered, since a host may run by it."""
        facts = _facts(data, found)
        addresses = await self._claims.addresses(data, template, facts)
        rendered = render_data(template, facts, addresses, self._rules)
        for key, leftover in missing.items():
            if leftover is not None:
                await self._writes.delete_secret(leftover)
            try:
                await self._writes.create_secret(self._secret(data, found, key, rendered))
            except ObjectExists:
                # The answer to our own create was lost, or somebody was faster: the next pass sees whose it is.
                raise NotServedYet("", is_followed=False) from None

    def _secret(self, data: Object, found: MachineObjects, key: str, rendered: RenderedData) -> Object:
        document = rendered.meta_data if key == META_DATA else rendered.network_data
        cluster = labels_of(found.template).get(CLUSTER_NAME) or cluster_of(found.template)
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": text(data, "spec", key, "name"),
                "namespace": key_of(data)[0],
                "labels": {CLUSTER_NAME: cluster} if cluster else {},
                "ownerReferences": [owner_reference(type_of(self._caches.datas), data, controller=True)],
            },
            "type": SECRET_TYPE,
            "data": {key: b64encode(data_yaml(document).encode("utf-8")).decode("ascii")},
        }

    def _secret_names(self, data: Object) -> list[str]:
        return [name for key in SUFFIXES if (name := text(data, "spec", key, "name"))]

    async def _say(self, data: Object, *, is_ready: bool, error: str) -> None:
        # As it is by now: the server refuses a status on the version from before the other writes.
        data = self._caches.datas.get(key_of(data)) or data
        error = error if len(error) <= LONGEST_ERROR else error[: LONGEST_ERROR - 1] + "…"
        status = mapping(data, "status")
        if bool(status.get("ready")) == is_ready and (status.get("errorMessage") or "") == error:
            return
        # A missing status says the same; each machine would cost one write more.
        if not status and not is_ready and not error:
            return
        await self._writes.say(self._caches.datas, data, {"ready": is_ready, "errorMessage": error or None})


def _facts(data: Object, found: MachineObjects) -> MachineFacts:
    objects = {
        ObjectSort.MACHINE: machine_object(found.machine),
        ObjectSort.METAL3_MACHINE: machine_object(found.metal3_machine),
        ObjectSort.HOST: machine_object(found.host),
    }
    return read_facts(key_of(data)[0], int(field(data, "spec", "index") or 0), objects, found.host)


def _head_steps(data: Object, found: MachineObjects, template: DataTemplate) -> list[Step]:
    """Return what a machine's data lacks: the finalizer, and the names of its secrets."""
    steps = finalizer_steps(data, DATA_FINALIZER)
    namespace, machine = key_of(found.metal3_machine)
    parts = {META_DATA: template.meta_data, NETWORK_DATA: template.network_data}
    for key, part in parts.items():
        if part is not None and not text(data, "spec", key, "name"):
            named = {"name": f"{machine}{SUFFIXES[key]}", "namespace": namespace}
            steps.append({"op": "add", "path": f"/spec/{key}", "value": named})
    return steps


def _age(data: Object) -> tuple[str, str]:
    return text(data, "metadata", "creationTimestamp"), key_of(data)[1]
