"""A machine whose objects the server refuses, as a quota or a policy does: its claim says so; no other is held up."""

import contextlib
from collections.abc import Callable, Iterator

import pytest

from tenure.integrations.kubernetes.metal3_data import left_behind
from tenure.integrations.kubernetes.metal3_data.data_kinds import DATA_CLAIM_FINALIZER
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType
from tests.integrations.kubernetes.metal3.serving import RefusedByServer, until
from tests.integrations.kubernetes.metal3_data.machine_park import MachinePark, rendering_in

GROUP, VERSION = "admissionregistration.k8s.io", "v1"
POLICY = ResourceType(GROUP, VERSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False)
BINDING = ResourceType(
    GROUP, VERSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False
)
REASON = "not this one"


@contextlib.contextmanager
def refusing(park: MachinePark, operation: str, expression: str, tried: Callable[[], object]) -> Iterator[None]:
    """Let the server refuse an operation on Metal3Data unless an expression is true, once it refuses what is tried."""
    rule = {"apiGroups": [park.datas.group], "apiVersions": ["*"], "resources": [park.datas.plural]}
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "operations": [operation]}]},
        "validations": [{"expression": expression, "message": REASON}],
    }
    place = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": park.name}}}
    bound = {"policyName": park.name, "validationActions": ["Deny"], "matchResources": place}
    park.create(POLICY, park.name, spec)
    park.create(BINDING, park.name, bound)
    until(lambda: is_refused(tried))
    try:
        yield
    finally:
        for kind in (BINDING, POLICY):
            park.delete(kind, park.name)


def is_refused(tried: Callable[[], object]) -> bool:
    """Return whether the server refuses something by now."""
    try:
        tried()
    except RefusedByServer as error:
        return REASON in str(error)
    return False


def new_data(park: MachinePark, name: str, machine: str, **metadata: object) -> Object:
    """Return the Metal3Data of a machine."""
    head = {"apiVersion": park.datas.api_version, "kind": park.datas.kind, "metadata": {"name": name, **metadata}}
    place = {"namespace": park.name}
    return {**head, "spec": {"template": {"name": "t", **place}, "claim": {"name": machine, **place}, "index": 0}}


def test_a_machine_that_the_server_refuses_holds_up_no_other_of_its_template(bare_park: MachinePark) -> None:
    park = bare_park
    park.cluster()
    park.template("t", metaData={})
    path, body = f"{park.datas.path(park.name)}?dryRun=All", new_data(park, "tried", "a")
    with (
        refusing(park, "CREATE", "object.spec.claim.name != 'a'", lambda: park.ask("POST", path, body)),
        rendering_in(park.server, park.name),
    ):
        park.machine("a", template="t")
        assert REASON in park.claim_error("a")
        park.machine("b", template="t")
        park.rendered("b")
        park.remove_machine("b")
        park.gone(park.data_claims, "b")
        assert not park.data_of("a")
    with rendering_in(park.server, park.name):
        park.rendered("a")

        assert "errorMessage" not in (park.get(park.data_claims, "a") or {})["status"]


def test_what_the_server_refuses_of_a_machine_s_data_is_said_on_it_until_it_may_be(park: MachinePark) -> None:
    """A quota for secrets: it is for the admission of the server, which counts by its status."""
    path, hard = f"/api/v1/namespaces/{park.name}/resourcequotas", {"secrets": "0"}
    quota = {"metadata": {"name": "q"}, "spec": {"hard": hard}}
    park.ask("POST", path, quota)
    park.ask("PUT", f"{path}/q/status", {**quota, "status": {"hard": hard, "used": hard}})
    park.template("t", metaData={})
    park.machine("m", template="t")

    message = park.error("m", "the server refuses what is needed: ")
    assert 'secrets "m-metadata" is forbidden: exceeded quota: q' in message
    park.ask("DELETE", f"{path}/q")
    park.rendered("m")
    assert "errorMessage" not in park.data_of("m")["status"]


def test_an_object_without_its_owner_that_the_server_keeps_holds_up_no_machine_and_goes_when_it_may(
    bare_park: MachinePark, monkeypatch: pytest.MonkeyPatch
) -> None:
    park = bare_park
    park.cluster()
    park.template("t", metaData={})
    monkeypatch.setattr(left_behind, "AGAIN_S", 0.2)
    park.ask("POST", park.datas.path(park.name), new_data(park, "t-0", "former", finalizers=[DATA_CLAIM_FINALIZER]))
    path = f"{park.datas.path(park.name, 't-0')}?dryRun=All"
    with contextlib.ExitStack() as policy:
        kept = refusing(park, "DELETE", "oldObject.metadata.name != 't-0'", lambda: park.ask("DELETE", path))
        policy.enter_context(kept)
        with rendering_in(park.server, park.name, orphan_grace_s=0.1):
            park.machine("a", template="t")
            park.rendered("a")
            assert park.get(park.datas, "t-0")
            policy.close()
            park.gone(park.datas, "t-0")
