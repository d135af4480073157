"""The papers that keep the rest of a file in the ledger: one for each of its objects, and one for the whole."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from tenure.integrations.ganeti.files.file_model import (
    GROUPS,
    INSTANCES,
    NETWORKS,
    NODES,
    REVISED,
    SECTIONS,
    ClusterConfiguration,
    Form,
    Json,
    NetworkFile,
)
from tenure.integrations.ganeti.files.unknown_fields import NESTS, digest, rest_of
from tenure.integrations.ganeti.files.write_documents import write_group, write_instance, write_network, write_node
from tenure.kernel.plan.plan_model import Connection

FILE = "file"
"""The name of the paper of the whole file."""

HALF: Json = {"half": True}
"""The document of the paper of a network while it is being made."""


class Plain(NamedTuple):
    """An object as the ledger's words alone are written, and what stands for its state, whatever the form.

    ``held`` stands for the state of a network with the addresses in use; of others it is the same as ``digest``.
    ``serial`` counts the changes, of an instance.
    """

    section: str
    uuid: str
    name: str
    document: Json
    digest: str
    held: str
    serial: int = 0

    @property
    def paper(self) -> str:
        """Name the paper that keeps the object's rest."""
        return f"{self.section}/{self.uuid}"


def plain_objects(cluster: ClusterConfiguration, form: Form | None = None) -> Iterator[Plain]:
    """Write the objects of a settled cluster, in one form; or each in the form that it was read in."""
    for group in cluster.groups:
        yield _same_in_both(GROUPS, write_group(group, _lines(cluster, group.name)))
    groups = {group.name: group.uuid for group in cluster.groups}
    for node in cluster.nodes:
        yield _same_in_both(NODES, write_node(node, groups.get(node.group, node.group)))
    for network in cluster.networks:
        yield _plain_network(network, form or network.form)
    nodes = {node.name: node.uuid for node in cluster.nodes}
    for instance in cluster.instances:
        node_uuid = nodes.get(instance.node, instance.node)
        said = digest(write_instance(instance, node_uuid, REVISED))
        document = write_instance(instance, node_uuid, form or cluster.form)
        yield Plain(INSTANCES, instance.uuid, instance.name, document, said, said, instance.serial)


def _same_in_both(section: str, document: Json) -> Plain:
    said = digest(document)
    return Plain(section, document["uuid"], document["name"], document, said, said)


def _lines(cluster: ClusterConfiguration, group: str) -> dict[str, Connection]:
    return {network.uuid: line for network in cluster.networks for line in network.connections if line.group == group}


def _plain_network(network: NetworkFile, form: Form) -> Plain:
    # Addresses in use are no change of their network: its serial number must not rise with each instance.
    subnets = (replace(s, pools=tuple(replace(pool, reservations=()) for pool in s.pools)) for s in network.subnets)
    bare = digest(write_network(network.with_subnets(tuple(subnets)), REVISED))
    held = digest(write_network(network, REVISED))
    return Plain(NETWORKS, network.uuid, network.name, write_network(network, form), bare, held)


def kept_of(cluster: ClusterConfiguration, plain: Plain) -> Json:
    """Return the document of an object's paper: its rest, how it is keyed, and what stands for its state."""
    original = cluster.original(plain.section, plain.uuid)
    by_name = cluster.keys[plain.section, plain.uuid] != plain.uuid
    rest = rest_of(original, plain.document, NESTS[plain.section])
    return {"rest": rest, "by_name": by_name, "digest": plain.digest, "held": plain.held}


def kept_of_file(cluster: ClusterConfiguration, *, done: bool) -> Json:
    """Return the document of the whole file's paper: what is in no section, and whether all of it was brought in."""
    kept = {key: value for key, value in cluster.document.items() if key not in SECTIONS}
    absent = [section for section in SECTIONS if section not in cluster.document]
    empty = [section for section in SECTIONS if section not in absent and cluster.document[section] is None]
    whole = {"digest": digest(cluster.document), "done": done}
    return {**whole, "kept": kept, "absent": absent, "null": empty}
