"""A real Kubernetes API server for tests: kube-apiserver on etcd, one for a run and private ones to be killed.

The programs are built by ``tools/build_kube.py``. ``NO_KUBE=1`` leaves out what needs them. The run's server is started
by the first process that needs it and found by the others through the run's folder; a test has a namespace of its own.
"""

import contextlib
import json
import os
import secrets
import select
import signal
import ssl
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPSConnection
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tools.build_kube import CannotBuild, find_program

from tests.infrastructure.free_port import free_port
from tests.infrastructure.postgres import RUN_FOLDER, once_a_run

WITHOUT = "NO_KUBE"
START_S = 120
STATE, THREADS = 0, 17
"""Places in ``/proc/PID/stat``, behind the name of the program."""
ADMIN, OPERATOR, NOBODY = "admin-token", "operator-token", "nobody-token"
TOKENS = f"""{ADMIN},admin,uid-admin,"system:masters"
{OPERATOR},system:serviceaccount:tenure-system:tenure-operator,uid-operator,"system:serviceaccounts,system:authenticated"
{NOBODY},nobody,uid-nobody
"""
"""The operator's token stands for its ServiceAccount: what the shipped roles do not allow, it may not do (KP7)."""


def left_out() -> bool:
    """Say whether the tests are to run without Kubernetes."""
    return os.environ.get(WITHOUT) == "1"


def headline() -> str:
    """Say in a line whether there is a Kubernetes in this run."""
    if left_out():
        return f"Kubernetes: LEFT OUT, ITS TESTS ARE SKIPPED ({WITHOUT}=1)"
    try:
        return f"Kubernetes: {find_program('kube-apiserver', build=False).parent.name}"
    except CannotBuild as error:
        return f"Kubernetes: MISSING, ITS TESTS WILL FAIL: {error}"


class _KeptConnection(HTTPSConnection):
    def __del__(self) -> None:
        self.close()  # its thread has ended: a socket that is only forgotten would be warned of


class KubeServer:
    """An etcd and an API server in a folder, on ports that they keep when they are started again."""

    def __init__(self, folder: Path, extra: Sequence[str] = ()) -> None:
        self.folder = folder
        self._extra = tuple(extra)
        self._renewed = 0
        self._ports_file = folder / "ports"
        self._kept = threading.local()

    @property
    def url(self) -> str:
        """Return where the API server is."""
        return f"https://127.0.0.1:{self._ports[0]}"

    @property
    def etcd_url(self) -> str:
        """Return where the etcd under the API server is."""
        return f"http://127.0.0.1:{self._ports[1]}"

    @property
    def _ports(self) -> tuple[int, int, int]:
        api, etcd, peer = map(int, self._ports_file.read_text("utf-8").split())
        return api, etcd, peer

    @property
    def authority(self) -> Path:
        """Return the file with the certificate that the server shows."""
        return self.folder / "certs" / "apiserver.crt"

    def create(self) -> None:
        """Make what the servers need before their first start."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._ports_file.write_text(" ".join(str(free_port()) for _ in range(3)), "utf-8")
        self._write_tokens()
        key = ["openssl", "genrsa", "-out", str(self.folder / "sa.key"), "2048"]
        subprocess.run(key, check=True, capture_output=True)

    def start(self) -> None:
        """Start both servers, which outlive this process, and wait until the API server is ready."""
        self.start_etcd()
        self.start_api_server()

    def start_etcd(self) -> None:
        """Start etcd, without waiting."""
        _, client, peer = self._ports
        urls = [f"http://127.0.0.1:{port}" for port in (client, peer)]
        self._begin(
            "etcd", "--data-dir", str(self.folder / "etcd"), "--log-level", "error", "--unsafe-no-fsync",
            "--listen-client-urls", urls[0], "--advertise-client-urls", urls[0],
            "--listen-peer-urls", urls[1], "--initial-advertise-peer-urls", urls[1],
            "--initial-cluster", f"default={urls[1]}", "--quota-backend-bytes", str(2 << 30),
        )  # fmt: skip

    def start_api_server(self) -> None:
        """Start the API server and wait until it is ready."""
        api, etcd, _ = self._ports
        account = str(self.folder / "sa.key")
        self._begin(
            "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{etcd}", "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1", f"--secure-port={api}", f"--cert-dir={self.folder / 'certs'}",
            "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={account}",
            f"--service-account-signing-key-file={account}", f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount",
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
            "--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none", *self._extra,
        )  # fmt: skip
        deadline = time.monotonic() + START_S
        while not self.is_ready():
            if time.monotonic() > deadline or not _alive(self.pid("kube-apiserver")):
                raise RuntimeError((self.folder / "kube-apiserver.log").read_text("utf-8")[-3000:])
            time.sleep(0.1)

    def pid(self, name: str) -> int:
        """Return the process number of a server."""
        return int((self.folder / f"{name}.pid").read_text("utf-8"))

    def is_ready(self) -> bool:
        """Say whether the API server serves."""
        try:
            return bool(self.ask("GET", "/readyz?exclude=etcd-readiness") == "ok")
        except (OSError, urllib.error.URLError):
            return False

    def ask(
        self, method: str, path: str, body: Any = None, token: str = ADMIN, content_type: str = "application/json"
    ) -> Any:
        """Ask the API server something as the owner of a token, without any of our own code in between."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._shown(token)}", "Content-Type": content_type}
        connection = self._connection()
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            content = answer.read()
        except BaseException:
            connection.close()  # half of an answer may still come on it
            raise
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise urllib.error.HTTPError(
                self.url + path, answer.status, answer.reason, answer.headers, BytesIO(content)
            )
        text = content.decode()
        return json.loads(text) if text.startswith(("{", "[")) else text

    def _connection(self) -> HTTPSConnection:
        """Return this thread's connection: tests ask often, and a handshake costs both ends more than an answer."""
        place = (os.getpid(), self._ports[0])  # a fork must not speak on its parent's connection
        if getattr(self._kept, "place", None) != place:
            self._kept.connection = _KeptConnection("127.0.0.1", self._ports[0], timeout=30, context=self._tls())
            self._kept.place = place
        kept: HTTPSConnection = self._kept.connection
        # A server that ended meanwhile has closed it, which shows as something to be read.
        if kept.sock is not None and select.select([kept.sock], [], [], 0)[0]:
            kept.close()
        return kept

    def renew_operator_token(self) -> None:
        """Give the operator another token, which counts when the API server is started again; the old one expires."""
        self._renewed += 1
        self._write_tokens()

    def _write_tokens(self) -> None:
        (self.folder / "tokens.csv").write_text(TOKENS.replace(OPERATOR, self._shown(OPERATOR), 1), "utf-8")

    def _shown(self, token: str) -> str:
        """Return what is sent for a token."""
        return f"{token}-{self._renewed}" if token == OPERATOR and self._renewed else token

    def kubeconfig(self, token: str = ADMIN) -> Path:
        """Write a kubeconfig for the owner of a token, always the same file."""
        path = self.folder / f"kubeconfig-{token}"
        cluster = {"server": self.url, "certificate-authority": str(self.authority)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "default"}}],
            "users": [{"name": "u", "user": {"token": self._shown(token)}}],
        }
        # Processes read the file at any time: they must not find half of it.
        unfinished = path.with_name(f".{path.name}-{os.getpid()}-{threading.get_ident()}")
        unfinished.write_text(json.dumps(document), "utf-8")
        return unfinished.rename(path)

    def kill(self, name: str) -> None:
        """Kill a server (``kill -9``) and wait until it is gone."""
        _end(self.pid(name), signal.SIGKILL)

    def stop(self) -> None:
        """Stop both servers, if they run."""
        for name in ("kube-apiserver", "etcd"):
            if (self.folder / f"{name}.pid").exists():
                _end(self.pid(name), signal.SIGKILL)

    def _begin(self, name: str, *words: str) -> None:
        program = find_program(name, build=False)
        pid_file, log = self.folder / f"{name}.pid", self.folder / f"{name}.log"
        # It is the child of no process of the run, so that the run's other processes can use it after this one.
        aside = ["sh", "-c", '"$@" >>"$0" 2>&1 & echo $! >"$PID_FILE"', str(log), str(program), *words]
        environment = {**os.environ, "PID_FILE": str(pid_file)}
        quiet = subprocess.DEVNULL
        subprocess.run(
            aside, check=True, env=environment, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
        )

    def _tls(self) -> ssl.SSLContext:
        if self.authority.exists():
            return ssl.create_default_context(cafile=self.authority)
        raise ConnectionError("the server has no certificate yet")


def shared_kube() -> KubeServer:
    """Return the run's server; the first to ask starts it."""
    if left_out():
        raise unittest.SkipTest(f"Kubernetes is left out: {WITHOUT}=1")
    server = KubeServer(Path(os.environ[RUN_FOLDER]) / "kube")
    with once_a_run("kube") as first:
        if first:
            server.create()
            server.start()
    return server


@contextmanager
def private_kube(extra: Sequence[str] = ()) -> Iterator[KubeServer]:
    """Give a private server, to be killed and started again."""
    if left_out():
        raise unittest.SkipTest(f"Kubernetes is left out: {WITHOUT}=1")
    with TemporaryDirectory(prefix="tenure-kube-", ignore_cleanup_errors=True) as folder:
        server = KubeServer(Path(folder), extra)
        server.create()
        try:
            server.start()
            yield server
        finally:
            server.stop()


@contextmanager
def fresh_namespace(server: KubeServer, labels: Mapping[str, str] | None = None) -> Iterator[str]:
    """Give a new namespace."""
    name = f"t-{secrets.token_hex(5)}"
    metadata = {"name": name, "labels": dict(labels or {})}
    server.ask("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    yield name


def _alive(pid: int) -> bool:
    """Return whether a process has threads that have not ended: of one that was killed, the first may end early.

    The last one gives back the memory, and only then the port, which a server that is started again needs.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
    except OSError:
        return False
    return fields[STATE] != "Z" or int(fields[THREADS]) > 1


def _end(pid: int, number: signal.Signals) -> None:
    if _alive(pid):
        os.kill(pid, number)
    deadline = time.monotonic() + START_S
    while _alive(pid):
        if time.monotonic() > deadline:
            raise RuntimeError(f"process {pid} did not end")
        time.sleep(0.02)


def play() -> None:
    """Start a server for a person, say how to use it, and stop it at Ctrl-C."""
    # Also where a shell has started this with interrupts ignored, and for a plain kill.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with private_kube() as server, contextlib.suppress(KeyboardInterrupt):
        print("A Kubernetes API server without nodes runs until Ctrl-C.", file=sys.stderr, flush=True)
        print(f"export KUBECONFIG={server.kubeconfig()}", flush=True)
        signal.pause()


if __name__ == "__main__":
    play()
