"""Caches of templates, machines, hosts and claims; every change wakes the templates and machines that it is about.

Every replica follows the server this way, so a new leader has all of it. Addresses and secrets are not followed: a pass
reads those that it needs.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLUSTER_API, METAL3
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER,
    CLUSTER_API_CLAIM,
    CLUSTER_API_VERSIONS,
    CLUSTER_NAME,
    IP_CLAIM,
    IP_POOL,
    PAUSED,
    annotations_of,
    field,
    is_paused_cluster,
    labels_of,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.move_marks import with_marks
from tenure.integrations.kubernetes.metal3_data.data_kinds import (
    DATA,
    DATA_CLAIM,
    HOST,
    MACHINE,
    METAL3_MACHINE,
    TEMPLATE,
    VERSIONS,
)
from tenure.integrations.kubernetes.metal3_data.template.machine_reading import host_key, owner_named
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.discovered_group import DiscoveredGroup
from tenure.integrations.kubernetes.runtime.informer import Informer, drop_managed_fields
from tenure.integrations.kubernetes.runtime.informer_group import InformerGroup
from tenure.integrations.kubernetes.runtime.object_cache import Delta, Indexer
from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, ResourceType, key_of, uid_of
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter

Group = InformerGroup | DiscoveredGroup
Trim = Callable[[Object], None]


class WorkKey(NamedTuple):
    """An object that a pass is about, or that is waited for."""

    kind: str
    namespace: str
    name: str

    @property
    def key(self) -> Key:
        """Return where the object is found among its kind."""
        return self.namespace, self.name


SAID = (("spec",), ("metadata", "labels"), ("metadata", "annotations"))
"""What machines are rendered by, of a template; its status lists them, and changes with each of them."""
HEADS = (
    *(("spec", name) for name in ("template", "claim", "index")),
    *(("metadata", name) for name in ("uid", "ownerReferences", "finalizers", "deletionTimestamp", "annotations")),
)
"""What a template looks at in the data of its machines; not what became of it."""


class DataCaches:
    """What is known of the server.

    Cost: O(1) a change, and O(machines) of a template that says something else, or of a cluster that changes.
    """

    def __init__(
        self, client: ApiClient, namespaces: Sequence[str], meter: RuntimeMeter, wake: Callable[[WorkKey], None],
        trim: Trim = drop_managed_fields,
    ) -> None:  # fmt: skip
        self._wake = wake
        self._awaited: dict[WorkKey, set[Key]] = {}
        """Machines that wait for a pool to be there, or for a claim of another one to go."""

        def group(kind: ResourceType, indexers: dict[str, Indexer] | None = None, trim: Trim = trim) -> InformerGroup:
            # Only Metal3's IPAM kinds have one version: others may be served in another one, and are not emptied.
            more = partial(
                Informer, indexers=with_marks(indexers), trim=trim, meter=meter, empties=kind.group == IP_POOL.group
            )
            return InformerGroup(namespaces, lambda name: more(client, kind, namespace=name))

        def found(
            kind: ResourceType, versions: Sequence[str], indexers: dict[str, Indexer] | None = None, trim: Trim = trim
        ) -> DiscoveredGroup:
            make = partial(group, indexers=indexers, trim=trim)
            return DiscoveredGroup(client, kind.group, kind.plural, versions, make)

        plain = drop_managed_fields
        self.templates = found(TEMPLATE, VERSIONS, {"cluster": _cluster_of})
        self.data_claims = found(DATA_CLAIM, VERSIONS, {"template": _template_of})
        self.datas = found(
            DATA, VERSIONS,
            {
                "template": _template_of, "number": _number_of, "claim": _claim_of, "machine": _machine_of,
                "owner": _owners, "cluster": _cluster_of, "uid": lambda data: [uid_of(data)],
            },
        )  # fmt: skip
        self.metal3_machines = found(METAL3_MACHINE, VERSIONS, {"machine": _capi_machine_of, "host": _host_of}, plain)
        self.machines = found(MACHINE, CLUSTER_API_VERSIONS, trim=plain)
        self.hosts = found(HOST, (HOST.version,), trim=_trim_host)
        self.clusters = found(CLUSTER, CLUSTER_API_VERSIONS, trim=plain)
        self.pools = group(IP_POOL, trim=plain)
        of_claims: dict[str, Indexer] = {"owner": _owners, "data": _data_of}
        self.ip_claims = group(IP_CLAIM, of_claims, plain)
        self.cluster_api_claims = found(CLUSTER_API_CLAIM, CLUSTER_API_VERSIONS, of_claims, plain)
        self._listen()

    def _listen(self) -> None:
        self.templates.on_change(self._template_changed)
        self.datas.on_change(self._data_changed)
        handlers: dict[Group, Callable[[Object], None]] = {
            self.data_claims: self._data_claim_changed,
            self.metal3_machines: self._metal3_machine_changed,
            self.machines: lambda machine: self._owned_changed("machine", key_of(machine)),
            self.hosts: lambda host: self._owned_changed("host", key_of(host)),
            self.clusters: self._cluster_changed,
            self.pools: partial(self._wake_waiting, IP_POOL),
            self.ip_claims: partial(self._claim_changed, IP_CLAIM),
            self.cluster_api_claims: partial(self._claim_changed, CLUSTER_API_CLAIM),
        }
        for group, handler in handlers.items():
            group.on_change(partial(_each_side, handler))

    @property
    def groups(self) -> dict[str, Group]:
        """Return all kinds that are followed, by the name that people know."""
        return {
            "metal3datatemplates": self.templates, "metal3dataclaims": self.data_claims, "metal3datas": self.datas,
            "metal3machines": self.metal3_machines, "machines": self.machines, "baremetalhosts": self.hosts,
            "clusters": self.clusters, "ippools": self.pools, "ipclaims": self.ip_claims,
            "cluster-api claims": self.cluster_api_claims,
        }  # fmt: skip

    def not_ready(self) -> dict[str, str]:
        """Return the kinds that are not in the cache yet; without Metal3's own there is nothing to render."""
        missing = {
            f"{name} in {namespace or 'the cluster'}": getattr(group, "unknown", "") or "not read yet"
            for name, group in self.groups.items()
            for namespace in group.unsynced()
        }
        own = {"metal3datatemplates": self.templates, "metal3dataclaims": self.data_claims, "metal3datas": self.datas}
        gone = [name for name, group in own.items() if not group.unsynced() and not group.is_there]
        return missing | dict.fromkeys(gone, "the server does not have this kind: apply the definitions of CAPM3")

    async def follow(self) -> None:
        """Follow the server until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for group in self.groups.values():
                tasks.create_task(group.run())
                tasks.create_task(group.compare_regularly())

    async def compare(self) -> None:
        """Read everything from the server itself, as a new leader does before its first write (KP5)."""
        for group in self.groups.values():
            await group.wait_synced()
        await asyncio.gather(*(group.compare() for group in self.groups.values()))

    def wake_all(self) -> None:
        """Ask for a pass over everything, as a new leader does."""
        for template in self.templates:
            self._wake(WorkKey(TEMPLATE.kind, *key_of(template)))
        # Also of templates that are gone: what names them is to be let go.
        for claim in self.data_claims:
            self._wake(WorkKey(TEMPLATE.kind, key_of(claim)[0], text(claim, "spec", "template", "name")))
        for data in self.datas:
            self._wake(WorkKey(DATA.kind, *key_of(data)))
            self._wake(WorkKey(TEMPLATE.kind, key_of(data)[0], text(data, "spec", "template", "name")))
        # Also of data that is gone: its claims may have been left behind.
        for claim in (*self.ip_claims, *self.cluster_api_claims):
            if name := owner_named(claim, DATA.kind):
                self._wake(WorkKey(DATA.kind, key_of(claim)[0], name))

    def claims_of_kind(self, kind: ClaimKind) -> Group:
        """Return the claims of a kind."""
        return self.ip_claims if kind is METAL3 else self.cluster_api_claims

    def claims_of(self, data: Object) -> list[tuple[ClaimKind, Object]]:
        """Return the claims that a machine's data owns, of both kinds."""
        kinds = (METAL3, CLUSTER_API)
        return [(kind, each) for kind in kinds for each in self.claims_of_kind(kind).by_index("owner", uid_of(data))]

    def claims_naming(self, data: Key) -> list[tuple[Group, Object]]:
        """Return the claims of both kinds that name a machine's data as their owner, or one that had its name."""
        groups: tuple[Group, ...] = (self.ip_claims, self.cluster_api_claims)
        return [(group, each) for group in groups for each in group.by_index("data", "/".join(data))]

    def same_number(self, data: Object) -> list[Object]:
        """Return the data of other machines of the template that has the number of this one."""
        (number,) = _number_of(data) or ("",)
        return [each for each in self.datas.by_index("number", number) if uid_of(each) != uid_of(data)]

    def has_data(self, uid: str) -> bool:
        """Return whether there is a Metal3Data of a uid."""
        return bool(self.datas.by_index("uid", uid))

    def is_paused(self, object: Object, cluster: str) -> bool:
        """Return whether an object must be left alone: it is marked, or its cluster is paused."""
        if PAUSED in annotations_of(object):
            return True
        found = self.clusters.get((key_of(object)[0], cluster)) if cluster else None
        return found is not None and is_paused_cluster(found)

    def await_change(self, kind: ResourceType, key: Key, data: Key) -> None:
        """Wake a machine's data when a pool or a claim comes, changes or goes."""
        self._awaited.setdefault(WorkKey(kind.kind, *key), set()).add(data)

    def _wake_datas(self, datas: Iterable[Object]) -> None:
        for data in datas:
            self._wake(WorkKey(DATA.kind, *key_of(data)))

    def _template_changed(self, delta: Delta) -> None:
        self._wake(WorkKey(TEMPLATE.kind, *delta.key))
        if not _is_same(delta, SAID):
            self._wake_datas(self.datas.by_index("template", "/".join(delta.key)))

    def _data_claim_changed(self, claim: Object) -> None:
        for template in _template_of(claim):
            self._wake(WorkKey(TEMPLATE.kind, key_of(claim)[0], template.partition("/")[2]))
        self._wake_datas(self.datas.by_index("claim", "/".join(key_of(claim))))

    def _data_changed(self, delta: Delta) -> None:
        self._wake(WorkKey(DATA.kind, *delta.key))
        for data in (delta.before, delta.after):
            if data is not None and not _is_same(delta, HEADS):
                self._wake(WorkKey(TEMPLATE.kind, delta.key[0], text(data, "spec", "template", "name")))
                self._wake_datas(self.same_number(data))  # a younger one waits for it to go

    def _metal3_machine_changed(self, machine: Object) -> None:
        self._wake_datas(self.datas.by_index("machine", "/".join(key_of(machine))))

    def _owned_changed(self, index: str, key: Key) -> None:
        for machine in self.metal3_machines.by_index(index, "/".join(key)):
            self._metal3_machine_changed(machine)

    def _cluster_changed(self, cluster: Object) -> None:
        name = "/".join(key_of(cluster))
        for template in self.templates.by_index("cluster", name):
            self._wake(WorkKey(TEMPLATE.kind, *key_of(template)))
            self._wake_datas(self.datas.by_index("template", "/".join(key_of(template))))
        self._wake_datas(self.datas.by_index("cluster", name))

    def _wake_waiting(self, kind: ResourceType, object: Object) -> None:
        # Taken out: a machine that still waits enters itself again with its next pass.
        for key in self._awaited.pop(WorkKey(kind.kind, *key_of(object)), ()):
            self._wake(WorkKey(DATA.kind, *key))

    def _claim_changed(self, kind: ResourceType, claim: Object) -> None:
        self._wake_waiting(kind, claim)
        if name := owner_named(claim, DATA.kind):
            self._wake(WorkKey(DATA.kind, key_of(claim)[0], name))


def _each_side(handler: Callable[[Object], None], delta: Delta) -> None:
    """Handle a change with the object before it and after it: what it was about, and what it is about now."""
    for object in (delta.before, delta.after):
        if object is not None:
            handler(object)


def _is_same(delta: Delta, paths: Iterable[Sequence[str]]) -> bool:
    """Return whether an object stays as it was in some fields."""
    before, after = delta.before, delta.after
    if before is None or after is None:
        return False
    return all(field(before, *path) == field(after, *path) for path in paths)


def _in_namespace(object: Object, *names: str) -> list[str]:
    return [f"{key_of(object)[0]}/{name}" for name in names if name]


def _template_of(object: Object) -> list[str]:
    return _in_namespace(object, text(object, "spec", "template", "name"))


def _number_of(data: Object) -> list[str]:
    return [f"{template}/{field(data, 'spec', 'index')}" for template in _template_of(data)]


def _claim_of(data: Object) -> list[str]:
    return _in_namespace(data, text(data, "spec", "claim", "name"))


def _machine_of(data: Object) -> list[str]:
    return _in_namespace(data, owner_named(data, METAL3_MACHINE.kind))


def _data_of(claim: Object) -> list[str]:
    return _in_namespace(claim, owner_named(claim, DATA.kind))


def _capi_machine_of(machine: Object) -> list[str]:
    return _in_namespace(machine, owner_named(machine, MACHINE.kind))


def _host_of(machine: Object) -> list[str]:
    host = host_key(machine)
    return ["/".join(host)] if host else []


def _owners(object: Object) -> list[str]:
    owners: list[Any] = object["metadata"].get("ownerReferences") or []
    return [str(each.get("uid")) for each in owners]


def cluster_of(object: Object) -> str:
    """Return the name of the cluster that a template or a machine's data belongs to; empty if it names none."""
    return text(object, "spec", "clusterName") or labels_of(object).get(CLUSTER_NAME) or ""


def _cluster_of(object: Object) -> list[str]:
    return _in_namespace(object, cluster_of(object))


def _trim_host(host: Object) -> None:
    """Keep of a host what templates may look at: an inspected host is tens of kilobytes."""
    drop_managed_fields(host)
    host["spec"] = {"bootMACAddress": text(host, "spec", "bootMACAddress")}
    cards = field(host, "status", "hardware", "nics")
    host["status"] = {"hardware": {"nics": cards}} if isinstance(cards, list) else {}
