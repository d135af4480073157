"""The programs that are built for proofs and measurements: each runs, and is what it is called."""

import subprocess

import pytest
from tools.build_kube import KUBERNETES, TARGETS, CannotBuild, find_program

from tests.infrastructure.kube import left_out

VERSIONS = {
    "etcd": ("--version",),
    "kube-apiserver": ("--version",),
    "kube-controller-manager": ("--version",),
    "kubectl": ("version", "--client"),
    "clusterctl": ("--help",),
    "metal3-ipam": ("--help",),
    "in-cluster-ipam": ("--help",),
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
