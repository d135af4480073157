"""The real ``helm``, with a home of its own, on a server of a test."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from tools.build_kube import find_program
from tools.make_helm_chart import CHART

from tenure.integrations.kubernetes.runtime.resource_types import Object
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.helm.helm_cases import Installed, nested

RELEASE, NAMESPACE = "tenure", "tenure-system"


class HelmRefused(Exception):
    """Helm ended with an error; the text is what it printed."""


class Helm:
    """A user of Helm: the chart of this repository is the one that is meant."""

    def __init__(self, server: KubeServer, folder: Path) -> None:
        self.server, self.folder = server, folder

    def run(self, *words: str) -> str:
        """Run a command, and return what it prints."""
        environment = {
            "HOME": str(self.folder),  # what it knows of a server is kept there, too
            "KUBECONFIG": str(self.server.kubeconfig()),
        }
        done = subprocess.run(
            [str(find_program("helm")), *words],
            env=environment,
            capture_output=True,
            encoding="utf-8",
            timeout=180,
            check=False,
        )
        if done.returncode != 0:
            raise HelmRefused(done.stderr)
        return done.stdout

    def template(self, values: Mapping[str, Any], *words: str, namespace: str = NAMESPACE) -> Installed:
        """Return what a release would have; the server says which kinds there are."""
        printed = self.run("template", RELEASE, str(CHART), "-n", namespace, *self._given(values), *words)
        return Installed(each for each in yaml.safe_load_all(printed) if each)

    def upgrade(self, values: Mapping[str, Any], *words: str) -> str:
        """Install the chart, or upgrade what is installed."""
        place = ("-n", NAMESPACE, "--create-namespace", "--reset-values")
        return self.run("upgrade", "--install", RELEASE, str(CHART), *place, *self._given(values), *words)

    def uninstall(self) -> str:
        """Remove the release."""
        return self.run("uninstall", RELEASE, "-n", NAMESPACE)

    def manifest(self) -> list[Object]:
        """Return what Helm takes for the objects of the release."""
        return [each for each in yaml.safe_load_all(self.run("get", "manifest", RELEASE, "-n", NAMESPACE)) if each]

    def _given(self, values: Mapping[str, Any]) -> tuple[str, str]:
        file = self.folder / "values.json"
        file.write_text(json.dumps(nested(values)), "utf-8")
        return "--values", str(file)
