"""The options of today's networks, which have one IPv4 and one IPv6 block: they mean the first of each version."""

from dataclasses import dataclass

from tenure.integrations.ganeti.hook_environment import first_subnet
from tenure.integrations.ganeti.options.network_edits import Design, add_subnet, modify_subnet
from tenure.integrations.ganeti.options.network_grammar import SubnetAdd, SubnetModify, read_address, read_cidr
from tenure.integrations.ganeti.options.option_errors import blamed
from tenure.kernel.addressing.addresses import is_v6
from tenure.kernel.addressing.ranges import Cidr
from tenure.kernel.errors import Invalid, NotFound
from tenure.kernel.plan.edits import KEEP, Keep, RemoveSubnet


@dataclass(frozen=True, slots=True, kw_only=True)
class OldOptions:
    """``--network``, ``--gateway``, ``--network6``, ``--gateway6`` as written; None where not given."""

    network: str | None = None
    gateway: str | None = None
    network6: str | None = None
    gateway6: str | None = None


def design_old_options(design: Design, options: OldOptions, *, new: bool) -> None:
    """Do what the deprecated options say; in a new network ``--network`` makes the first subnet, with its pool."""
    if options.network is not None:
        with blamed("--network", options.network):
            if not new:
                raise Invalid("--network makes the first subnet of a new network; use --subnet IDENT:modify,cidr=…")
            cidr, warning = _block(options.network, "--network", v6=False)
            gateway = _gateway(options.gateway, "--gateway")
            add_subnet(
                design, SubnetAdd(cidr, None if isinstance(gateway, Keep) else gateway, pool=True, warning=warning)
            )
        design.passed("--network", options.network)
    elif options.gateway is not None:
        _change_gateway(design, "--gateway", options.gateway, v6=False)
    if options.network6 is not None:
        with blamed("--network6", options.network6):
            _design_block6(design, options.network6, options.gateway6)
        design.passed("--network6", options.network6)
    elif options.gateway6 is not None:
        _change_gateway(design, "--gateway6", options.gateway6, v6=True)


def _design_block6(design: Design, text: str, gateway6: str | None) -> None:
    """Add, change or remove the first IPv6 subnet."""
    known = first_subnet(design.network, six=True)
    gateway = _gateway(gateway6, "--gateway6")
    if text.lower() == "none":
        if known is None:
            raise NotFound("IPv6 subnet", "", network=design.network.name)
        if not isinstance(gateway, Keep) and gateway is not None:
            raise Invalid("--gateway6 needs an IPv6 subnet, and --network6=none removes it", field="gateway6")
        design.edit(RemoveSubnet(network=design.network.name, subnet=known.uuid))
        return
    cidr, warning = _block(text, "--network6", v6=True)
    if known is None:
        add_subnet(design, SubnetAdd(cidr, None if isinstance(gateway, Keep) else gateway, warning=warning))
    else:
        modify_subnet(design, SubnetModify(known.uuid, cidr=cidr, gateway=gateway, warning=warning))


def _change_gateway(design: Design, option: str, text: str, *, v6: bool) -> None:
    with blamed(option, text):
        known = first_subnet(design.network, six=v6)
        if known is None:
            version = "IPv6" if v6 else "IPv4"
            raise NotFound(f"{version} subnet", "", network=design.network.name, hint="add one with --subnet")
        modify_subnet(design, SubnetModify(known.uuid, gateway=_gateway(text, option)))
    design.passed(option, text)


def _gateway(text: str | None, option: str) -> str | Keep | None:
    if text is None:
        return KEEP
    if text.lower() == "none":
        return None
    return read_address(text, option)


def _block(text: str, option: str, *, v6: bool) -> tuple[Cidr, str | None]:
    cidr, warning = read_cidr(text, option)
    if is_v6(cidr.first) != v6:
        wanted = "IPv6" if v6 else "IPv4"
        raise Invalid(f"{cidr} is not an {wanted} block")
    return cidr, warning
