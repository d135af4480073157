"""A pass over a template: each Metal3DataClaim of it gets a number and its Metal3Data, or lets them go.

The lowest free number is taken. The name of a Metal3Data is its template's with the number, so creating it is the lock,
and the objects are the truth: the template's status only lists them.
"""

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import Any

from tenure.integrations.kubernetes.metal3.objects.claim_kind import owner_reference
from tenure.integrations.kubernetes.metal3.objects.claim_reading import arrival_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER_NAME,
    field,
    finalizers_of,
    is_terminating,
    labels_of,
    mapping,
    now_text,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.move_marks import is_marked
from tenure.integrations.kubernetes.metal3_data.data_caches import DataCaches, WorkKey, cluster_of
from tenure.integrations.kubernetes.metal3_data.data_kinds import (
    DATA_CLAIM,
    DATA_CLAIM_FINALIZER,
    METAL3_MACHINE,
    TEMPLATE,
    TEMPLATE_FINALIZER,
    owner_references,
    owner_uids,
)
from tenure.integrations.kubernetes.metal3_data.data_writes import (
    REFUSALS,
    DataWrites,
    NamespaceGoing,
    refusal_text,
    type_of,
)
from tenure.integrations.kubernetes.metal3_data.left_behind import LeftBehind, LeftObject
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ObjectExists
from tenure.integrations.kubernetes.runtime.patches import Step, finalizer_steps, pointer
from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, key_of, uid_of

NO_MACHINE = "Metal3Machine not found in owner references"
LONGEST_LIST = 512
"""So many numbers ``status.indexes`` may list in v1beta2, and at least one."""


class TemplatePasses:
    """Numbers the machines of templates. Cost of a pass: O(machines of the template), one to three writes a claim."""

    def __init__(
        self, caches: DataCaches, writes: DataWrites, left: LeftBehind, serves: Callable[[Object], bool]
    ) -> None:
        self._caches = caches
        self._writes = writes
        self._left = left
        self._serves = serves

    async def settle(self, key: Key) -> None:
        """Bring a template, its claims and their data into order."""
        template = self._caches.templates.get(key)
        if template is not None and not self._is_served(template):
            return
        found = self._caches.data_claims.by_index("template", "/".join(key))
        # In the order of arrival: the lowest number goes to the claim that came first.
        claims = sorted((each for each in found if not is_marked(each)), key=arrival_of)
        # Claims that go come first: a new machine that the server refuses must not hold them up.
        refused = await _each([claim for claim in claims if is_terminating(claim)], self._end_claim)
        await self._left.release(WorkKey(TEMPLATE.kind, *key), self._left_datas(key))
        if template is not None and not is_terminating(template):
            template = await self._writes.patch(self._caches.templates, template, self._head_steps(template))
        living = [claim for claim in claims if not is_terminating(claim)]
        refused |= (new := await _each(living, partial(self._settle_claim, template)))
        for claim, error in new.items():
            await self._report_refusal(claim, error)
        if template is not None:
            await self._list(template)
            if is_terminating(template) and not self._is_used(key):
                await self._writes.drop_finalizer(self._caches.templates, template, TEMPLATE_FINALIZER)
        if refused:
            raise next(iter(refused.values()))  # so that the template comes again, later each time

    def _left_datas(self, template: Key) -> Iterator[LeftObject]:
        """Yield the data whose claim is gone, which would keep its number for ever."""
        claims, datas = self._caches.data_claims, self._caches.datas
        for data in datas.by_index("template", "/".join(template)):
            claim = key_of(data)[0], text(data, "spec", "claim", "name")
            if is_awaited(data) and claim[1] and claims.get(claim) is None:
                yield LeftObject(datas, data, DATA_CLAIM_FINALIZER, claims, claim)

    def _is_served(self, template: Object) -> bool:
        """Return whether a template is looked after: not paused, not moved away, and its cluster is there."""
        cluster = cluster_of(template)
        is_missing = bool(cluster) and self._caches.clusters.get((key_of(template)[0], cluster)) is None
        if is_marked(template) or self._caches.is_paused(template, cluster):
            return False
        return self._serves(template) and (not is_missing or is_terminating(template))

    def _head_steps(self, template: Object) -> list[Step]:
        """Return what a template lacks: the finalizer, and its cluster as label and owner."""
        steps = finalizer_steps(template, TEMPLATE_FINALIZER)
        cluster = self._caches.clusters.get((key_of(template)[0], cluster_of(template)))
        if cluster is None:
            return steps
        name, labels = key_of(cluster)[1], labels_of(template)
        if not labels:
            steps.append({"op": "add", "path": "/metadata/labels", "value": {CLUSTER_NAME: name}})
        elif labels.get(CLUSTER_NAME) != name:
            steps.append({"op": "add", "path": pointer("metadata", "labels", CLUSTER_NAME), "value": name})
        owners = owner_references(template)
        # Its uid and version change when it is moved: the mover writes the reference anew.
        if not any((each.get("kind"), each.get("name")) == ("Cluster", name) for each in owners):
            reference = owner_reference(type_of(self._caches.clusters), cluster)
            steps.append({"op": "add", "path": "/metadata/ownerReferences", "value": [*owners, reference]})
        return steps

    async def _settle_claim(self, template: Object | None, claim: Object) -> None:
        data = self._data_of(claim) or await self._adopted(claim)
        if data is not None:
            await self._say(claim, key_of(data))
        elif (elsewhere := text(claim, "spec", "template", "namespace")) not in ("", key_of(claim)[0]):
            if self._serves(claim):
                await self._refuse(claim, f"spec.template.namespace: {elsewhere!r} is not the claim's own namespace")
        elif template is not None and not self._leftovers(claim):  # else it is woken when those are gone
            await self._begin(template, claim)

    async def _begin(self, template: Object, claim: Object) -> None:
        if is_terminating(template):
            await self._refuse(claim, f"Metal3DataTemplate {key_of(template)[1]} is being deleted")
        elif not _machine_reference(claim):
            await self._refuse(claim, NO_MACHINE)
        elif key_of(claim)[0] not in self._writes.terminating:
            await self._number(template, claim)

    async def _number(self, template: Object, claim: Object) -> None:
        """Give a claim its number: the finalizer first, so that a claim that goes leaves nothing."""
        claims = self._caches.data_claims
        claim = await self._writes.patch(claims, claim, finalizer_steps(claim, DATA_CLAIM_FINALIZER))
        try:
            data = await self._create(template, claim)
        except NamespaceGoing:
            return
        await self._say(claim, key_of(data))

    async def _create(self, template: Object, claim: Object) -> Object:
        """Create the data under the lowest free number; a name that another object has is passed over."""
        datas = self._caches.datas
        used = {field(each, "spec", "index") for each in datas.by_index("template", "/".join(key_of(template)))}
        index = -1
        while True:
            # So many numbers in a row are more than are used, so at least one of them is free.
            index = next(number for number in range(index + 1, index + len(used) + 3) if number not in used)
            new = self._new_data(template, claim, index)
            try:
                return await self._writes.create(datas, new)
            except ObjectExists:
                found = await self._writes.read(type_of(datas), key_of(new))
                if found is None:
                    index -= 1  # it is gone again
                    continue
                datas.wrote(found)
                if uid_of(claim) in owner_uids(found):
                    return found  # the answer to our own create was lost

    def _new_data(self, template: Object, claim: Object, index: int) -> Object:
        kind, namespace = type_of(self._caches.datas), key_of(template)[0]
        owners = [
            owner_reference(type_of(self._caches.templates), template, controller=True),
            *self._owners_by(claim),
        ]
        metadata = {
            "name": f"{key_of(template)[1]}-{index}", "namespace": namespace, "finalizers": [DATA_CLAIM_FINALIZER],
            "labels": dict(labels_of(claim)), "ownerReferences": owners,
        }  # fmt: skip
        spec = {
            "index": index,
            "template": {"name": key_of(template)[1], "namespace": namespace},
            "claim": {"name": key_of(claim)[1], "namespace": namespace},
        }
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}

    async def _end_claim(self, claim: Object) -> None:
        """Let a claim go after its data, so that its number and name are free when both are gone."""
        datas = [*self._caches.datas.by_index("owner", uid_of(claim)), *self._leftovers(claim)]
        # A list: with a generator, ``all`` would not come to the objects behind the first that stays.
        gone = [
            not is_marked(data) and await self._writes.release(self._caches.datas, data, DATA_CLAIM_FINALIZER)
            for data in {key_of(each): each for each in datas}.values()
        ]
        if all(gone):
            await self._writes.drop_finalizer(self._caches.data_claims, claim, DATA_CLAIM_FINALIZER)

    def _data_of(self, claim: Object) -> Object | None:
        """Return the data of a claim; one that is going is the claim's only until the claim goes, too."""
        owned = self._caches.datas.by_index("owner", uid_of(claim))
        return min(owned, key=arrival_of, default=None)

    async def _adopted(self, claim: Object) -> Object | None:
        """Make data that names a claim the claim's own, where its owner is not there: it was restored by hand (KD8)."""
        for data in self._leftovers(claim):
            claims = {text(each, "uid") for each in owner_references(data) if text(each, "kind") == DATA_CLAIM.kind}
            lives = any(uid_of(each) in claims for each in self._caches.data_claims)
            if lives or is_terminating(data) or not _machine_reference(claim):
                continue
            replaced = (DATA_CLAIM.kind, METAL3_MACHINE.kind)
            kept = [each for each in owner_references(data) if text(each, "kind") not in replaced]
            value = [*kept, *self._owners_by(claim)]
            step = {"op": "add", "path": "/metadata/ownerReferences", "value": value}
            # The claim's finalizer first, as for a new number: a claim that goes leaves nothing.
            await self._writes.patch(self._caches.data_claims, claim, finalizer_steps(claim, DATA_CLAIM_FINALIZER))
            return await self._writes.patch(self._caches.datas, data, [step])
        return None

    def _owners_by(self, claim: Object) -> list[Object]:
        """Return the references that data has to its claim, and to the machine of that."""
        machine = {name: _machine_reference(claim)[name] for name in ("apiVersion", "kind", "name", "uid")}
        return [owner_reference(type_of(self._caches.data_claims), claim), machine]

    def _leftovers(self, claim: Object) -> list[Object]:
        """Return data that names a claim of this name without being owned by it: an earlier one had the name."""
        named = self._caches.datas.by_index("claim", "/".join(key_of(claim)))
        return [each for each in named if uid_of(claim) not in owner_uids(each)]

    async def _say(self, claim: Object, data: Key) -> None:
        claim = self._caches.data_claims.get(key_of(claim)) or claim
        rendered = {"name": data[1], "namespace": data[0]}
        if mapping(claim, "status", "renderedData") != rendered or text(claim, "status", "errorMessage"):
            await self._writes.say(self._caches.data_claims, claim, {"renderedData": rendered, "errorMessage": None})

    async def _refuse(self, claim: Object, message: str) -> None:
        if text(claim, "status", "errorMessage") != message:
            await self._writes.say(self._caches.data_claims, claim, {"errorMessage": message})

    async def _report_refusal(self, claim: Key, error: ApiError) -> None:
        """Say on a claim what the server refuses of it; what has changed meanwhile is tried again."""
        found = self._caches.data_claims.get(claim)
        if found is None or not (message := refusal_text(error)):
            return
        with contextlib.suppress(ApiError):  # the pass is repeated anyway; the other claims wait for it
            await self._refuse(found, message)

    async def _list(self, template: Object) -> None:
        """List the numbers in the template's status, if it says anything else."""
        datas = self._caches.datas.by_index("template", "/".join(key_of(template)))
        numbers = {text(each, "spec", "claim", "name"): int(field(each, "spec", "index") or 0) for each in datas}
        shown = listed_indexes(template, numbers)
        if (field(template, "status", "indexes") or type(shown)()) == shown:
            return
        # As it is by now: numbering takes a while, and the server refuses a status on an older version.
        template = self._caches.templates.get(key_of(template)) or template
        names = {text(each, "spec", "claim", "name"): key_of(each)[1] for each in datas}
        # A merge patch leaves what it does not name: those that are gone are named. A list it replaces.
        gone = dict.fromkeys(mapping(template, "status", "indexes"))
        status = {
            "indexes": gone | shown if isinstance(shown, dict) else shown or None,
            "dataNames": dict.fromkeys(mapping(template, "status", "dataNames")) | names,
            "lastUpdated": now_text(),
        }
        await self._writes.say(self._caches.templates, template, status)

    def _is_used(self, key: Key) -> bool:
        name = "/".join(key)
        return bool(
            self._caches.datas.by_index("template", name) or self._caches.data_claims.by_index("template", name)
        )


async def _each(claims: Iterable[Object], settle: Callable[[Object], Awaitable[None]]) -> dict[Key, ApiError]:
    """Settle claims one by one, and return what the server refuses: one that a quota stops holds up no other."""
    refused: dict[Key, ApiError] = {}
    for claim in claims:
        try:
            await settle(claim)
        except ApiError as error:
            # That an object went, or was changed meanwhile, concerns one claim alone, too.
            if error.status not in (*REFUSALS, 404, 409):
                raise
            refused[key_of(claim)] = error
    return refused


def listed_indexes(template: Object, numbers: dict[str, int]) -> dict[str, Any] | list[Any]:
    """Return numbers as the version of a template lists them: a map, or a list of the lowest ones with their names."""
    if text(template, "apiVersion").endswith("/v1beta2"):
        listed = sorted(numbers.items(), key=lambda each: each[1])[:LONGEST_LIST]
        return [{"name": name, "index": index} for name, index in listed]
    return dict(sorted(numbers.items()))


def _machine_reference(claim: Object) -> Object:
    """Return the reference to the Metal3Machine that owns a claim; empty if there is none."""
    return next((each for each in owner_references(claim) if text(each, "kind") == METAL3_MACHINE.kind), {})


def is_awaited(data: Object) -> bool:
    """Return whether a machine's data is still wanted by its claim."""
    return DATA_CLAIM_FINALIZER in finalizers_of(data)
