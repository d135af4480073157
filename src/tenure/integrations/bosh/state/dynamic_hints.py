"""Addresses that the IaaS picked on dynamic networks, as they are reported with a VM."""

from collections.abc import Mapping

from tenure.integrations.bosh.model.document_model import DYNAMIC, CloudConfig
from tenure.integrations.bosh.state.instance_state import DeploymentInstance
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown


def read_hints(hints: object) -> dict[str, str]:
    """Return addresses by network, each written as the ledger writes them; or say which one is none."""
    if hints is None:
        return {}
    if not isinstance(hints, Mapping):
        raise Invalid(f"hints: a mapping of networks to addresses is needed, not {shown(hints)}", field="hints")
    return {_name(name): _address(name, text) for name, text in hints.items()}


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise Invalid(f"hints: the name of a network is needed, not {shown(name)}", field="hints")
    return name


def _address(name: str, text: object) -> str:
    try:
        if isinstance(text, str):
            return format_address(parse_address(text))
    except Invalid:
        # The error below names the network, too.
        pass
    raise Invalid(f"hints: {shown(text)}, on network {name[:80]!r}, is no address", field="hints")


def check_hints(hints: Mapping[str, str], instance: DeploymentInstance, config: CloudConfig) -> None:
    """Refuse an address on a network where the IaaS picks none for the instance."""
    on = [said["name"] for said in instance.networks]
    dynamic = [name for name in on if name in config.networks and config.networks[name].kind == DYNAMIC]
    for name in hints:
        if name not in dynamic:
            known = f"its dynamic networks are {', '.join(dynamic)}" if dynamic else "it is on none"
            told = f"hints: {name[:80]!r} is no dynamic network of instance {instance.name}; {known}"
            raise Invalid(told, field="hints")
