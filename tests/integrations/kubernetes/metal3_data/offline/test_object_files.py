"""Files are read as an API server would take them: what it would refuse is refused, with file, object and field."""

from pathlib import Path
from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3_data.offline.object_files import read_objects
from tenure.kernel.errors import Invalid
from tests.integrations.kubernetes.metal3_data.offline.files import an_address, an_object, filed


@pytest.mark.parametrize(
    ("object", "message"),
    [
        (
            {"kind": "Metal3Data", "metadata": {"name": "x"}, "spec": [1]},
            "Metal3Data 'x': spec: must be a map, not [1]",
        ),
        ({"kind": "Metal3Machine", "metadata": 7}, "Metal3Machine '': metadata: must be a map, not 7"),
        ({"kind": "Machine", "metadata": {}}, "Machine '': metadata.name: must be text, not None"),
        (an_object("Machine", "x", namespace=5), "Machine 'x': metadata.namespace: must be text, not 5"),
        (
            an_object("Metal3Machine", "x", ownerReferences=["m"]),
            "Metal3Machine 'x': metadata.ownerReferences: must be a list of maps, not ['m']",
        ),
        (
            {**an_object("BareMetalHost", "x"), "status": {"hardware": {"nics": ["eno1"]}}},
            "BareMetalHost 'x': status.hardware.nics: must be a list of maps, not ['eno1']",
        ),
        (an_object("IPAddress", "x", {"pool": "p"}), "IPAddress 'x': spec.pool: must be a map, not 'p'"),
    ],
)
def test_an_object_that_no_server_would_have_is_refused_with_its_field(
    tmp_path: Path, object: dict[str, Any], message: str
) -> None:
    with pytest.raises(Invalid) as raised:
        filed(tmp_path, object)

    assert raised.value.message == f"objects.json: {message}"


def test_members_of_lists_are_read_as_kubectl_and_servers_write_them(tmp_path: Path) -> None:
    path = tmp_path / "pools.yaml"
    path.write_text("apiVersion: ipam.metal3.io/v1alpha1\nkind: IPPoolList\nitems: [{metadata: {name: p}}]\n", "utf-8")

    assert read_objects([path]).named("IPPool", "p") is not None
    with pytest.raises(Invalid, match=r"objects\.json: 'p' is no object of Kubernetes"):
        filed(tmp_path, "p")  # type: ignore[arg-type]


def test_kinds_of_the_same_name_in_other_groups_are_not_read(tmp_path: Path) -> None:
    theirs = {**an_object("Machine", "m"), "apiVersion": "machine.openshift.io/v1beta1", "spec": []}
    core = {**an_object("IPAddress", "a"), "apiVersion": "networking.k8s.io/v1"}

    assert filed(tmp_path, theirs, core).objects == ()


def test_objects_of_another_namespace_are_not_the_machine_s(tmp_path: Path) -> None:
    objects = [an_object("IPPool", "p", namespace=name) for name in ("a", "b")] + [an_object("IPPool", "q")]
    files = filed(tmp_path, *objects)

    assert [each["metadata"] for each in files.within("b").objects] == [
        {"name": "p", "namespace": "b"},
        {"name": "q"},
    ]


def test_an_object_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    """Which of the two is meant nobody can know."""
    files = filed(tmp_path, an_object("IPPool", "p", namespace="a"), an_object("IPPool", "p"))

    assert len(files.within("b").objects) == 1
    with pytest.raises(Invalid, match="files: IPPool 'p' is there 2 times; leave one"):
        files.within("a")


def test_ks9_addresses_and_pools_of_the_design_are_read_as_printed(tmp_path: Path) -> None:
    spec = {"Address": "192.168.0.11", "claim": {"Name": "RenderedData-1"}, "pool": {"Name": "pool-1"}, "prefix": 24}
    pool = an_object("IPPool", "pool-1", {"allocations": {"a": "192.168.0.11"}})
    files = filed(tmp_path, an_object("IPAddress", "a", spec), pool)

    assert files.objects[0]["spec"] == {
        "address": "192.168.0.11", "claim": {"name": "RenderedData-1"}, "pool": {"name": "pool-1"}, "prefix": 24,
    }  # fmt: skip
    assert files.objects[1]["spec"] == {"preAllocations": {"a": "192.168.0.11"}}
    assert files.notes == (
        "IPAddress a: spec.Address is read as spec.address",
        "IPAddress a: spec.claim.Name is read as spec.claim.name",
        "IPAddress a: spec.pool.Name is read as spec.pool.name",
        "IPPool pool-1: spec.allocations is read as spec.preAllocations",
    )
    with pytest.raises(Invalid, match=r"IPAddress 'a': spec\.Address: differs from spec\.address"):
        filed(tmp_path, an_address("a", "10.0.0.1", "c", Address="10.0.0.2"))
