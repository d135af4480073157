"""``docs/reference/kubernetes-metrics.md`` has every metric that the operator serves, and no other (KP14)."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tenure.integrations.kubernetes import operator as shell
from tenure.integrations.kubernetes.operator_settings import OperatorSettings
from tests.infrastructure.kube import OPERATOR, KubeServer
from tests.integrations.kubernetes.metal3.serving import Namespace
from tests.integrations.kubernetes.test_metrics_auth import ask

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "kubernetes-metrics.md"
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| ([^|]+) \| (every|leader) \| ([^|]+) \|$", re.MULTILINE)
HEAD = re.compile(r"^# HELP (\S+) (.+)\n# TYPE \1 (\w+)\n\1(?:\{(.*)\})? \S+$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="')
WITHIN_S = 60.0


class Metric(NamedTuple):
    """A metric as it is served, or as the page has it."""

    name: str
    type: str
    labels: tuple[str, ...]
    meaning: str


def served_in(text: str) -> set[Metric]:
    """Read what an operator serves."""
    return {Metric(name, type, tuple(LABEL.findall(labels)), help) for name, help, type, labels in HEAD.findall(text)}


def on_page(*places: str, optional: str = "") -> set[Metric]:
    """Read what the page has, of metrics that are shown in some places; of labels in brackets, one may be there."""
    rows = ROW.findall(PAGE.read_text("utf-8"))
    return {
        Metric(name, type, _labels(labels, optional), meaning)
        for name, type, labels, on, meaning in rows
        if on in places
    }


def _labels(cell: str, optional: str) -> tuple[str, ...]:
    """Read the labels of a row; those in brackets are left out, but for the one that is asked for."""
    found = cell.replace("–", "").replace(f"({optional})", optional).split(", ")
    return tuple(label for label in found if label and not label.startswith("("))


async def until_shown(running: shell.Running, *texts: str) -> str:
    """Return the metrics of a replica as soon as they have some lines."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            _, shown = await ask(running.port, "/metrics")
            if all(text in shown for text in texts):
                return shown
            await asyncio.sleep(0.05)


async def test_kp14_the_page_has_every_metric_that_is_served_and_no_other(kube: KubeServer, namespace: str) -> None:
    """By a leader and by a replica that does not lead, both with all controllers that there are."""
    settings = OperatorSettings(
        str(kube.kubeconfig(OPERATOR)), namespaces=(namespace,), controllers=tuple(shell.CONTROLLERS),
        own_namespace="tenure-system", lease=namespace, port=0, webhooks=False,
    )  # fmt: skip
    await asyncio.to_thread(Namespace(kube, namespace).pool, "p", "10.0.0.1-10.0.0.9")
    async with shell.started(settings) as first:
        leaders = await until_shown(first, "tenure_operator_leader 1\n", "_pool_free{", "_claims_waiting{")
        async with shell.started(replace(settings, identity="second")) as second:
            followers = await until_shown(second, "tenure_operator_leader 0\n", "_pool_free{")

    assert served_in(leaders) == on_page("every", "leader")
    assert served_in(followers) == on_page("every")
    assert leaders.count("# TYPE ") == len(served_in(leaders))
