"""The programs that are built for proofs and measurements: each runs, and is what it is called."""

import subprocess

import pytest
from tools.build_kube import ETCD, KUBERNETES, TARGETS, CannotBuild, find_program, replacements

from tests.infrastructure.kube import left_out

VERSIONS = {
    "etcd": ("--version",),
    "kube-apiserver": ("--version",),
    "kube-controller-manager": ("--version",),
    "kubectl": ("version", "--client"),
    "clusterctl": ("--help",),
    "metal3-ipam": ("--help",),
    "in-cluster-ipam": ("--help",),
    "seed-manager": ("pick", "6", "pod-1"),
}


@pytest.mark.proof
@pytest.mark.skipif(left_out(), reason="NO_KUBE=1")
@pytest.mark.parametrize("name", TARGETS)
def test_a_program_that_was_built_runs(name: str) -> None:
    ran = subprocess.run(
        [find_program(name, build=False), *VERSIONS[name]], capture_output=True, encoding="utf-8", check=False
    )
    printed = ran.stdout + ran.stderr

    assert ran.returncode == 0, printed
    if TARGETS[name].version == KUBERNETES:
        assert KUBERNETES in printed


def test_a_folder_of_ones_own_must_have_the_servers(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))

    with pytest.raises(CannotBuild, match="has no kube-apiserver"):
        find_program("kube-apiserver")


def test_what_lies_in_a_modules_tree_is_replaced_by_what_was_published() -> None:
    """A path that the version does not fit is one that the module forbids: no such version was ever published."""
    parts = [("go.etcd.io/etcd/api/v3", "../api"), ("go.etcd.io/etcd", "./FORBIDDEN_DEPENDENCY")]
    module = {"Replace": [{"Old": {"Path": old}, "New": {"Path": new}} for old, new in parts]}
    module["Replace"].append({"Old": {"Path": "a.b/c"}, "New": {"Path": "d.e/f", "Version": "v1.2.3"}})
    staging = {"Replace": [{"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}}]}

    assert replacements(module, TARGETS["etcd"]) == [
        "replace a.b/c => d.e/f v1.2.3",
        f"replace go.etcd.io/etcd/api/v3 => go.etcd.io/etcd/api/v3 {ETCD}",
    ]
    published = KUBERNETES.replace("v1.", "v0.")
    assert replacements(staging, TARGETS["kubectl"]) == [f"replace k8s.io/api => k8s.io/api {published}"]
