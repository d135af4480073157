"""A manager that others wrote and people run today, as a process beside the operator, until the block ends."""

import contextlib
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from tools.build_kube import find_program

from tenure.integrations.kubernetes.runtime.webhooks import serving_certificates
from tests.infrastructure.free_port import free_port
from tests.infrastructure.kube import ADMIN, KubeServer

READY_S = 60.0
ENDS_WITHIN_S = 5.0
UNTHROTTLED = ("--kube-api-qps=10000", "--kube-api-burst=10000")


@dataclass(frozen=True)
class WebhookPlace:
    """Where a manager answers the API server: its port, and the folder of its certificate."""

    folder: Path
    port: int
    authority: bytes

    @property
    def url(self) -> str:
        """Return how the API server reaches it; nothing routes Services here."""
        return f"https://127.0.0.1:{self.port}"


def webhook_place(folder: Path) -> WebhookPlace:
    """Make a certificate in a folder, and choose a port."""
    made = serving_certificates.make_certificate(["127.0.0.1"], timedelta(days=1))
    (folder / "tls.crt").write_bytes(made.certificate)
    (folder / "tls.key").write_bytes(made.key)
    return WebhookPlace(folder, free_port(), made.authority)


@contextlib.contextmanager
def go_manager(
    program: str, server: KubeServer, place: WebhookPlace, *words: str, health_flag: str = "--health-addr"
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a manager as the administrator, under the name that it has in its image; it is ended as a cluster ends it."""
    health, log_file = f"127.0.0.1:{free_port()}", place.folder / "log"
    command = [
        "manager", f"--kubeconfig={server.kubeconfig(ADMIN)}", f"--webhook-cert-dir={place.folder}",
        f"--webhook-port={place.port}", f"{health_flag}={health}", "--diagnostics-address=127.0.0.1:0",
        "--insecure-diagnostics", *words,
    ]  # fmt: skip
    with log_file.open("ab") as log:
        process = subprocess.Popen(command, executable=find_program(program, build=False), stdout=log, stderr=log)
    try:
        _await_ready(process, health, log_file)
        yield process
    finally:
        process.terminate()
        # It waits for its leases and watches to end, which nothing here needs.
        killer = threading.Timer(ENDS_WITHIN_S, process.kill)
        killer.start()
        process.wait()
        killer.cancel()


def _await_ready(process: "subprocess.Popen[bytes]", health: str, log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while not _is_ready(health):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(log.read_text("utf-8")[-3000:])
        time.sleep(0.1)


def _is_ready(health: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{health}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False
