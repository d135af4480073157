"""Machines of a namespace as Cluster API and CAPM3's other controllers make them: a user's words for them."""

import base64
import contextlib
from collections.abc import Iterator
from typing import Any

import yaml

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import CLUSTER, IP_ADDRESS, IP_CLAIM, IP_POOL
from tenure.integrations.kubernetes.metal3_data.data_kinds import (
    DATA,
    DATA_CLAIM,
    HOST,
    MACHINE,
    METAL3_MACHINE,
    TEMPLATE,
)
from tenure.integrations.kubernetes.metal3_data.template.machine_reading import HOST_ANNOTATION
from tenure.integrations.kubernetes.runtime.resource_types import SECRET, Object, ResourceType, key_of, uid_of
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.serving import Namespace, operator_in, until
from tests.integrations.kubernetes.metal3_data.worked_example import POOLS

KINDS = (DATA_CLAIM, DATA, METAL3_MACHINE, TEMPLATE, CLUSTER, MACHINE)
CONTROLLERS = ("metal3", "capi", "render")
CLUSTER_LABEL = "cluster.x-k8s.io/cluster-name"
IMAGE = {"url": "http://127.0.0.1/image.raw", "checksum": "0" * 32, "checksumType": "md5"}


def in_version(kind: ResourceType, version: str) -> ResourceType:
    """Return a kind in another version."""
    return ResourceType(kind.group, version, kind.plural, kind.kind)


def owner_of(kind: ResourceType, object: Object) -> Object:
    """Return the reference to an owner."""
    return {"apiVersion": kind.api_version, "kind": kind.kind, "name": key_of(object)[1], "uid": uid_of(object)}


class MachinePark(Namespace):
    """A namespace with machines; Metal3's and Cluster API's kinds are served in one version."""

    def __init__(self, server: KubeServer, name: str, version: str = "v1beta1") -> None:
        super().__init__(server, name)
        self.version = version
        self.data_claims, self.datas, self.metal3_machines, self.templates, self.clusters, self.machines = (
            in_version(each, version) for each in KINDS
        )

    def cluster(self, name: str = "blue", **spec: Any) -> Object:
        """Create a cluster."""
        return self.create(self.clusters, name, {"paused": False, **spec})

    def template(self, name: str, **spec: Any) -> Object:
        """Create a template."""
        annotations = spec.pop("annotations", None)
        metadata = {"annotations": annotations} if annotations else {}
        return self.create(self.templates, name, {"clusterName": "blue", **spec}, **metadata)

    def template_of(self, text: str) -> Object:
        """Create a template as it is written for v1beta1, in the version of this server."""
        written = yaml.safe_load(text)
        spec = written["spec"]
        if self.version == "v1beta2":
            meta_data = spec.get("metaData") or {}
            spec["metaData"] = {key.replace("FromIPPool", "FromPool"): value for key, value in meta_data.items()}
        return self.create(self.templates, written["metadata"]["name"], spec)

    def host(self, name: str, *, cards: dict[str, str] | None = None, boots_by: str = "", **metadata: Any) -> Object:
        """Create a host; it has cards once it was inspected."""
        boots = {"bootMACAddress": boots_by} if boots_by else {}
        made = self.create(HOST, name, {"online": True, **boots}, **metadata)
        return made if cards is None else self.inspect(name, cards)

    def inspect(self, name: str, cards: dict[str, str]) -> Object:
        """Note what was found in a host, as the Bare Metal Operator does, and that it can be had."""
        nics = [{"name": card, "mac": mac} for card, mac in cards.items()]
        status = {
            "errorCount": 0, "errorMessage": "", "operationalStatus": "OK", "poweredOn": False,
            "provisioning": {"ID": "", "state": "available"}, "hardware": {"nics": nics},
        }  # fmt: skip
        return self.patch(HOST, name, {"status": status}, "status")

    def machine(
        self, name: str, host: str | None = "", template: str = "", *, notes: dict[str, str] | None = None
    ) -> Object:
        """Create a machine and, for a template, its Metal3DataClaim; return the Metal3Machine, which has the notes.

        The host is made if it is missing, under its own name or the machine's; without one the machine waits for it.
        """
        host = f"{name}-host" if host == "" else host
        if host is not None and self.get(HOST, host) is None:
            self.host(host)
        annotations = {HOST_ANNOTATION: f"{self.name}/{host}"} if host is not None else {}
        made = self.metal3_machine(name, {"image": IMAGE}, annotations=annotations | (notes or {}))
        if template:
            self.data_claim(made, template)
        return made

    def metal3_machine(self, name: str, spec: Object, **metadata: Any) -> Object:
        """Create a Machine and its Metal3Machine, as Cluster API does; return the latter."""
        reference = {"apiGroup": self.metal3_machines.group, "kind": self.metal3_machines.kind, "name": name}
        own = {"clusterName": "blue", "bootstrap": {"dataSecretName": "boot"}, "infrastructureRef": reference}
        machine = self.create(self.machines, name, own, labels={CLUSTER_LABEL: "blue"})
        owner = owner_of(self.machines, machine)
        return self.create(self.metal3_machines, name, spec, ownerReferences=[owner], **metadata)

    def data_claim(self, machine: Object, template: str, cluster: str = "blue", **metadata: Any) -> Object:
        """Create the Metal3DataClaim of a machine, as CAPM3's controller of machines does."""
        owner = {**owner_of(self.metal3_machines, machine), "controller": True}
        return self.create(
            self.data_claims, key_of(machine)[1], {"template": {"name": template, "namespace": self.name}},
            ownerReferences=[owner], labels={CLUSTER_LABEL: cluster}, **metadata,
        )  # fmt: skip

    def remove_machine(self, name: str) -> None:
        """Delete a machine and its Metal3DataClaim, as CAPM3's controller does; its host stays."""
        for kind in (self.data_claims, self.metal3_machines, self.machines):
            self.delete(kind, name)

    def rendered(self, machine: str, within_s: float = 20.0) -> tuple[Any, Any]:
        """Wait until a machine is ready, and return its metadata and network data; what is not there is nothing."""
        until(lambda: self.data_of(machine).get("status", {}).get("ready"), within_s)
        return self.secret(f"{machine}-metadata", "metaData"), self.secret(f"{machine}-networkdata", "networkData")

    def secret(self, name: str, key: str) -> Any:
        """Return what a secret holds, read as YAML."""
        found = self.get(SECRET, name)
        assert found is None or list(found["data"]) == [key]
        return None if found is None else content_of(found)

    def data_of(self, machine: str) -> Object:
        """Return the Metal3Data of a machine; empty if there is none."""
        found = [each for each in self.all(self.datas) if each["spec"]["claim"]["name"] == machine]
        return found[0] if found else {}

    def error(self, machine: str, begins: str) -> str:
        """Wait until the data of a machine has an error that begins so, and return it."""

        def look() -> str | None:
            text: str = self.data_of(machine).get("status", {}).get("errorMessage") or ""
            return text if text.startswith(begins) else None

        return until(look)

    def claim_error(self, machine: str) -> str:
        """Wait until the Metal3DataClaim of a machine has an error, and return it."""

        def look() -> str:
            text: str = ((self.get(self.data_claims, machine) or {}).get("status") or {}).get("errorMessage") or ""
            return text

        return until(look)

    def left(self) -> list[str]:
        """Return what is there of machines' data, claims, addresses and secrets."""
        kinds = (self.data_claims, self.datas, IP_CLAIM, IP_ADDRESS, SECRET)
        return [f"{kind.kind} {key_of(each)[1]}" for kind in kinds for each in self.all(kind)]

    def none_left(self) -> bool:
        """Return whether nothing is left."""
        return not self.left()

    def add_pools(self) -> None:
        """Create the pools of the worked example."""
        for pool in yaml.safe_load_all(POOLS):
            self.create(IP_POOL, pool["metadata"]["name"], pool["spec"])


def content_of(secret: Object) -> Any:
    """Return what a secret with one key holds, read as YAML."""
    (value,) = secret["data"].values()
    return yaml.safe_load(base64.b64decode(value))


@contextlib.contextmanager
def rendering_in(server: KubeServer, *namespaces: str, **words: Any) -> Iterator[None]:
    """Run an operator that serves claims and renders machines in some namespaces, with the shipped rights (KP7)."""
    with operator_in(server, *namespaces, webhooks=False, controllers=CONTROLLERS, **words):
        yield
