"""What a pod is told of its surroundings: its namespace and its node's name."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tenure.integrations.vmpool.pool_errors import NamespaceUnknown, NodeNameUnknown

DEFAULT_NAMESPACE = "confidential-containers-system"
NODE_NAME = "NODE_NAME"
NODE_NAME_FILES = (Path("/etc/podinfo/nodename"), Path("/etc/hostname"))
SERVICE_ACCOUNT_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
POD_NAMESPACE = "POD_NAMESPACE"


def find_node_name(
    named: str = "", *, environment: Mapping[str, str] | None = None, files: Sequence[Path] | None = None
) -> str:
    """Return the name of this node: as named, else by the environment, else by a file (case 70).

    Raise ``NodeNameUnknown`` if none of them has one. A name of blanks is none (Go's manager takes it for a name).
    """
    surroundings = os.environ if environment is None else environment
    files = NODE_NAME_FILES if files is None else files
    name = named.strip() or surroundings.get(NODE_NAME, "").strip() or first_text(files)
    if not name:
        tried = ", ".join(map(str, files))
        raise NodeNameUnknown(f"tried the environment variable {NODE_NAME} and the files {tried}")
    return name


def find_namespace(
    named: str = "",
    *,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
    default: str | None = DEFAULT_NAMESPACE,
) -> str:
    """Return the namespace of the pool: as named, else that of this pod, else the default (cases 66 to 69).

    A named one is used as it is, without a look at the pod. Raise ``NamespaceUnknown`` if there is no default.
    """
    if named:
        return named
    surroundings = os.environ if environment is None else environment
    file = SERVICE_ACCOUNT_NAMESPACE if file is None else file
    found = first_text([file]) or surroundings.get(POD_NAMESPACE, "").strip() or default
    if not found:
        raise NamespaceUnknown(f"tried the file {file} and the environment variable {POD_NAMESPACE}")
    return found


def first_text(files: Sequence[Path]) -> str:
    """Return the text of the first file that has any, without the blanks around it."""
    for file in files:
        try:
            text = file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text:
            return text
    return ""
