"""The in-memory mode: manifests that bring their own networks, and may call their groups jobs."""

import pytest

from tenure.integrations.bosh.documents.manifest import read_manifest
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Rejected
from tenure.integrations.bosh.model.document_model import DNS, GATEWAY, Compilation, GroupNetwork, Manifest
from tenure.kernel.addressing.addresses import parse_address
from tests.integrations.bosh.documents.manifests import Told, told

OWN = """\
name: alpha
networks:
- name: lab
  subnets:
  - {range: 172.20.5.0/28, gateway: 172.20.5.1, static: [172.20.5.10]}
compilation: {workers: 2, network: lab}
"""


def read_own(text: str) -> Manifest:
    return read_manifest("alpha.yml", text, None)


def refused(text: str) -> list[Told]:
    with pytest.raises(Rejected) as caught:
        read_own(text)
    return told(caught.value.faults)


@pytest.mark.parametrize("key", ["jobs", "instance_groups"])
def test_a_manifest_may_bring_its_own_networks(key: str) -> None:
    alpha = read_own(OWN + f"{key}:\n- {{name: app, instances: 1, networks: [{{name: lab}}]}}\n")

    assert alpha.own is not None
    assert list(alpha.own.networks) == ["lab"]
    assert alpha.own.compilation == Compilation("lab", 2)
    assert alpha.groups[0].networks == (GroupNetwork("lab", None, frozenset({DNS, GATEWAY})),)


def test_a_manifest_may_bring_its_own_azs() -> None:
    text = """\
name: alpha
azs: [{name: z1}]
networks:
- {name: lab, subnets: [{range: 172.20.5.0/28, gateway: 172.20.5.1, az: z1}]}
jobs:
- {name: app, instances: 1, azs: [z1], networks: [{name: lab}]}
"""

    alpha = read_own(text)

    assert alpha.own is not None
    assert (list(alpha.own.azs), alpha.groups[0].azs) == (["z1"], ("z1",))


def test_groups_have_one_name_at_a_time() -> None:
    message = "Deployment specifies both jobs and instance_groups keys, only one is allowed"

    assert refused(OWN + "jobs: []\ninstance_groups: []\n") == [(BoshErrorKind.GENERIC, message, "jobs")]


def test_a_manifest_without_any_networks_is_refused_once() -> None:
    """The group is not told besides that its network is unknown."""
    found = refused("name: alpha\njobs:\n- {name: app, instances: 1, networks: [{name: lab}]}\n")

    assert found == [(BoshErrorKind.DEPLOYMENT_NO_NETWORKS, "No networks specified", "")]


def test_groups_are_held_against_the_networks_of_their_own() -> None:
    text = OWN + "jobs:\n- {name: app, instances: 1, networks: [{name: lab, static_ips: [172.20.5.9]}, {name: far}]}\n"

    assert [(kind, place) for kind, _, place in refused(text)] == [
        (BoshErrorKind.INSTANCE_GROUP_NETWORK_INSTANCE_IP_MISMATCH, "jobs[0].networks[0].static_ips[0]"),
        (BoshErrorKind.JOB_UNKNOWN_NETWORK, "jobs[0].networks[1].name"),
        (BoshErrorKind.JOB_NETWORK_MISSING_DEFAULT, "jobs[0].networks"),
    ]


def test_a_wrong_network_is_told_once_and_other_faults_with_it() -> None:
    text = """\
name: alpha
networks:
- {name: lab, subnets: [{range: 172.20.5.0/28, gateway: 172.20.6.1}]}
- {name: hub, type: star}
jobs:
- {name: app, instances: 2, networks: [{name: lab, static_ips: [172.20.5.9]}]}
- {name: db, instances: 1, networks: [{name: hub}]}
- {name: web, instances: 1, networks: [{name: far}]}
"""

    assert [(kind, place) for kind, _, place in refused(text)] == [
        (BoshErrorKind.NETWORK_INVALID_GATEWAY, "networks[0].subnets[0].gateway"),
        (BoshErrorKind.DEPLOYMENT_INVALID_NETWORK_TYPE, "networks[1].type"),
        (BoshErrorKind.INSTANCE_GROUP_NETWORK_INSTANCE_IP_MISMATCH, "jobs[0].networks[0].static_ips"),
        (BoshErrorKind.JOB_UNKNOWN_NETWORK, "jobs[2].networks[0].name"),
    ]


def test_where_a_name_cannot_be_read_none_is_unknown() -> None:
    text = OWN.replace("name: lab", "name: 7", 1) + "jobs:\n- {name: app, instances: 1, networks: [{name: lab}]}\n"

    assert "jobs" not in " ".join(place for _, _, place in refused(text))


def test_where_an_az_cannot_be_read_none_is_unknown() -> None:
    text = "azs: [z1]\n" + OWN + "jobs:\n- {name: app, instances: 1, azs: [z1], networks: [{name: lab}]}\n"

    assert (BoshErrorKind.GENERIC, "azs[0]") in [(kind, place) for kind, _, place in refused(text)]
    assert BoshErrorKind.JOB_UNKNOWN_AVAILABILITY_ZONE not in [kind for kind, _, _ in refused(text)]


@pytest.mark.parametrize("name", ["' '", '""', '"a\\tb"'])
def test_an_az_whose_name_is_refused_is_reported_once(name: str) -> None:
    """That a subnet, the compilation and a group use it only follows from that."""
    text = f"""\
name: alpha
azs: [{{name: {name}}}, {{name: z2}}]
networks:
- {{name: lab, subnets: [{{range: 172.20.5.0/28, gateway: 172.20.5.1, azs: [{name}, z2]}}]}}
compilation: {{network: lab, az: {name}}}
jobs:
- {{name: app, instances: 1, azs: [{name}, z2], networks: [{{name: lab}}]}}
"""

    assert [(kind, place) for kind, _, place in refused(text)] == [(BoshErrorKind.GENERIC, "azs[0].name")]


def test_what_its_own_networks_keep_back_is_read_as_in_a_cloud_config() -> None:
    alpha = read_own(OWN + "own_addresses: 172.20.5.2\njobs: []\n")

    assert alpha.own is not None
    subnet = alpha.own.networks["lab"].subnets[0]
    assert any(parse_address("172.20.5.2") in piece for piece in subnet.restricted)
