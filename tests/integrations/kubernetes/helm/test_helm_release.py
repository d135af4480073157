"""The chart with the real ``helm`` on real API servers: what it prints, installs, takes over, keeps and refuses (KP15).

There are no nodes, so that pods never run: the operator runs beside, with the account that the chart has made.
"""

import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.make_helm_chart import CHART

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL
from tenure.integrations.kubernetes.runtime.resource_types import Object, uid_of
from tenure.integrations.kubernetes.shipped_manifests import USUAL, documents_of
from tests.infrastructure.kube import OPERATOR, KubeServer, private_kube
from tests.integrations.kubernetes.cluster import PLACES, await_kind, create, plain_definition
from tests.integrations.kubernetes.helm.helm_cases import CASES, EXCLUDED_BY_OTHERS, UNFIT, WRONG, Case, Installed
from tests.integrations.kubernetes.helm.helm_program import NAMESPACE, Helm, HelmRefused
from tests.integrations.kubernetes.metal3.metal3_manager import own_definitions
from tests.integrations.kubernetes.metal3.serving import Namespace, until
from tests.integrations.kubernetes.test_manifests import judged
from tests.integrations.kubernetes.test_operator import operator

pytestmark = pytest.mark.proof

CERT_MANAGER = {"Certificate": "certificates", "Issuer": "issuers"}
WHERE = PLACES | {
    kind: f"/apis/cert-manager.io/v1/namespaces/{{namespace}}/{plural}" for kind, plural in CERT_MANAGER.items()
}
DEFINITIONS = [each["metadata"]["name"] for each in documents_of(["crds"])]
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
NO_WEBHOOKS = {"webhooks.enabled": False}  # nothing routes Services here: the server would ask nobody


@pytest.fixture
def helm(kube: KubeServer, tmp_path: Path) -> Helm:
    """Give Helm on the run's server, which has the kinds; nothing is installed by it there."""
    return Helm(kube, tmp_path)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Helm]:
    """Give Helm on a server of its own."""
    with private_kube() as server:
        yield Helm(server, tmp_path)


def by_place(documents: list[Object]) -> dict[tuple[str, str, str], Object]:
    """Return documents by kind, namespace and name."""
    return {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in documents}


def without_keeping(documents: list[Object]) -> list[Object]:
    """Return documents without the one word by which Helm keeps definitions."""
    for each in documents:
        if each["kind"] == "CustomResourceDefinition":
            assert each["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    return documents


@pytest.mark.parametrize(
    ("values", "parts", "words"),
    [
        ({}, USUAL, {}),
        ({}, USUAL, {"own_namespace": "1e3"}),
        ({"namespaces": ["a", "1e3"]}, USUAL, {"namespaces": ["a", "1e3"]}),
        ({"webhooks.certManager": True}, USUAL, {"cert_manager": True}),
        ({"image.repository": "r.example/t", "image.tag": "1"}, USUAL, {"image": "r.example/t:1"}),
        ({"flowSchema.enabled": True}, (*USUAL, "flow-schema"), {}),
    ],
)
def test_a_release_has_what_the_command_prints(
    helm: Helm, values: dict[str, Any], parts: tuple[str, ...], words: dict[str, Any]
) -> None:
    """Object by object; the namespace is Helm's own affair."""
    printed = helm.template(values, namespace=words.get("own_namespace", NAMESPACE)).documents
    shipped = documents_of([each for each in parts if each != "namespace"], **words)

    assert by_place(without_keeping(printed)) == by_place(shipped)
    assert len(printed) == len(shipped)


@pytest.mark.parametrize(
    ("controller", "parts", "words"),
    [
        ("render", ["render"], {}),
        ("render", ["render"], {"namespaces": ["a", "b"]}),
        ("in-cluster", ["in-cluster", "in-cluster-crds"], {}),
        ("in-cluster", ["in-cluster", "in-cluster-crds"], {"cert_manager": True}),
    ],
)
def test_a_release_with_one_more_controller_has_what_the_command_prints_for_it(
    helm: Helm, controller: str, parts: list[str], words: dict[str, Any]
) -> None:
    values = {"namespaces": words.get("namespaces", []), "webhooks.certManager": words.get("cert_manager", False)}
    printed = helm.template({**values, "controllers": ["metal3", "capi", controller]}).documents
    shipped = documents_of([*USUAL[1:], *parts], **words)
    container = next(each for each in shipped if each["kind"] == "Deployment")["spec"]["template"]["spec"]["containers"]
    container[0]["args"][7:7] = ["--controllers", f"metal3,capi,{controller}"]

    assert by_place(without_keeping(printed)) == by_place(shipped)


@pytest.mark.parametrize("path", CASES)
def test_each_value_does_what_it_says_and_a_server_takes_it(helm: Helm, path: str) -> None:
    """Strictly: a field that the server does not know would be refused."""
    case = CASES[path]
    usual = helm.template(case.needs)
    changed = helm.template({**case.needs, path: case.value})

    assert case.holds(changed)
    assert not case.holds(usual)
    for document in changed.documents:
        if document["kind"] not in CERT_MANAGER:
            judged(helm.server, document)


@pytest.mark.parametrize("path", WRONG)
def test_a_wrong_value_is_refused_by_its_name(helm: Helm, path: str) -> None:
    with pytest.raises(HelmRefused) as refused:
        helm.template({path: WRONG[path]})

    assert "values don't meet the specifications of the schema" in str(refused.value)
    assert path.rpartition(".")[2] in str(refused.value)
    assert path.partition(".")[0] in str(refused.value)


@pytest.mark.parametrize("name", UNFIT)
def test_values_that_do_not_go_together_are_refused_with_the_reason(helm: Helm, name: str) -> None:
    values, reason = UNFIT[name]

    with pytest.raises(HelmRefused, match=reason):
        helm.template(values)


def test_helm_finds_nothing_to_complain_about(helm: Helm) -> None:
    assert "0 chart(s) failed" in helm.run("lint", "--strict", str(CHART))


def test_every_value_at_once_is_installed_changed_back_and_removed(alone: Helm) -> None:
    """``helm upgrade --install`` on a real server, which has cert-manager's kinds; read back from the server."""
    assert alone.template({}, "--validate").has("Deployment")
    for kind, plural in CERT_MANAGER.items():
        definition = plain_definition("cert-manager.io", "v1", plural, kind)
        create(alone.server, definition)
        await_kind(alone.server, definition)
    together = {path: case for path, case in CASES.items() if path not in EXCLUDED_BY_OTHERS}
    alone.upgrade({path: case.value for path, case in together.items()})
    seen = live(alone)
    assert failing(together, seen) == []

    alone.upgrade({})
    usual = live(alone)
    assert by_place(without_keeping(alone.manifest())).keys() == by_place(documents_of(USUAL[1:])).keys()
    assert [path for path, case in together.items() if case.holds(usual)] == []
    assert not is_there(alone.server, f"{PLACES['FlowSchema']}/tenure-operator")

    alone.upgrade(NO_WEBHOOKS)
    assert CASES["webhooks.enabled"].holds(live(alone))
    assert not any(is_there(alone.server, f"{PLACES[kind]}/tenure-operator") for kind in WEBHOOKS)
    assert "[CustomResourceDefinition] ippools.ipam.metal3.io" in alone.uninstall()
    assert all(is_there(alone.server, f"{PLACES['CustomResourceDefinition']}/{name}") for name in DEFINITIONS)


def test_kp15_a_release_takes_over_from_the_manifests_and_leaves_kinds_and_addresses_behind(alone: Helm) -> None:
    """The operator runs all the while, with the rights that there are."""
    server, space = alone.server, Namespace(alone.server, "default")
    install_manifests(server)
    space.pool("p", "10.0.0.1-10.0.0.9")
    space.claim("before")
    for document in documents_of(["webhooks"]):
        create(server, document)
    with operator(server.kubeconfig(OPERATOR), "--webhook-port", "0") as replica:
        address = space.served("before", 60)
        until(lambda: all(authorities(server)))
        kept = uids(server), authorities(server)

        with pytest.raises(HelmRefused, match="invalid ownership metadata"):
            alone.upgrade({})
        assert uids(server) == kept[0]
        alone.upgrade({}, "--take-ownership")
        assert (uids(server), authorities(server)) == kept
        alone.upgrade(NO_WEBHOOKS)  # claims can be created again: the server asks nobody
        space.claim("after")
        assert space.served("after", 60)["spec"]["address"] == "10.0.0.2"
        assert uid_of(space.served("before")) == uid_of(address)
        assert replica.stop()[0] == 0
    alone.uninstall()

    assert [space.get(kind, name) is None for kind, name in ((IP_POOL, "p"), (IP_CLAIM, "before"))] == [False, False]
    assert {each["spec"]["address"] for each in space.all(IP_ADDRESS)} == {"10.0.0.1", "10.0.0.2"}
    assert not is_there(server, f"{PLACES['ClusterRole']}/tenure-operator")
    alone.upgrade(NO_WEBHOOKS)  # over the definitions that it left
    with operator(server.kubeconfig(OPERATOR), "--no-webhooks", "--controllers", "metal3"):
        space.claim("later")
        assert space.served("later", 60)["spec"]["address"] == "10.0.0.3"
        space.delete(IP_CLAIM, "before")
        until(lambda: space.get(IP_CLAIM, "before") is None, 60)


@pytest.mark.parametrize("over", [True, False])
def test_kp15_a_release_goes_over_metal3s_definitions_or_beside_them(alone: Helm, over: bool) -> None:
    for definition in own_definitions():
        create(alone.server, definition)
    before = schemas(alone.server)
    if over:
        with pytest.raises(HelmRefused, match="invalid ownership metadata"):
            alone.upgrade({})
        alone.upgrade({}, "--take-ownership")
    else:
        alone.upgrade({"crds.install": False, **NO_WEBHOOKS})

    after = schemas(alone.server)
    alone.uninstall()
    assert "tenure" not in before["ippools.ipam.metal3.io"]["spec"]["properties"]
    assert ("tenure" in after["ippools.ipam.metal3.io"]["spec"]["properties"]) is over
    assert (after == before) is not over
    assert schemas(alone.server) == after


def install_manifests(server: KubeServer) -> None:
    """Install what the command prints, but for the webhooks."""
    documents = documents_of([part for part in USUAL if part != "webhooks"])
    for document in documents:
        create(server, document)
    for document in documents:
        if document["kind"] == "CustomResourceDefinition":
            await_kind(server, document)


def failing(cases: dict[str, Case], seen: Installed) -> list[str]:
    """Return the values that did not do what they say."""
    return [path for path, case in cases.items() if not case.holds(seen)]


def live(helm: Helm) -> Installed:
    """Read the objects of a release from the server."""
    return Installed(helm.server.ask("GET", place_of(each)) for each in helm.manifest())


def place_of(document: Object) -> str:
    metadata = document["metadata"]
    return f"{WHERE[document['kind']].format(namespace=metadata.get('namespace', ''))}/{metadata['name']}"


def is_there(server: KubeServer, path: str) -> bool:
    try:
        return bool(server.ask("GET", path))
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return False


def uids(server: KubeServer) -> dict[str, str]:
    """Return the identity of everything that the manifests have: a new one would be another object."""
    places = [place_of(each) for each in documents_of(USUAL[1:])]
    return {place: uid_of(server.ask("GET", place)) for place in places}


def authorities(server: KubeServer) -> list[str]:
    """Return what the operator has written into the webhooks."""
    found = [server.ask("GET", f"{PLACES[kind]}/tenure-operator")["webhooks"] for kind in WEBHOOKS]
    return [webhook["clientConfig"].get("caBundle", "") for webhooks in found for webhook in webhooks]


def schemas(server: KubeServer) -> dict[str, Object]:
    """Return the fields of the kinds, as the server has them."""
    found = {name: server.ask("GET", f"{PLACES['CustomResourceDefinition']}/{name}") for name in DEFINITIONS}
    return {
        name: each["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] for name, each in found.items()
    }
