"""Kubernetes' own controller manager beside a test server: its garbage collector, and the controller of namespaces."""

import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tools.build_kube import find_program

from tests.infrastructure.kube import ADMIN, KubeServer

CONTROLLERS = ("garbage-collector-controller", "namespace-controller")
ENDS_WITHIN_S = 10.0


@contextmanager
def controller_manager(
    server: KubeServer, controllers: Sequence[str] = CONTROLLERS
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run it as the administrator for as long as the block; it knows the kinds that are there when it starts."""
    words = [f"--kubeconfig={server.kubeconfig(ADMIN)}", f"--controllers={','.join(controllers)}"]
    words += ["--leader-elect=false", "--secure-port=0", "--use-service-account-credentials=false"]
    program = find_program("kube-controller-manager", build=False)
    with (server.folder / "kube-controller-manager.log").open("wb") as log:
        process = subprocess.Popen([str(program), *words], stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        killer = threading.Timer(ENDS_WITHIN_S, process.kill)
        killer.start()
        process.wait()
        killer.cancel()
