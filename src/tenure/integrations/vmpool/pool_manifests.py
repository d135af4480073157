"""The manifests that are shipped for VM pools: the rights that a pool's managers need, and the agent of each node."""

from collections.abc import Iterable, Mapping
from importlib.resources import files as files_of
from typing import Any

import yaml

Object = dict[str, Any]

NAMESPACE = "confidential-containers-system"
NAME = "byom-ip-pool-state"
ACCOUNT = "tenure-vmpool"
"""What the files name, and what is replaced where a pool has other names."""

PARTS = {"rbac": "role.yaml", "agent": "agent.yaml"}
"""The file of each part, in the order in which a server must get them."""


def pool_documents(
    parts: Iterable[str] = ("rbac",),
    *,
    namespace: str = NAMESPACE,
    name: str = NAME,
    account: str = ACCOUNT,
    image: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> list[Object]:
    """Return the documents of the parts for a pool's ConfigMap.

    Another ``account`` than ours gets the rights, and is not created: it is the adaptor's, say. ``settings`` are
    environment variables of the agent.
    """
    names = {NAMESPACE: namespace, NAME: name, ACCOUNT: account}
    names |= {f"{NAME}-agent": f"{name}-agent", f"{ACCOUNT}-{NAMESPACE}": f"{ACCOUNT}-{namespace}"}
    chosen = set(parts)
    found = [_renamed(document, names) for part, file in PARTS.items() if part in chosen for document in _read(file)]
    for document in found:
        if document["kind"] == "DaemonSet":
            _run(document["spec"]["template"]["spec"]["containers"][0], image, settings or {})
    return [each for each in found if each["kind"] != "ServiceAccount" or account == ACCOUNT]


def _read(file: str) -> list[Object]:
    text = files_of("tenure.integrations.vmpool").joinpath("manifests", file).read_text("utf-8")
    return list(yaml.safe_load_all(text))


def _run(container: Object, image: str | None, settings: Mapping[str, str]) -> None:
    """Change what a container runs, and with which settings."""
    container["image"] = image or container["image"]
    kept = [each for each in container["env"] if each["name"] not in settings]
    container["env"] = [*kept, *({"name": name, "value": value} for name, value in settings.items())]


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """Return a document with other names where ours stand."""
    if isinstance(value, dict):
        return {key: _renamed(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    return names.get(value, value) if isinstance(value, str) else value
