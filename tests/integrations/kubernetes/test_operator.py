"""``tenure operator`` in a real cluster: it starts, answers probes, leads, and stops; with two replicas one leads."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest

from tenure.doors.cli.commands.operator import run_operator
from tenure.integrations.kubernetes import operator as shell
from tenure.integrations.kubernetes.operator_context import (
    CannotListen,
    Controller,
    ListenOptions,
    OperatorContext,
)
from tenure.integrations.kubernetes.operator_samples import queue_samples, webhook_samples
from tenure.integrations.kubernetes.operator_settings import OperatorSettings
from tenure.integrations.kubernetes.runtime.informer import Informer
from tenure.integrations.kubernetes.runtime.informer_group import InformerGroup
from tenure.integrations.kubernetes.runtime.process_probes import Sample, exposition
from tenure.integrations.kubernetes.runtime.resource_types import LEASE, Key, key_of
from tenure.integrations.kubernetes.runtime.webhooks.webhook_host import WebhookHost
from tenure.integrations.kubernetes.runtime.work_queue import WorkQueue
from tests.infrastructure.forked_tenure import ForkedTenure, run_forked
from tests.infrastructure.kube import NOBODY, OPERATOR, KubeServer, fresh_namespace
from tests.integrations.kubernetes.runtime.toy_controller import CONFIG_MAP

ONE_LEASE = pytest.mark.one_worker("the operator's lease")
"""The command has no option for the name of its Lease, so these tests run one after the other."""
LEASE_PATH = LEASE.path("tenure-system", "tenure-operator")


class Replica:
    """A running operator, as it says of itself where it is."""

    def __init__(self, process: ForkedTenure[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.said: dict[str, Any] = json.loads(process.stdout.readline())

    def get(self, path: str) -> tuple[int, str]:
        """Ask it something."""
        try:
            with urllib.request.urlopen(self.said["url"] + path, timeout=10) as answer:  # noqa: S310 - our own server
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def leads(self) -> bool:
        return "tenure_operator_leader 1\n" in self.get("/metrics")[1]

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Stop it, and return its exit code and its log."""
        self.process.send_signal(number)
        _, log = self.process.communicate(timeout=20)
        return self.process.returncode, log


def command(*words: str) -> list[str]:
    return ["operator", *words, "--json"]


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own server
        text: str = answer.read().decode()
    return text


@contextmanager
def operator(kubeconfig: Path, *words: str) -> Iterator[Replica]:
    place = ["--kubeconfig", str(kubeconfig), "--own-namespace", "tenure-system", "--port", "0", "--log", "json"]
    words = words or ("--controllers", "")
    process = ForkedTenure[str](
        command(*place, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    )
    try:
        yield Replica(process)
    finally:
        process.kill()
        process.communicate(timeout=10)


def until(holds: Any, within_s: float = 40) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@ONE_LEASE
def test_an_operator_answers_probes_leads_and_stops_in_peace(kube: KubeServer) -> None:
    with operator(kube.kubeconfig(OPERATOR)) as replica:
        assert replica.said["controllers"] == []
        assert replica.get("/livez") == (200, "ok\n")
        assert replica.get("/readyz") == (200, "ok\n")
        until(replica.leads)
        assert kube.ask("GET", LEASE_PATH)["spec"]["holderIdentity"] == replica.said["identity"]
        status, metrics = replica.get("/metrics")
        code, log = replica.stop()

    assert status == 200
    assert "# TYPE tenure_operator_requests_total counter\n" in metrics
    assert code == 0
    lines = [json.loads(line) for line in log.splitlines()]
    assert any("no controllers" in line["message"] for line in lines)
    assert {line["level"] for line in lines} <= {"info", "warning"}
    assert kube.ask("GET", LEASE_PATH)["spec"]["holderIdentity"] in ("", None)


@ONE_LEASE
def test_of_two_replicas_the_other_leads_when_the_first_stops(kube: KubeServer) -> None:
    with operator(kube.kubeconfig(OPERATOR)) as first:
        until(first.leads)
        with operator(kube.kubeconfig(OPERATOR)) as second:
            time.sleep(1)
            assert not second.leads()
            assert second.get("/readyz")[0] == 200
            assert first.stop(signal.SIGINT)[0] == 0
            until(second.leads, 10)


@ONE_LEASE
def test_an_operator_without_rights_lives_and_does_not_lead(kube: KubeServer) -> None:
    with operator(kube.kubeconfig(NOBODY)) as replica:
        time.sleep(1)
        assert replica.get("/livez")[0] == 200
        assert not replica.leads()
        code, log = replica.stop()

    assert code == 0
    assert "forbidden" in log


def test_a_check_prints_the_settings_and_the_server_and_starts_nothing(kube: KubeServer) -> None:
    words = ["--kubeconfig", str(kube.kubeconfig(OPERATOR)), "--namespaces", "a,b", "--check"]
    ran = run_forked(command(*words), timeout=60)
    printed = json.loads(ran.stdout)

    assert (printed["server"], printed["namespaces"], printed["port"]) == (kube.url, ["a", "b"], 8081)


class Broken:
    """A controller whose work fails."""

    name = "broken"

    async def listen(self) -> int:
        return 0

    async def close(self) -> None:
        pass

    def not_ready(self) -> dict[str, str]:
        return {"broken": "it never is"}

    def samples(self) -> list[Sample]:
        return []

    async def follow(self) -> None:
        await asyncio.Event().wait()

    async def lead(self) -> None:
        raise RuntimeError("broken on purpose")


async def test_an_operator_of_which_a_part_has_ended_ends_so_that_it_is_started_again(
    kube: KubeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(shell.CONTROLLERS, "broken", lambda context: Broken())
    place = OperatorSettings(
        str(kube.kubeconfig(OPERATOR)), controllers=("broken",), own_namespace="tenure-system", lease="broken", port=0
    )

    with pytest.raises(shell.PartEnded, match="broken on purpose"):
        await asyncio.wait_for(shell.run_until(place, asyncio.Event(), lambda running: None), 20)


class Patient:
    """A controller that works until it is cancelled."""

    name = "patient"

    async def listen(self) -> int:
        return 0

    async def close(self) -> None:
        pass

    def __init__(self) -> None:
        self.at_work = False

    def not_ready(self) -> dict[str, str]:
        return {}

    def samples(self) -> list[Sample]:
        return []

    async def follow(self) -> None:
        await asyncio.Event().wait()

    async def lead(self) -> None:
        self.at_work = True
        try:
            await asyncio.Event().wait()
        finally:
            self.at_work = False


class Done(Patient):
    """A controller whose work returns."""

    name = "done"

    async def lead(self) -> None:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(("other", "reason"), [(Broken(), "broken on purpose"), (Done(), "done: lead returned")])
async def test_a_controller_that_ends_ends_the_others_so_that_none_leads_alone(other: Controller, reason: str) -> None:
    patient = Patient()

    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.wait_for(shell._lead([patient, other]), 5)
    assert reason in str(caught.value.exceptions[0])
    assert not patient.at_work


def test_replicas_never_have_one_identity() -> None:
    """Containers share host names and process numbers."""
    assert OperatorSettings().identity != OperatorSettings().identity


class Follower:
    """A controller that follows one kind in the namespaces of the settings."""

    name = "follower"

    async def listen(self) -> int:
        return 0

    async def close(self) -> None:
        pass

    def __init__(self, context: OperatorContext) -> None:
        client, namespaces = context.client, context.settings.namespaces
        meter = context.meter
        self.group = InformerGroup(namespaces, lambda name: Informer(client, CONFIG_MAP, namespace=name, meter=meter))
        self.queue: WorkQueue[Key] = WorkQueue()
        self.host = WebhookHost()
        self.group.on_change(lambda delta: self.queue.add(delta.key))

    def not_ready(self) -> dict[str, str]:
        return {f"configmaps in {name or 'the cluster'}": "not listed yet" for name in self.group.unsynced()}

    def samples(self) -> Iterator[Sample]:
        yield from queue_samples(self.name, self.queue)
        yield from webhook_samples(self.name, self.host)

    async def follow(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.group.run())
            tasks.create_task(self.group.compare_regularly())

    async def lead(self) -> None:
        await asyncio.Event().wait()


async def test_a_controller_works_in_the_namespaces_of_the_settings(
    kube: KubeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ready when each of them is listed."""
    with fresh_namespace(kube) as ours, fresh_namespace(kube) as other:
        for name in (ours, other):
            kube.ask("POST", CONFIG_MAP.path(name), {"metadata": {"name": "there"}})
        monkeypatch.setitem(shell.CONTROLLERS, "follower", Follower)
        place = OperatorSettings(
            str(kube.kubeconfig(OPERATOR)), namespaces=(ours,), controllers=("follower",),
            own_namespace="tenure-system", lease="follower", port=0,
        )  # fmt: skip
        async with shell.started(place) as running:
            (controller,) = running.controllers
            assert isinstance(controller, Follower)
            await asyncio.wait_for(controller.group.wait_synced(), 30)
            assert controller.not_ready() == {}
            metrics = await asyncio.to_thread(read, f"http://127.0.0.1:{running.port}/metrics")
            assert [key_of(each) for each in controller.group] == [(ours, "there")]

    assert 'tenure_operator_queue_depth{controller="follower"} 1\n' in metrics
    assert 'tenure_operator_queue_oldest_seconds{controller="follower"} ' in metrics
    assert 'tenure_operator_webhook_requests_total{controller="follower"} 0\n' in metrics
    assert 'tenure_operator_relists_total{kind="configmaps"} 1\n' in metrics
    assert "tenure_operator_conflicts_total 0\n" in metrics


def test_metrics_have_all_digits_and_stand_together_by_name() -> None:
    samples = [
        Sample("a_total", "As.", "counter", 12_345_678, {"of": "x"}),
        Sample("b_seconds", "Bs.", "gauge", 0.1234567891),
        Sample("a_total", "As.", "counter", 2.0, {"of": 'y"'}),
    ]

    assert "".join(exposition(samples)).splitlines() == [
        "# HELP a_total As.", "# TYPE a_total counter", 'a_total{of="x"} 12345678', 'a_total{of="y\\""} 2',
        "# HELP b_seconds Bs.", "# TYPE b_seconds gauge", "b_seconds 0.1234567891",
    ]  # fmt: skip


def test_every_line_of_a_json_log_is_json() -> None:
    """Also those of libraries, and warnings of Python."""
    program = """
import logging, warnings
from tenure.doors.cli.commands.operator.run_operator import log_to_stderr
log_to_stderr("json")
logging.getLogger("asyncio").error("a task was never awaited")
logging.getLogger("aiohttp.server").warning("no request")
logging.getLogger("tenure.anything").info("here")
warnings.warn("old")
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True, timeout=60)

    loggers = [json.loads(line)["logger"] for line in ran.stderr.splitlines()]
    assert loggers == ["asyncio", "aiohttp.server", "tenure.anything", "py.warnings"]


def test_a_port_that_is_taken_is_named(kube: KubeServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        words = ["--kubeconfig", str(kube.kubeconfig(OPERATOR)), "--port", str(taken.getsockname()[1])]
        ran = run_forked(command(*words), timeout=60)

    assert ran.returncode == 2
    assert f"--port: 127.0.0.1:{words[-1]} cannot be listened on" in ran.stderr


@pytest.mark.parametrize(
    ("options", "host", "said"),
    [
        (ListenOptions("--host", "--port"), "192.0.2.1", "--host: 192.0.2.1:0 cannot be listened on: "),
        (ListenOptions("--host", "--port"), "no.such.host.invalid", "--host: no.such.host.invalid:0 cannot be"),
        (ListenOptions("--webhook-host", "--webhook-port"), "a" * 70, "--webhook-host: aaa"),
    ],
)
async def test_a_host_that_cannot_be_listened_on_is_told_from_a_port(
    options: ListenOptions, host: str, said: str
) -> None:
    with pytest.raises((OSError, UnicodeError)) as failed:
        await asyncio.get_running_loop().create_server(asyncio.Protocol, host, 0)
    assert isinstance(failed.value, OSError | UnicodeError)
    error = CannotListen(options, host, 0, failed.value)

    assert f"{error.option}: {error}".startswith(said)
    assert str(error).endswith("; name an address of this machine, as 127.0.0.1")
    assert "None" not in str(error)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "1e999"])
def test_a_grace_that_is_no_time_is_refused_with_the_name_of_its_option(value: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        run_operator.operator.make_context("operator", [f"--orphan-grace={value}"])
    assert "'--orphan-grace'" in refused.value.format_message()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--kubeconfig", "/nowhere/kubeconfig"), "--kubeconfig: there is no file /nowhere/kubeconfig; name a "),
        (("--namespaces", "a,B c", "--check"), "--namespaces: 'B c' is no namespace"),
        (("--namespaces", " , ", "--check"), "--namespaces: it names none"),
        (("--watch-filter", "b ad/", "--check"), "--watch-filter: 'b ad/' is no value of a label"),
        (("--own-namespace", "-x", "--check"), "--own-namespace: '-x' is no namespace"),
        (("--controllers", "metal9"), "there is no 'metal9'"),
        (("--port", "70000"), "70000"),
        (("--webhook-host", " ", "--check"), "'--webhook-host': it is empty"),
    ],
)
def test_what_is_wrong_is_named(words: tuple[str, ...], said: str) -> None:
    ran = run_forked(command(*words), timeout=60)

    assert ran.returncode == 2
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr
