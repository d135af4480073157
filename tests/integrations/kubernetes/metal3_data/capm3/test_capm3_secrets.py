"""CAPM3's real manager with our operator as its IPAM renders what ours renders of the same objects (KS11)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tenure.doors.cli.main import main
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM
from tenure.integrations.kubernetes.runtime.resource_types import SECRET, key_of
from tests.integrations.kubernetes.metal3.serving import operator_in, until
from tests.integrations.kubernetes.metal3_data.capm3.capm3_manager import capm3_manager
from tests.integrations.kubernetes.metal3_data.capm3.capm3_park import WITHIN_S, Capm3Park
from tests.integrations.kubernetes.metal3_data.capm3.conftest import Capm3Cluster
from tests.integrations.kubernetes.metal3_data.machine_park import IMAGE, rendering_in
from tests.integrations.kubernetes.metal3_data.odd_template import add_odd_pools, odd_spec
from tests.integrations.kubernetes.metal3_data.whole_template import (
    add_machine,
    add_pools,
    whole_meta_data,
    whole_network_data,
    whole_spec,
)
from tests.integrations.kubernetes.metal3_data.worked_example import META_DATA, NETWORK_DATA, TEMPLATE, document

pytestmark = pytest.mark.proof

BY_HOST = "--enable-bmh-name-based-preallocation"


def worked_example(park: Capm3Park) -> None:
    """Make the machine of the published example, as the only one of its template."""
    park.add_pools()
    park.template_in("v1beta1", "blue-md-0", **document(TEMPLATE)["spec"])
    park.machine("blue-md-0-x7k2p", "rack3-u12", "blue-md-0")


def whole_template(version: str) -> Callable[[Capm3Park], None]:
    """Return what makes two machines of a template that has every field, and checks what they get."""

    def make(park: Capm3Park) -> None:
        add_pools(park)
        park.template_in(version, "whole", **whole_spec(version))
        found = [park.rendered(add_machine(park, number)) for number in range(2)]
        assert [meta_data for meta_data, _ in found] == [whole_meta_data(park.name, number) for number in range(2)]
        assert [network_data for _, network_data in found] == [whole_network_data(number) for number in range(2)]

    return make


def odd_values(park: Capm3Park) -> None:
    """Make two machines of a template whose values are odd, and all allowed."""
    add_odd_pools(park)
    park.template_in("v1beta1", "odd", **odd_spec())
    for number in range(2):
        park.machine(f"m{number}", template="odd")


def shared_pool(park: Capm3Park) -> None:
    """Make machines of a control plane and of two deployments, whose templates share a pool (story 2)."""
    park.pool("p", "10.0.0.1-10.0.0.9", prefix=24, gateway="10.0.0.254")
    entry = {"id": "n", "link": "e", "ipAddressFromIPPool": "p"}
    for name in ("kcp", "md-a", "md-b"):
        park.template_in("v1beta2", name, networkData={"networks": {"ipv4": [entry]}})
        for number in range(2):
            park.machine(f"{name}-m{number}", template=name)


MAKERS = {
    "worked-example": worked_example,
    "whole-v1beta1": whole_template("v1beta1"),
    "whole-v1beta2": whole_template("v1beta2"),
    "odd-values": odd_values,
    "shared-pool": shared_pool,
}


def rendered_by_command(park: Capm3Park, objects: Path, machine: str, *words: str) -> dict[str, Any]:
    """Return what ``tenure render metal3`` makes of the objects on the server for a machine."""
    template = park.data_of(machine)["spec"]["template"]["name"]
    asked = ["render", "metal3", str(objects), "--machine", machine, "--template", template, "--like-capm3", "--json"]
    result = CliRunner().invoke(main, [*asked, *words])
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def check_command(park: Capm3Park, folder: Path, machines: list[str], *words: str) -> None:
    """Check that the command renders every machine as its secrets have it, with the same claims."""
    objects, secrets = park.write_objects(folder / "objects.json"), park.secrets()
    claims: dict[str, str] = {}
    for machine in machines:
        found = rendered_by_command(park, objects, machine, *words)
        claims |= found["claims"]
        for part, end in (("metaData", "metadata"), ("networkData", "networkdata")):
            secret = secrets.get(f"{machine}-{end}")
            assert found.get(part) == (secret and secret["content"])
    held = {each["spec"]["claim"]["name"]: each["spec"]["address"] for each in park.all(IP_ADDRESS)}
    assert claims == held


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_ks11_capm3_renders_by_our_addresses_what_ours_renders_of_the_same_objects(
    capm3_cluster: Capm3Cluster, capm3_park: Capm3Park, make: Callable[[Capm3Park], None], tmp_path: Path
) -> None:
    """The command from the objects as the server has them; and the controller, which takes over, and lets all go."""
    park, server = capm3_park, capm3_park.server
    with capm3_manager(server, capm3_cluster.place), operator_in(server, park.name):
        park.cluster()
        make(park)
        machines = [key_of(each)[1] for each in park.all(park.metal3_machines)]
        for machine in machines:
            park.rendered(machine)
        theirs = park.secrets()
        check_command(park, tmp_path, machines)
        until(lambda: park.told() == theirs.keys(), WITHIN_S)
    for name in theirs:
        park.delete(SECRET, name)
    with rendering_in(server, park.name, render_like_capm3=True):
        until(lambda: park.secrets().keys() == theirs.keys())
        assert park.secrets() == theirs
        for machine in machines:
            park.delete(park.data_claims, machine)
        until(lambda: not park.all(park.datas) and not park.all(IP_CLAIM) and not park.all(IP_ADDRESS))
        until(lambda: not park.secrets())


def test_the_worked_example_is_what_capm3_renders(capm3_cluster: Capm3Cluster, capm3_park: Capm3Park) -> None:
    """The fourth machine of its template, as published: three others have numbers, and hosts that are not there."""
    park = capm3_park
    with capm3_manager(park.server, capm3_cluster.place), operator_in(park.server, park.name):
        park.cluster()
        park.add_pools()
        park.template_in("v1beta1", "blue-md-0", **document(TEMPLATE)["spec"])
        for number in range(3):
            nowhere = {"matchLabels": {"host": "none"}}
            spec = {"image": IMAGE, "dataTemplate": {"name": "blue-md-0"}, "hostSelector": nowhere}
            park.data_claim(park.metal3_machine(f"waits-{number}", spec), "blue-md-0")
            until(lambda number=number: park.data_of(f"waits-{number}"), WITHIN_S)  # type: ignore[misc]
        park.machine("blue-md-0-x7k2p", "rack3-u12", "blue-md-0")
        meta_data, network_data = park.rendered("blue-md-0-x7k2p")

    assert meta_data == META_DATA | {"providerid": f"{park.name}/rack3-u12/blue-md-0-x7k2p"}
    assert network_data == NETWORK_DATA
    assert {key_of(each)[1] for each in park.all(IP_CLAIM)} == {"blue-md-0-3-bm-v4", "blue-md-0-3-bm-v6"}
    assert {key_of(each)[1] for each in park.all(IP_ADDRESS)} == {"dc7-bm4-10-40-8-20", "dc7-bm6-fd20-7-8--100"}


def test_ks7_claims_by_host_are_the_same_with_capm3_and_with_ours(
    capm3_cluster: Capm3Cluster, capm3_park: Capm3Park, tmp_path: Path
) -> None:
    park, server = capm3_park, capm3_park.server
    entry = {"id": "n", "link": "e", "ipAddressFromIPPool": "p"}
    with capm3_manager(server, capm3_cluster.place, BY_HOST), operator_in(server, park.name):
        park.cluster()
        park.pool("p", "10.0.0.1-10.0.0.9", prefix=24, preAllocations={"rack3-u12-p": "10.0.0.7"})
        park.template("t", networkData={"networks": {"ipv4": [entry]}})
        park.machine("m", "rack3-u12", "t")
        network_data = park.rendered("m")[1]
        check_command(park, tmp_path, ["m"], "--claims-by-host")
        theirs = {key_of(each)[1]: each["metadata"]["labels"] for each in park.all(IP_CLAIM)}
    park.delete(SECRET, "m-networkdata")
    with rendering_in(server, park.name, claims_by_host=True):
        until(lambda: park.get(SECRET, "m-networkdata"))
        park.machine("n", "rack4-u1", "t")
        made = park.data_claim(park.get(park.metal3_machines, "n") or {}, "t")
        annotations = {"metal3.io/BareMetalHost": f"{park.name}/rack4-u1"}
        park.patch(park.metal3_machines, key_of(made)[1], {"metadata": {"annotations": annotations}})
        park.rendered("n")
        ours = {key_of(each)[1]: each["metadata"]["labels"] for each in park.all(IP_CLAIM)}

    assert network_data["networks"][0]["ip_address"] == "10.0.0.7"
    assert park.secret("m-networkdata", "networkData") == network_data
    assert set(theirs) == {"rack3-u12-p"}
    assert theirs["rack3-u12-p"].keys() == {
        "cluster.x-k8s.io/cluster-name", "pool-of",
        "infrastructure.cluster.x-k8s.io/data-name", "infrastructure.cluster.x-k8s.io/pool-name",
    }  # fmt: skip
    assert ours["rack3-u12-p"] == theirs["rack3-u12-p"]
    assert (
        ours["rack4-u1-p"].items()
        >= {
            "infrastructure.cluster.x-k8s.io/data-name": "t-1",
            "infrastructure.cluster.x-k8s.io/pool-name": "p",
        }.items()
    )
