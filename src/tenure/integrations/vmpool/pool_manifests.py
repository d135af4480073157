"""The manifests that are shipped for VM pools: the rights that a pool's managers need, and the agent of each node."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.resources import files as files_of
from typing import Any, NamedTuple

import yaml

from tenure.integrations.vmpool.vm_pool_settings import object_beside

Object = dict[str, Any]

NAMESPACE = "confidential-containers-system"
NAME = "byom-ip-pool-state"
ACCOUNT = "tenure-vmpool"
"""What the files name, and what is replaced where a pool has other names."""

PARTS = {"rbac": "role.yaml", "modes": "role-modes.yaml", "sizing": "role-sizing.yaml", "agent": "agent.yaml"}
"""The file of each part, in the order in which a server must get them."""


SSH_FOLDER, SSH_KEY = "/etc/tenure/ssh", "id_rsa"
"""Where the agent finds the secret with the private key for its VMs, and the file in it."""


def documents_of_pools(
    names: Sequence[str], parts: Collection[str] = ("rbac",), *, agent: "AgentWords | None" = None, **words: Any
) -> list[Object]:
    """Return the documents of the parts for several pools: rights for each, and one agent, named after the first."""
    found: list[Object] = []
    for number, name in enumerate(names):
        own = [part for part in parts if part != "agent" or not number]
        found += [each for each in pool_documents(own, name=name, agent=agent, **words) if each not in found]
    return found


class AgentWords(NamedTuple):
    """What an agent in a cluster is started with, besides what the file has."""

    options: Sequence[str] = ()
    """Of ``tenure vmpool agent``, such as those of its cleanup."""
    ssh_secret: str = ""
    """A secret of the same namespace with the key ``id_rsa``: the private key for VMs, for a cleanup by sftp."""


def pool_documents(
    parts: Iterable[str] = ("rbac",),
    *,
    namespace: str = NAMESPACE,
    name: str = NAME,
    account: str = ACCOUNT,
    image: str | None = None,
    settings: Mapping[str, str] | None = None,
    agent: AgentWords | None = None,
) -> list[Object]:
    """Return the documents of the parts for a pool's ConfigMap.

    Another ``account`` than ours gets the rights, and is not created: it is the adaptor's, say. ``settings`` are
    environment variables of the agent.
    """
    names = {NAMESPACE: namespace, NAME: name, ACCOUNT: account}
    names |= {f"{NAME}-{part}": f"{name}-{part}" for part in ("agent", "modes", "sizing")}
    names |= {f"{NAME}-{part}": object_beside(name, part) for part in ("size", "move")}
    names |= {f"{ACCOUNT}-{NAMESPACE}": f"{ACCOUNT}-{namespace}"}
    chosen = set(parts)
    found = [_renamed(document, names) for part, file in PARTS.items() if part in chosen for document in _read(file)]
    for document in found:
        if document["kind"] == "DaemonSet":
            pod = document["spec"]["template"]["spec"]
            _run(pod["containers"][0], image, settings or {})
            _start(pod, agent or AgentWords())
    return [each for each in found if each["kind"] != "ServiceAccount" or account == ACCOUNT]


def _read(file: str) -> list[Object]:
    text = files_of("tenure.integrations.vmpool").joinpath("manifests", file).read_text("utf-8")
    return list(yaml.safe_load_all(text))


def _run(container: Object, image: str | None, settings: Mapping[str, str]) -> None:
    """Change what a container runs, and with which settings."""
    container["image"] = image or container["image"]
    kept = [each for each in container["env"] if each["name"] not in settings]
    container["env"] = [*kept, *({"name": name, "value": value} for name, value in settings.items())]


def _start(pod: Object, agent: AgentWords) -> None:
    """Give an agent its options, and the key for its VMs."""
    [container] = pod["containers"]
    container["args"] += agent.options
    if not agent.ssh_secret:
        return
    container["env"].append({"name": "SSH_PRIV_KEY_PATH", "value": f"{SSH_FOLDER}/{SSH_KEY}"})
    container["volumeMounts"] = [{"name": "ssh", "mountPath": SSH_FOLDER, "readOnly": True}]
    # The agent is not root: its group may read what a secret has.
    pod["securityContext"]["fsGroup"] = pod["securityContext"]["runAsGroup"]
    pod["volumes"] = [{"name": "ssh", "secret": {"secretName": agent.ssh_secret, "defaultMode": 0o440}}]


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """Return a document with other names where ours stand."""
    if isinstance(value, dict):
        return {key: _renamed(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    return names.get(value, value) if isinstance(value, str) else value
