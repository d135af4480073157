"""The real ``clusterctl`` moves a cluster, and every claim keeps its address (KD6, E9, E10, KP16)."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tools.build_kube import find_program

import tenure
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    BLOCK_MOVE,
    CLUSTER,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
    annotations_of,
)
from tenure.integrations.kubernetes.runtime.resource_types import ResourceType, uid_of
from tenure.integrations.kubernetes.shipped_manifests import documents_of, provider_metadata, written
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.ledger.clusterctl_stage import clusterctl, make_cluster, managed_cluster, move
from tests.integrations.kubernetes.metal3.ledger.ledger_stage import NETWORK, bound_pool, planned_ledger, say_where
from tests.integrations.kubernetes.metal3.ledger.test_pivot import claim_all, claims, empty, given, rows
from tests.integrations.kubernetes.metal3.serving import Namespace, operator_in, until

pytestmark = [pytest.mark.proof, pytest.mark.one_worker("clusterctl")]

GRACE_S = 2.0


class Servers(NamedTuple):
    """Where a cluster is managed, and where it is to be."""

    source: KubeServer
    target: KubeServer


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """Give two management clusters."""
    with managed_cluster() as source, managed_cluster() as target:
        yield Servers(source, target)


class Places(NamedTuple):
    """A namespace on both."""

    source: Namespace
    target: Namespace


@pytest.fixture
def places(servers: Servers) -> Iterator[Places]:
    """Give a served namespace on both; clusterctl makes it in the target itself."""
    with fresh_namespace(servers.source) as name:
        servers.target.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        with contextlib.ExitStack() as stack:
            for server in servers:
                stack.enter_context(operator_in(server, name, webhooks=False, orphan_grace_s=GRACE_S))
            yield Places(Namespace(servers.source, name), Namespace(servers.target, name))


def until_moved(places: Places, before: dict[str, str]) -> None:
    """Wait until the target has everything, and the source nothing."""
    try:
        until(lambda: given(places.target) == before and empty(places.source), within_s=60)
    except AssertionError:
        left = {kind.plural: places.source.all(kind) for kind in (CLUSTER, IP_POOL, IP_CLAIM, IP_ADDRESS)}
        raise AssertionError(f"given: {given(places.target)} instead of {before}; left behind: {left}") from None
    pool = places.target.get(IP_POOL, "p") or {}
    assert places.source.get(CLUSTER, "blue") is None
    for claim in claims(places.target):
        assert claim["metadata"].get("annotations", {}).get("clusterctl.cluster.x-k8s.io/delete-for-move") is None
    owners = [(each["kind"], each["name"]) for each in pool["metadata"].get("ownerReferences") or ()]
    assert owners.count(("Cluster", "blue")) == (1 if pool["spec"].get("clusterName") else 0)  # not doubled (E10)
    places.target.claim("new")
    assert places.target.ip("new") not in before.values()


@pytest.mark.parametrize("cluster", ["blue", ""], ids=["pool of the cluster", "pool without clusterName"])
@pytest.mark.parametrize("is_bound", [False, True], ids=["objects", "ledger"])
def test_kd6_clusterctl_moves_every_claim_with_its_address(
    places: Places, tmp_path: Path, cluster: str, is_bound: bool
) -> None:
    """Claims that people made, of both kinds; a pool of the cluster, or of none, which clusterctl does not pause."""
    make_cluster(places.source, "blue")
    fields = {"clusterName": cluster} if cluster else {}
    with planned_ledger() as url, tenure.open(url) as ledger:
        if is_bound:
            for place in places:
                say_where(place, url)
            bound_pool(places.source, "east", **fields)
        else:
            places.source.pool("p", "10.9.0.10-10.9.0.19", **fields)
        before = claim_all(places.source)
        held = rows(ledger)
        move(tmp_path, places.source, places.target)
        until(lambda: given(places.target) == before, within_s=60)
        time.sleep(2 * GRACE_S)

        assert rows(ledger) == held
        assert len(held) == (len(before) if is_bound else 0)
        until_moved(places, before)
        if is_bound:
            until(lambda: places.target.get(IP_CLAIM, "c1"))
            assert ledger.holding(NETWORK, before["c1"]).labels["pool-uid"] == uid_of(
                places.target.get(IP_POOL, "p") or {}
            )


def until_deleted(places: Places, kind: ResourceType) -> None:
    """Wait until the first object of a kind is deleted in the source: without a pause, for the last soon follows."""
    count, deadline = len(places.source.all(kind)), time.monotonic() + 60
    while len(places.source.all(kind)) == count:
        assert time.monotonic() < deadline


@pytest.mark.parametrize(
    "killed_at",
    [0.2, 0.6, IP_ADDRESS, IP_CLAIM],
    ids=["soon", "a little later", "at the first address that is deleted", "at the first claim that is deleted"],
)
def test_e9_clusterctl_is_killed_and_run_again(places: Places, tmp_path: Path, killed_at: float | ResourceType) -> None:
    make_cluster(places.source, "blue")
    with planned_ledger() as url, tenure.open(url) as ledger:
        for place in places:
            say_where(place, url)
        bound_pool(places.source, "east", clusterName="blue")
        before = claim_all(places.source)
        held = rows(ledger)
        words = [
            str(find_program("clusterctl", build=False)), "move", "--namespace", places.source.name,
            "--kubeconfig", str(places.source.server.kubeconfig()),
            "--to-kubeconfig", str(places.target.server.kubeconfig()),
        ]  # fmt: skip
        around = {"CLUSTERCTL_DISABLE_VERSIONCHECK": "true", "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
        process = subprocess.Popen(words, env=around, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if isinstance(killed_at, ResourceType):
            until_deleted(places, killed_at)
        else:
            time.sleep(killed_at)
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        if isinstance(killed_at, ResourceType):  # between the deletions, and both clusters have a part
            assert not empty(places.source)
            assert len(claims(places.target)) == len(before)
        time.sleep(2 * GRACE_S)
        is_left = places.source.get(CLUSTER, "blue") is not None
        if is_left or not empty(places.source):
            unpause(places.source)  # as the page says: clusterctl moves no cluster that is paused
            move(tmp_path, places.source, places.target)
        if not is_left:  # what is moved without its cluster sets nothing going
            unpause(places.target)
        until_moved(places, before)

        assert {owner: rows(ledger)[owner] for owner in held} == held


def test_kd6_clusterctl_waits_for_a_claim_until_it_names_its_address_or_has_to_wait_itself(
    places: Places, tmp_path: Path
) -> None:
    """The pool has no cluster and is full: when the cluster beside it is paused, the operator lets the move go on.

    No webhook runs here, so the mark that it gives to new claims is set by hand.
    """
    make_cluster(places.source, "blue")
    places.source.pool("p", "10.9.0.10-10.9.0.10")
    for name in ("first", "waits"):
        places.source.claim(name, annotations={BLOCK_MOVE: ""}, finalizers=["ipclaim.ipam.metal3.io"])
        until(lambda name=name: (places.source.get(IP_CLAIM, name) or {}).get("status"))  # type: ignore[misc]
    until(lambda: BLOCK_MOVE not in annotations_of(places.source.get(IP_CLAIM, "first") or {}))
    assert BLOCK_MOVE in annotations_of(places.source.get(IP_CLAIM, "waits") or {})
    move(tmp_path, places.source, places.target)

    until(lambda: given(places.target) == {"first": "10.9.0.10"} and empty(places.source), within_s=60)
    assert places.target.get(IP_CLAIM, "waits")


def unpause(place: Namespace) -> None:
    """Let a cluster go on that a killed move has paused."""
    if place.get(CLUSTER, "blue") is not None:
        place.patch(CLUSTER, "blue", {"spec": {"paused": None}})


def test_kp16_clusterctl_takes_metadata_and_components_of_the_provider(tmp_path: Path) -> None:
    folder = tmp_path / "ipam-tenure" / "v0.1.0"
    folder.mkdir(parents=True)
    (folder / "metadata.yaml").write_text(written([provider_metadata()], head=""), "utf-8")
    components = documents_of(image="registry.example/tenure:1")  # clusterctl takes no image without its registry
    (folder / "ipam-components.yaml").write_text(written(components), "utf-8")
    url = f"{folder}/ipam-components.yaml"
    (tmp_path / "clusterctl.yaml").write_text(
        f"providers:\n- {{name: tenure, type: IPAMProvider, url: '{url}'}}\n", "utf-8"
    )
    words = ["generate", "provider", "--ipam", "tenure:v0.1.0", "--config", str(tmp_path / "clusterctl.yaml")]
    printed = clusterctl(tmp_path, *words)

    assert printed.returncode == 0, printed.stderr
    assert "name: ippools.ipam.metal3.io" in printed.stdout
