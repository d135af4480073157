"""Rendered machines are moved to another API server by clusterctl's steps, and nothing of them changes (1.11, KD6)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL
from tenure.integrations.kubernetes.metal3_data.data_kinds import HOST
from tenure.integrations.kubernetes.runtime.resource_types import SECRET, key_of, uid_of, version_of
from tests.infrastructure.kube import fresh_namespace, private_kube
from tests.integrations.kubernetes.cluster import await_kind, create, install
from tests.integrations.kubernetes.metal3.ledger.pivot_steps import Move, Order
from tests.integrations.kubernetes.metal3.old_clusters import DEFINITION
from tests.integrations.kubernetes.metal3.serving import until
from tests.integrations.kubernetes.metal3_data.machine_definitions import install_machines, let_render
from tests.integrations.kubernetes.metal3_data.machine_park import MachinePark, rendering_in

pytestmark = [pytest.mark.proof, pytest.mark.one_worker("moved machines")]

MACHINES = ("m0", "m1", "m2")


@contextmanager
def rendering_server() -> Iterator[MachinePark]:
    """Give a namespace of a server of its own, in which machines are rendered."""
    with private_kube() as server:
        install(server)
        create(server, DEFINITION)
        await_kind(server, DEFINITION)
        install_machines(server)
        let_render(server)
        with fresh_namespace(server) as name:
            yield MachinePark(server, name)


@pytest.fixture(scope="module")
def parks() -> Iterator[tuple[MachinePark, MachinePark]]:
    """Give a namespace of one name on two servers, both served."""
    with rendering_server() as source, rendering_server() as other:
        other.server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": source.name}})
        target = MachinePark(other.server, source.name)
        with rendering_in(source.server, source.name), rendering_in(target.server, target.name):
            yield source, target


def rendered_in(park: MachinePark) -> dict[str, tuple[int, object, object]]:
    """Return the numbers of the machines that are ready, with what was rendered for them."""
    ready = {name: data for name in MACHINES if (data := park.data_of(name)).get("status", {}).get("ready")}
    return {name: (data["spec"]["index"], *park.rendered(name)) for name, data in ready.items()}


def claims_of(park: MachinePark) -> dict[str, str]:
    """Return the uids of the claims by their names."""
    return {key_of(each)[1]: uid_of(each) for each in park.all(IP_CLAIM)}


def addresses_of(park: MachinePark) -> dict[str, tuple[str, str]]:
    """Return the addresses by the names of their claims, each with the uid of the claim that owns it."""
    return {
        each["spec"]["claim"]["name"]: (
            each["spec"]["address"],
            next(owner["uid"] for owner in each["metadata"]["ownerReferences"] if owner["kind"] == "IPClaim"),
        )
        for each in park.all(IP_ADDRESS)
    }


def test_kd6_a_rendered_machine_keeps_number_claims_addresses_and_secrets(
    parks: tuple[MachinePark, MachinePark],
) -> None:
    """There and back, once in each order; the cluster is paused meanwhile, and goes on where it arrives."""
    source, target = parks
    source.cluster()
    source.pool("p", "10.0.0.1-10.0.0.9", prefix=24, clusterName="blue")
    networks = {"networks": {"ipv4": [{"id": "n", "link": "e", "ipAddressFromIPPool": "p"}]}}
    source.template("t", metaData={"indexes": [{"key": "number", "offset": 1}]}, networkData=networks)
    for name in MACHINES:
        source.machine(name, template="t")
    until(lambda: len(rendered_in(source)) == len(MACHINES))
    for here, there, order in ((source, target, Order.AFTER), (target, source, Order.BEFORE)):
        before, claims, addresses = rendered_in(here), claims_of(here), addresses_of(here)
        move(here, there, order)
        secrets = {key_of(each)[1]: version_of(each) for each in there.all(SECRET)}
        there.patch(there.clusters, "blue", {"spec": {"paused": False}})

        until(lambda there=there, before=before: rendered_in(there) == before)  # type: ignore[misc]
        until(lambda there=there: all("status" in each for each in there.all(IP_CLAIM)))  # type: ignore[misc]
        time.sleep(1)  # whatever else is written is written by then
        moved = claims_of(there)
        assert moved.keys() == claims.keys()
        assert not {*moved.values()} & {*claims.values()}
        assert addresses_of(there) == {name: (addresses[name][0], uid) for name, uid in moved.items()}
        assert {key_of(each)[1]: version_of(each) for each in there.all(SECRET)} == secrets
        assert here.none_left()
    source.machine("new", template="t")
    source.rendered("new")
    assert source.data_of("new")["spec"]["index"] == len(MACHINES)


def move(here: MachinePark, there: MachinePark, order: Order) -> None:
    """Pause the cluster, and move it with all that it owns."""
    here.patch(here.clusters, "blue", {"spec": {"paused": True}})
    kinds = (
        here.clusters, HOST, IP_POOL, here.templates, here.machines, here.metal3_machines, here.data_claims, here.datas,
        IP_CLAIM, IP_ADDRESS, SECRET,
    )  # fmt: skip
    Move(here, there, order, kinds=kinds).run()
