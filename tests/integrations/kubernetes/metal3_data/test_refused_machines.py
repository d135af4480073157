"""A machine whose objects the server refuses, as a quota or a policy does: it is told so, and holds up no other."""

import contextlib
from collections.abc import Iterator

from tenure.integrations.kubernetes.runtime.resource_types import ResourceType
from tests.integrations.kubernetes.metal3.serving import RefusedByServer, until
from tests.integrations.kubernetes.metal3_data.machine_park import MachinePark, rendering_in

GROUP, VERSION = "admissionregistration.k8s.io", "v1"
POLICY = ResourceType(GROUP, VERSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False)
BINDING = ResourceType(
    GROUP, VERSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False
)


@contextlib.contextmanager
def refused_for(park: MachinePark, machine: str) -> Iterator[None]:
    """Let the server refuse the Metal3Data of a machine."""
    rule = {"apiGroups": [park.datas.group], "apiVersions": ["*"], "resources": [park.datas.plural]}
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "operations": ["CREATE"]}]},
        "validations": [{"expression": f"object.spec.claim.name != '{machine}'", "message": "no more machines"}],
    }
    place = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": park.name}}}
    bound = {"policyName": park.name, "validationActions": ["Deny"], "matchResources": place}
    park.create(POLICY, park.name, spec)
    park.create(BINDING, park.name, bound)
    until(lambda: is_refused(park, machine))
    try:
        yield
    finally:
        for kind in (BINDING, POLICY):
            park.delete(kind, park.name)


def is_refused(park: MachinePark, machine: str) -> bool:
    """Return whether the server refuses the Metal3Data of a machine by now."""
    head = {"apiVersion": park.datas.api_version, "kind": park.datas.kind, "metadata": {"name": "tried"}}
    part = {"template": {"name": "x"}, "claim": {"name": machine, "namespace": park.name}, "index": 0}
    try:
        park.ask("POST", f"{park.datas.path(park.name)}?dryRun=All", {**head, "spec": part})
    except RefusedByServer as error:
        return "no more machines" in str(error)
    return False


def test_a_machine_that_the_server_refuses_holds_up_no_other_of_its_template(bare_park: MachinePark) -> None:
    park = bare_park
    park.cluster()
    park.template("t", metaData={})
    with refused_for(park, "a"), rendering_in(park.server, park.name):
        park.machine("a", template="t")
        assert "no more machines" in park.claim_error("a")
        park.machine("b", template="t")
        park.rendered("b")
        park.remove_machine("b")
        park.gone(park.data_claims, "b")
        assert not park.data_of("a")
    with rendering_in(park.server, park.name):
        park.rendered("a")

        assert "errorMessage" not in (park.get(park.data_claims, "a") or {})["status"]
