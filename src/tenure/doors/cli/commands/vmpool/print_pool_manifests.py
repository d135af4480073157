"""``tenure vmpool manifests``: the rights that managers of a pool need in a cluster, and the agent of each node."""

import os
import re

import click

from tenure.doors.cli.commands.operator.run_operator import names_in, namespaces_in
from tenure.doors.cli.commands.vmpool.open_vm_pool import loaded, setting_option
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.output.print_answer import answer
from tenure.doors.cli.session import Session, pass_session
from tenure.integrations.vmpool.vm_pool_settings import SOURCES
from tenure.kernel.errors import Invalid

OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
LONGEST_OF_AGENT = 52
"""Kubernetes puts the name of a DaemonSet, with ten characters more, into a label, which takes 63."""

SETTINGS = {source.argument: source for source in SOURCES}

HEAD = "# Printed by `tenure vmpool manifests`.\n"


@command("manifests")
@setting_option(SETTINGS["namespace"])
@setting_option(SETTINGS["config_map_name"])
@setting_option(SETTINGS["pool_ips"])
@click.option("--only", metavar="A,B", default="rbac", show_default=True, help="Print these parts: rbac, agent.")
@click.option(
    "--service-account",
    metavar="NAME",
    help="Give the rights to this account, which is there already, such as the adaptor's [default: a new one].",
)
@click.option("--image", metavar="NAME", help="The image that the agent runs.")
@pass_session
def manifests(
    session: Session,
    namespace: str | None,
    config_map_name: str | None,
    pool_ips: str | None,
    only: str,
    service_account: str | None,
    image: str | None,
) -> None:
    """Print the Kubernetes manifests of a VM pool, ready for `kubectl apply -f -`.

    They are a Role for the one ConfigMap (rbac), and a DaemonSet that runs `tenure vmpool agent` on each node (agent).

    For example:
      tenure vmpool manifests
      tenure vmpool manifests --pool-configmap-name gpu-vms --pool-namespace default
      tenure vmpool manifests --only rbac,agent --pool-ips 192.0.2.10-192.0.2.29
    """
    shipped = loaded("pool_manifests")
    parts = names_in(only)
    if unknown := [name for name in parts if name not in shipped.PARTS]:
        raise Invalid(f"--only: there is no {unknown[0]!r}; there are: {', '.join(shipped.PARTS)}")
    name = _object_name("--pool-configmap-name", _said("config_map_name", config_map_name) or shipped.NAME)
    (place,) = namespaces_in("--pool-namespace", (_said("namespace", namespace) or shipped.NAMESPACE,))
    documents = shipped.pool_documents(
        parts,
        namespace=place,
        name=name,
        account=_object_name("--service-account", service_account or shipped.ACCOUNT),
        image=image,
        settings=_agent_settings(name, _said("pool_ips", pool_ips)) if "agent" in parts else {},
    )
    text = loaded("shipped_manifests", "kubernetes").written(documents, HEAD)
    answer(session, {"apiVersion": "v1", "kind": "List", "items": documents}, text.rstrip("\n"))


def _said(setting: str, option: str | None) -> str:
    """Return what an option says, else its variable; the pod that this may run in says nothing about others."""
    return option or os.environ.get(SETTINGS[setting].variable, "").strip()


def _agent_settings(name: str, pool_ips: str) -> dict[str, str]:
    """Return the settings of an agent; raise ``Invalid`` where it could not start."""
    if not pool_ips:
        raise Invalid("--pool-ips: the agent needs the addresses of the pool, here or in VM_POOL_IPS")
    if len(name) > LONGEST_OF_AGENT:
        raise Invalid(f"--pool-configmap-name: an agent's pool has a name of at most {LONGEST_OF_AGENT} characters")
    return {"VM_POOL_IPS": pool_ips}


def _object_name(option: str, name: str) -> str:
    """Return a name that an object may have; raise ``Invalid`` for any other, which the server would refuse."""
    if not OBJECT_NAME.fullmatch(name):
        raise Invalid(f"{option}: {name!r} is no name of an object: small letters, digits, '-' and '.', at most 253")
    return name
