"""``tenure vmpool manifests``: the rights that managers of a pool need in a cluster, and the agent of each node."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import click

from tenure.doors.cli.commands.operator.run_operator import names_in, namespaces_in
from tenure.doors.cli.commands.vmpool.cleanup_options import read_cleanup
from tenure.doors.cli.commands.vmpool.open_vm_pool import loaded, pools_option, setting_option
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.output.print_answer import answer
from tenure.doors.cli.session import Session, pass_session
from tenure.integrations.vmpool.lists.named_pools import POOLS_VARIABLE, read_named_pools
from tenure.integrations.vmpool.vm_pool_settings import DEFAULT_CONFIG_MAP, SOURCES
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
@click.option(
    "--only", metavar="A,B", default="rbac", show_default=True, help="Print these parts: rbac, modes, sizing, agent."
)
@click.option(
    "--service-account",
    metavar="NAME",
    help="Give the rights to this account, which is there already, such as the adaptor's [default: a new one].",
)
@click.option("--image", metavar="NAME", help="The image that the agent runs.")
@click.option(
    "--agent-options",
    metavar="WORDS",
    default="",
    help="Options of `tenure vmpool agent`, such as '--cleanup-sftp --await-return 120'.",
)
@click.option(
    "--ssh-secret",
    metavar="NAME",
    help="A secret with the key id_rsa, the private key of VMs: the agent gets it, for --cleanup-sftp.",
)
@pools_option
@pass_session
def manifests(session: Session, only: str, **said: Any) -> None:
    """Print the Kubernetes manifests of a VM pool, ready for `kubectl apply -f -`.

    They are a Role for the one ConfigMap (rbac), one for pools in the modes per-ip and shards, or that are moved
    (modes), one for pools that are resized (sizing), and a DaemonSet that runs `tenure vmpool agent` on each node
    (agent). The namespace has to be there.

    For example:
      tenure vmpool manifests
      tenure vmpool manifests --pool-configmap-name gpu-vms --pool-namespace default
      tenure vmpool manifests --only rbac,agent --pool-ips 192.0.2.10-192.0.2.29
      tenure vmpool manifests --only rbac,agent --pool-ips 192.0.2.10 --agent-options "--cleanup-url http://{ip}/reboot"
    """
    shipped = loaded("pool_manifests")
    parts = names_in(only)
    if unknown := [name for name in parts if name not in shipped.PARTS]:
        raise Invalid(f"--only: there is no {unknown[0]!r}; there are: {', '.join(shipped.PARTS)}")
    pools = _pools(said["pools"], said["config_map_name"], said["pool_ips"])
    (place,) = namespaces_in("--pool-namespace", (_said("namespace", said["namespace"]) or shipped.NAMESPACE,))
    documents = shipped.documents_of_pools(
        list(pools),
        parts,
        namespace=place,
        account=_object_name("--service-account", said["service_account"] or shipped.ACCOUNT),
        image=said["image"],
        settings=_agent_settings(pools, is_list=bool(said["pools"])) if "agent" in parts else {},
        agent=shipped.AgentWords(_agent_words(said["agent_options"]), _secret(said["ssh_secret"])),
    )
    text = loaded("shipped_manifests", "kubernetes").written(documents, HEAD)
    answer(session, {"apiVersion": "v1", "kind": "List", "items": documents}, text.rstrip("\n"))


def _pools(names: Sequence[str], config_map_name: str | None, pool_ips: str | None) -> dict[str, str]:
    """Return the addresses of the pools that are meant, by name; empty where none are said."""
    if not names:
        name = _said("config_map_name", config_map_name) or DEFAULT_CONFIG_MAP
        return {_object_name("--pool-configmap-name", name): _said("pool_ips", pool_ips)}
    if config_map_name or pool_ips:
        raise Invalid("--pool: it stands in place of --pool-ips and --pool-configmap-name")
    known = read_named_pools(os.environ.get(POOLS_VARIABLE, ""))
    found: dict[str, str] = {}
    for each in names:
        name, sign, _ = each.partition("=")
        found |= read_named_pools(each, field="--pool") if sign else {name: known.get(name, "")}
    return {_object_name("--pool", name): ips for name, ips in found.items()}


def _agent_words(text: str) -> list[str]:
    """Return the options of an agent; raise ``Invalid`` for what `tenure vmpool agent` would not take."""
    from tenure.doors.cli.commands.vmpool.run_pool_agent import agent, read_decider

    try:
        words = shlex.split(text)
        said = agent.make_context("agent", list(words)).params
    except ValueError as error:
        raise Invalid(f"--agent-options: {error}") from None
    except click.UsageError as error:
        raise Invalid(f"--agent-options: {error.format_message()}") from None
    # Copies, because each reader takes its options out of what it is given.
    read_cleanup(dict(said))
    read_decider(dict(said))
    return words


def _secret(name: str | None) -> str:
    return _object_name("--ssh-secret", name) if name else ""


def _said(setting: str, option: str | None) -> str:
    """Return what an option says, else its variable; the pod that this may run in says nothing about others."""
    return option or os.environ.get(SETTINGS[setting].variable, "").strip()


def _agent_settings(pools: Mapping[str, str], *, is_list: bool) -> dict[str, str]:
    """Return the settings of an agent; raise ``Invalid`` where it could not start."""
    first = next(iter(pools))
    for name, ips in pools.items():
        if not ips and is_list:
            raise Invalid(f"--pool: the agent needs the addresses of {name}: {name}=ADDRESSES, or VM_POOLS")
        if not ips:
            raise Invalid("--pool-ips: the agent needs the addresses of the pool, here or in VM_POOL_IPS")
    if len(first) > LONGEST_OF_AGENT:
        raise Invalid(f"--pool-configmap-name: an agent's pool has a name of at most {LONGEST_OF_AGENT} characters")
    if not is_list:
        return {"VM_POOL_IPS": pools[first]}
    return {POOLS_VARIABLE: ";".join(f"{name}={ips}" for name, ips in pools.items())}


def _object_name(option: str, name: str) -> str:
    """Return a name that an object may have; raise ``Invalid`` for any other, which the server would refuse."""
    if not OBJECT_NAME.fullmatch(name):
        raise Invalid(f"{option}: {name!r} is no name of an object: small letters, digits, '-' and '.', at most 253")
    return name
