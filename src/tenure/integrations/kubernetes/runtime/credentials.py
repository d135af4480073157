"""Where the API server is, and what to show it: from a kubeconfig, an exec plug-in, or a pod's service account.

``kubernetes_asyncio`` reads these; nothing else of it is used (docs/why/0030 has the figures).
"""

import asyncio
import os
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException
from kubernetes_asyncio.config.incluster_config import SERVICE_HOST_ENV_NAME, load_incluster_config
from kubernetes_asyncio.config.kube_config import list_kube_config_contexts, load_kube_config

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class CredentialsMissing(Exception):
    """There is no usable configuration of a cluster; the message says what was looked for."""


@dataclass(frozen=True)
class ClusterAccess:
    """A server, how to trust it, and what to show it."""

    server: str
    tls: ssl.SSLContext | None
    authorization: str | None
    server_name: str | None = None
    proxy: str | None = None


Loader = Callable[[], Coroutine[Any, Any, ClusterAccess]]
"""Read the credentials again, all of them: tokens and certificates are replaced while processes run."""


PLUG_IN_S = 20.0
"""How long an exec plug-in may take. One that hangs would keep all requests waiting; it is not ended, only left."""

UNUSABLE = (ConfigException, OSError, yaml.YAMLError, TypeError, AttributeError, LookupError, ValueError, RuntimeError)
"""What comes of files that are wrong: the library looks into what it has read without asking what it is."""


HOME_FILE = "~/.kube/config"
CORRECT_IT = "correct it, or name another kubeconfig"


def from_kubeconfig(path: str | None = None, context: str | None = None, within_s: float = PLUG_IN_S) -> Loader:
    """Return a loader for a kubeconfig: ``path``, else ``KUBECONFIG``, else the file in the home folder.

    ``CredentialsMissing`` says which file it is about, what is wrong with it, and what to do.
    """

    async def load() -> ClusterAccess:
        configuration = Configuration()
        place = path or os.environ.get("KUBECONFIG") or HOME_FILE
        named = place if path or place != os.environ.get("KUBECONFIG") else f"{place} (named by $KUBECONFIG)"
        _check_files(place, named)
        try:
            async with asyncio.timeout(within_s):
                # Nothing is written into the user's file, such as a token that the library has renewed.
                await load_kube_config(place, context, configuration, persist_config=False)
            return _access(configuration)
        except TimeoutError as error:
            raise CredentialsMissing(f"{named}: its plug-in did not answer within {within_s:g} s") from error
        except UNUSABLE as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise CredentialsMissing(f"{named} cannot be used: {reason}; {CORRECT_IT}") from error

    return load


def _check_files(place: str, named: str) -> None:
    """Raise ``CredentialsMissing`` unless one of the files is there, and each that is there can be read and has a map.

    The library takes a missing file for an empty one, and says what that lacks.
    """
    paths = [Path(each).expanduser() for each in place.split(os.pathsep) if each]
    found = [each for each in paths if each.exists()]
    if not found:
        raise CredentialsMissing(f"there is no file {named}; name a kubeconfig that is there")
    for each in found:
        try:
            document = yaml.safe_load(each.read_text("utf-8"))
        except OSError as error:
            reason = f"{each} cannot be read: {error.strerror}; allow it, or name another kubeconfig"
            raise CredentialsMissing(reason) from error
        # Of a date that is none, and of a number of thousands of digits, the parser raises a plain ValueError.
        except (yaml.YAMLError, ValueError) as error:
            raise CredentialsMissing(f"{each} is no YAML: {_place_of(error)}; {CORRECT_IT}") from error
        if not isinstance(document, dict):
            raise CredentialsMissing(f"{each} is no kubeconfig: it has no clusters, users and contexts; {CORRECT_IT}")


def _place_of(error: Exception) -> str:
    """Return what is wrong with a text, in one line, with its place if there is one."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return " ".join(str(error).split())


def from_service_account() -> Loader:
    """Return a loader for the service account of the pod in which this process runs."""

    async def load() -> ClusterAccess:
        configuration = Configuration()
        try:
            # The client reads all of it again after a 401, so the library's own refresh is not needed.
            load_incluster_config(configuration, try_refresh_token=False)
            return _access(configuration)
        except UNUSABLE as error:
            raise CredentialsMissing(f"service account of this pod: {error}; or name a kubeconfig") from error

    return load


def find_credentials(kubeconfig: str | None = None, context: str | None = None) -> Loader:
    """Return the loader that fits: a kubeconfig that is named, else the pod's service account, else a kubeconfig."""
    if kubeconfig or context or SERVICE_HOST_ENV_NAME not in os.environ:
        return from_kubeconfig(kubeconfig, context)
    return from_service_account()


def context_namespace(path: str | None = None, context: str | None = None) -> str:
    """Return the namespace of a context of a kubeconfig, as ``kubectl`` takes it; ``default`` where it names none."""
    try:
        contexts, active = list_kube_config_contexts(path or os.environ.get("KUBECONFIG"))
        chosen = next((each for each in contexts if each["name"] == context), {}) if context else active or {}
        return str(chosen["context"].get("namespace") or "default")
    except UNUSABLE:
        return own_namespace()


def own_namespace() -> str:
    """Return the namespace of the pod in which this process runs, else ``default``."""
    try:
        return NAMESPACE_FILE.read_text("utf-8").strip() or "default"
    except OSError:
        return "default"


def _access(read: Configuration) -> ClusterAccess:
    server = str(read.host)
    tls = _tls(read) if server.startswith("https") else None
    token = read.api_key.get("BearerToken")
    return ClusterAccess(server, tls, token, read.tls_server_name, read.proxy)


def _tls(read: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=read.ssl_ca_cert or None)
    if not read.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if read.cert_file:
        context.load_cert_chain(read.cert_file, read.key_file)
    return context
