"""The papers that keep the rest of a file in the ledger: one for each of its objects, and one for the whole."""

from collections.abc import Iterator, Mapping

from tenure.doors.networks.ganeti.keeping import NESTS, digest, rest_of
from tenure.doors.networks.ganeti.values import (
    GROUPS,
    INSTANCES,
    NETWORKS,
    NODES,
    REVISED,
    SECTIONS,
    Cluster,
    Json,
    NetworkFile,
)
from tenure.doors.networks.ganeti.writing import write_group, write_instance, write_network, write_node
from tenure.kernel.configuration import Connection

FILE = "file"
"""The name of the paper of the whole file."""


def paper_name(section: str, uuid: str) -> str:
    """Name the paper of an object."""
    return f"{section}/{uuid}"


def file_document(cluster: Cluster, *, done: bool) -> Json:
    """Return what is kept of a whole file: all that is in no section, and whether all of it was brought in."""
    kept = {key: value for key, value in cluster.document.items() if key not in SECTIONS}
    missing = [section for section in SECTIONS if cluster.document.get(section) is None]
    nulls = [section for section in missing if section in cluster.document]
    whole = {"digest": digest(cluster.document), "form": cluster.form, "done": done}
    return {**whole, "kept": kept, "missing": missing, "nulls": nulls}


def rests(cluster: Cluster) -> dict[str, Json]:
    """Return what is kept of each object of a settled cluster, by the name of its paper."""
    found: dict[str, Json] = {}
    for network in cluster.networks:
        plain = write_network(network, network.form)
        kept = _rest(cluster, NETWORKS, network.uuid, network.name, plain)
        found[paper_name(NETWORKS, network.uuid)] = {**kept, **network_digests(network)}
    for section, uuid, name, plain in _others(cluster):
        kept = _rest(cluster, section, uuid, name, plain)
        found[paper_name(section, uuid)] = {**kept, "digest": digest(plain)}
    for instance in cluster.instances:
        node = {node.name: node.uuid for node in cluster.nodes}[instance.node]
        plain = write_instance(instance, node, cluster.form)
        kept = _rest(cluster, INSTANCES, instance.uuid, instance.name, plain)
        said = digest(write_instance(instance, node, REVISED))
        found[paper_name(INSTANCES, instance.uuid)] = {**kept, "digest": said}
    return found


def network_digests(network: NetworkFile) -> Json:
    """Return what tells whether a network has changed: its plan, and which addresses of it are in use."""
    bare = network.with_subnets(tuple(_unmarked(subnet) for subnet in network.subnets))
    return {"digest": digest(write_network(bare, REVISED)), "held": digest(write_network(network, REVISED))}


def lines_of(networks: "tuple[NetworkFile, ...]", group: str) -> dict[str, Connection]:
    """Return how networks (by uuid) reach a group."""
    return {network.uuid: line for network in networks for line in network.connections if line.group == group}
