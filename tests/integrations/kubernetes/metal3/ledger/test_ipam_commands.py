"""``tenure ipam``, which is ``kubectl tenure``, on a real API server: answers, dry runs, collisions, exit codes."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tenure
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL
from tests.doors.cli.site import Site
from tests.doors.cli.test_reference import ON_POOLS
from tests.infrastructure.kube import NOBODY, KubeServer
from tests.infrastructure.postgres import schema_in_thread
from tests.integrations.kubernetes.metal3.ledger.ledger_stage import SECRET_NAME, say_where
from tests.integrations.kubernetes.metal3.serving import Namespace, operator_in, until

RANGE = "192.0.2.10-192.0.2.19"
BOUND = {"spec": {"tenure": {"ledger": {"network": "machines", "realm": "east", "secretName": SECRET_NAME}}}}
MOVE = ("machines", "--network", "machines", "--realm", "east")


@pytest.fixture
def url() -> Iterator[str]:
    """Give the URL of a ledger with the network of the examples."""
    with schema_in_thread(emptied=True) as url:
        with tenure.open(url) as ledger:
            ledger.add_network("machines")
            ledger.add_subnet("machines", "192.0.2.0/24", gateway="192.0.2.1")
            ledger.add_pool("machines", RANGE)
        yield url


@pytest.fixture
def place(kube: KubeServer, unserved: Namespace, url: str) -> Iterator[Namespace]:
    """Give a served pool that is not bound yet, with two claims that have addresses."""
    say_where(unserved, url)
    with operator_in(kube, unserved.name, webhooks=False):
        unserved.pool("machines", RANGE, gateway="192.0.2.1", preAllocations={"chosen": "192.0.2.15"})
        for name in ("web-0", "web-1"):
            unserved.claim(name, "machines")
        assert [unserved.ip(name) for name in ("web-0", "web-1")] == ["192.0.2.10", "192.0.2.11"]
        yield unserved


@pytest.fixture
def site(kube: KubeServer, place: Namespace, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Give a command line whose surroundings name the cluster; the ledger is named by the Secret, or by ``--store``."""
    monkeypatch.setenv("KUBECONFIG", str(kube.kubeconfig()))
    monkeypatch.delenv("TENURE_STORE", raising=False)
    return Site(tmp_path)


def asked(site: Site, place: Namespace, *words: str, code: int = 0) -> str:
    """Return what a command prints about the namespace."""
    result = site.call("ipam", *words, "--namespace", place.name)
    assert result.exit_code == code, result.output
    return str(result.output)


def bind(place: Namespace) -> None:
    """Bind the pool to the network."""
    place.patch(IP_POOL, "machines", BOUND)
    until(lambda: place.status("machines").get("ledger", {}).get("observedAt"))


def test_why_explains_addresses_that_are_held_kept_back_and_free(site: Site, place: Namespace) -> None:
    held = asked(site, place, "why", "192.0.2.10")

    assert held.startswith(
        f"192.0.2.10: held by IPClaim {place.name}/web-0, as IPAddress machines-192-0-2-10 of IPPool"
    )
    assert "pre-allocated in IPPool" in asked(site, place, "why", "192.0.2.15")
    assert "free in IPPool" in asked(site, place, "why", "192.0.2.12")
    assert asked(site, place, "why", "198.51.100.1") == "198.51.100.1: in no pool here\n"
    place.patch(
        IP_POOL, "machines", {"spec": {"pools": [{"subnet": "192.0.2.0/24"}], "tenure": {"drain": ["192.0.2.99"]}}}
    )
    assert "kept back in IPPool" in asked(site, place, "why", "192.0.2.1")
    assert "last address of its subnet" in asked(site, place, "why", "192.0.2.255")
    assert "drained in IPPool" in asked(site, place, "why", "192.0.2.99")


def test_6_11_drain_plans_who_has_to_move_and_where_to(site: Site, place: Namespace) -> None:
    asked_for = site.json("ipam", "drain", "machines", "192.0.2.10-192.0.2.17", "--namespace", place.name)
    assert (asked_for["is_set"], asked_for["left"], asked_for["free_elsewhere"], asked_for["has_room"]) == (
        False, 2, 2, True,
    )  # fmt: skip
    assert [each["claim"] for each in asked_for["holders"]] == ["web-0", "web-1"]
    assert "drains nothing" in asked(site, place, "drain", "machines")
    place.patch(IP_POOL, "machines", {"spec": {"tenure": {"drain": ["192.0.2.11-192.0.2.19"]}}})

    plan = asked(site, place, "drain", "machines")
    assert "web-1" in plan
    assert plan.endswith(
        "left: 1 address; free elsewhere in the pool: no address: too few for all; enlarge the pool first\n"
    )
    place.delete(IP_CLAIM, "web-1")
    place.gone(IP_CLAIM, "web-1")
    assert "it can be taken out of spec.pools" in asked(site, place, "drain", "machines")


def test_free_counts_and_names_what_comes_next(site: Site, place: Namespace) -> None:
    found = site.json("ipam", "free", "machines", "--namespace", place.name)

    assert (found["total"], found["free"], found["used"], found["kept"]) == (10, 7, 2, 1)
    assert found["next"] == ["192.0.2.12", "192.0.2.13", "192.0.2.14", "192.0.2.16", "192.0.2.17"]
    code, error = site.error("ipam", "free", "nobody", "--namespace", place.name)
    assert (code, error["code"]) == (3, "not_found")


def test_a_pool_moves_into_a_ledger_and_out_again(site: Site, place: Namespace, url: str) -> None:
    """A dry run writes nothing; binding after the import changes no holding; out again the objects hold everything."""
    with tenure.open(url) as ledger:
        dry = asked(site, place, "import", *MOVE, "--dry-run", "--store", url)
        assert dry.splitlines()[-1] == "entered would be: 2 addresses"
        assert ledger.holdings("machines") == []
        assert asked(site, place, "import", *MOVE, "--store", url) == "entered: 2 addresses\n"
        entered = ledger.holdings("machines")
        assert [str(each.owner) for each in entered] == [f"east:ipclaim/{place.name}/web-{n}" for n in (0, 1)]
        assert "there already: 2 addresses" in asked(site, place, "import", *MOVE, "--store", url)
        kept = asked(site, place, "export", *MOVE, "--dry-run", "--store", url, code=1)
        assert "is bound to a ledger still" not in kept
        assert "its claim keeps it, and the ledger would give it to others; `tenure reserve add machines` first" in kept
        bind(place)
        ledger.reserve("machines", "192.0.2.10-192.0.2.11")
        assert "is bound to a ledger still" in asked(site, place, "export", *MOVE, "--store", url, code=4)
        ledger.allocate("machines", owner="instance/script", address="192.0.2.12")
        place.claim("web-2", "machines")
        assert place.ip("web-2") == "192.0.2.13"
        assert ledger.holdings("machines")[:2] == entered
        assert f"held by east:ipclaim/{place.name}/web-2" in asked(site, place, "why", "192.0.2.13")
        assert "held by instance/script" in asked(site, place, "why", "192.0.2.12")
        assert site.json("ipam", "free", "machines", "--namespace", place.name)["held_by_others"] == 1
        assert f"east:ipclaim/{place.name}/web-2" in asked(site, place, "history", "192.0.2.13")
        ledger.reserve("machines", "192.0.2.12-192.0.2.19")
        others = asked(site, place, "export", *MOVE, "--dry-run", "--store", url, code=1)
        assert "in the way: 192.0.2.12 of instance/script: held in the ledger, and the pool would give it" in others
        place.patch(IP_POOL, "machines", {"spec": {"tenure": {"ledger": None, "drain": ["192.0.2.12"]}}})
        until(lambda: not place.status("machines").get("ledger"))
        assert asked(site, place, "export", *MOVE, "--store", url) == "released: 3 addresses\n"
        assert [str(each.owner) for each in ledger.holdings("machines")] == ["instance/script"]
        assert len(place.all(IP_ADDRESS)) == 3


def test_collisions_are_all_reported_and_nothing_is_written(site: Site, place: Namespace, url: str) -> None:
    with tenure.open(url) as ledger:
        ledger.allocate("machines", owner="instance/thief", address="192.0.2.10")
        owner, labels = f"east:ipclaim/{place.name}/web-1", {"claim-uid": "another"}
        ledger.allocate("machines", owner=owner, address="192.0.2.11", labels=labels)
        place.address("machines-far", "203.0.113.9", "nobody", "machines")
        before = ledger.holdings("machines")
        found = site.json("ipam", "import", *MOVE, "--store", url, "--namespace", place.name, code=1)

        assert {each["address"]: each["reason"].partition(":")[0] for each in found["collisions"]} == {
            "192.0.2.10": "instance/thief holds it in the ledger, held",
            "192.0.2.11": "the ledger has it for another claim of this name",
            "203.0.113.9": "its claim is not there; release it, or make the claim again",
        }
        assert (found["ok"], found["written"]) == (False, False)
        assert ledger.holdings("machines") == before


def test_what_cannot_be_asked_says_so(
    site: Site, place: Namespace, kube: KubeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, error = site.error("ipam", "history", "192.0.2.10", "--namespace", place.name)
    assert (code, error["code"]) == (3, "not_found")
    assert "only a ledger keeps a history" in error["message"]
    assert error["hint"] == (
        "`tenure ipam why 192.0.2.10` tells who has it now; set spec.tenure.ledger of its pool, and what comes then is "
        "kept"
    )
    assert (
        site.error("ipam", "import", "machines", "--network", "machines", "--realm", "a b", "--store", "memory:")[0]
        == 2
    )
    monkeypatch.setenv("KUBECONFIG", str(kube.kubeconfig(NOBODY)))
    code, error = site.error("ipam", "why", "192.0.2.10", "--namespace", place.name)
    assert (code, error["code"]) == (7, "forbidden")
    monkeypatch.setenv("KUBECONFIG", "nowhere.conf")
    assert site.error("ipam", "why", "192.0.2.10")[0] == 2


@pytest.mark.parametrize("words", ON_POOLS, ids=" ".join)
def test_an_example_runs(words: list[str], site: Site, place: Namespace, url: str) -> None:
    if words[1] == "history":
        bind(place)
    store = ["--store", url] if words[1] in ("import", "export") else []
    result = site.call(*words, *store, "--namespace", place.name)

    assert result.exit_code == 0, result.output


def test_the_plug_in_is_found_by_its_name(site: Site, place: Namespace, kube: KubeServer) -> None:
    program = Path(sys.executable).parent / "kubectl-tenure"
    ran = subprocess.run(
        [program, "free", "machines", "--namespace", place.name, "--json"],
        env={"KUBECONFIG": str(kube.kubeconfig())}, capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip

    assert (ran.returncode, ran.stderr) == (0, "")
    assert '"free": 7' in ran.stdout
