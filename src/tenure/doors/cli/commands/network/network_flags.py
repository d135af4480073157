"""What ``tenure network add`` and ``modify`` may say, written as in the revised Ganeti design."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.framework.click_base import with_options
from tenure.doors.cli.framework.shared_options import description_option, labels_option, no_check_option
from tenure.kernel.plan.plan_model import NetworkKind

if TYPE_CHECKING:
    from tenure.integrations.ganeti.networks import NetworkOptions

NONE = "none"
"""Empties a value."""

DEPRECATED = {
    "old_network": ("--network", "--subnet add:cidr=CIDR,pool"),
    "old_gateway": ("--gateway", "gateway= in --subnet"),
    "old_network6": ("--network6", "--subnet add:cidr=CIDR"),
    "old_gateway6": ("--gateway6", "gateway= in --subnet"),
}
"""Options of networks that have one block of each version: how they are written, and what to write instead."""


def read_tags(context: click.Context, parameter: click.Parameter, lists: Sequence[str]) -> list[str]:
    """Read tags between commas."""
    tags = [tag.strip() for text in lists for tag in text.split(",")]
    if not all(tags):
        raise click.BadParameter("an empty tag: a comma too many, or no tag at all", context, parameter)
    return tags


def _deprecated(key: str, metavar: str, meaning: str) -> Any:
    flag, instead = DEPRECATED[key]
    return click.option(flag, key, metavar=metavar, help=f"{meaning} DEPRECATED: use {instead}.")


plan_options = with_options(
    click.option("--kind", type=click.Choice([str(kind) for kind in NetworkKind]), help="What it is to machines."),
    click.option("-m", "--mac-prefix", metavar="MAC", help="How the MAC addresses on it begin; or none."),
    click.option(
        "--tag", "tags", multiple=True, metavar="WORD", help="A tag, in place of those that there are; repeat for more."
    ),
    click.option(
        "--tags", "tag_lists", multiple=True, metavar="WORD,…", callback=read_tags, help="Tags, between commas."
    ),
    labels_option,
    description_option,
)

design_options = with_options(
    click.option(
        "--subnet",
        "subnets",
        multiple=True,
        metavar="OPT",
        help="add:cidr=CIDR[,gateway=IP][,dhcp=yes][,name=NAME][,pool], IDENT:modify,KEY=VALUE,… or IDENT:remove; "
        "repeat for more.",
    ),
    click.option(
        "--pool",
        "pools",
        multiple=True,
        metavar="OPT",
        help="add:RANGE[,name=NAME], add:subnet=IDENT[,name=NAME], remove:RANGE, POOL:modify,name=NAME or POOL:remove; "
        "repeat for more.",
    ),
    click.option(
        "--add-reserved-ips",
        "add_reserved",
        multiple=True,
        metavar="RANGE,…",
        help="Keep addresses away from picking, between commas.",
    ),
    _deprecated(
        "old_network",
        "CIDR",
        "The first IPv4 subnet of a new network (in `network add` only), with a pool of all of it.",
    ),
    _deprecated("old_gateway", "IP", "The gateway of the first IPv4 subnet."),
    _deprecated("old_network6", "CIDR", "The first IPv6 subnet."),
    _deprecated("old_gateway6", "IP", "The gateway of the first IPv6 subnet."),
    no_check_option,
    click.option("--force", is_flag=True, help="Understood; nothing here has to be forced."),
)

unreserve_option = click.option(
    "--remove-reserved-ips",
    "remove_reserved",
    multiple=True,
    metavar="RANGE,…",
    help="Let addresses be picked again, between commas.",
)


def network_options(said: Mapping[str, Any]) -> "NetworkOptions":
    """Hand on what the options say, as it is written."""
    from tenure.integrations.ganeti.networks import NetworkOptions
    from tenure.integrations.ganeti.options.deprecated import OldOptions

    return NetworkOptions(
        subnets=said["subnets"],
        pools=said["pools"],
        add_reserved=_joined(said["add_reserved"]),
        remove_reserved=_joined(said.get("remove_reserved", ())),
        old=OldOptions(**{key.removeprefix("old_"): said[key] for key in DEPRECATED}),
        check=said["check"],
    )


def _joined(lists: Sequence[str]) -> str | None:
    return ",".join(lists) if lists else None


def deprecations(said: Mapping[str, Any]) -> list[str]:
    """Warn of the options that will go one day."""
    used = [DEPRECATED[key] for key in DEPRECATED if said[key] is not None]
    return [f"{flag} is deprecated; use {instead}" for flag, instead in used]


def all_tags(said: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tags of both options, each once."""
    return tuple(dict.fromkeys([*said["tags"], *said["tag_lists"]]))


def unless_none(text: str | None) -> str | None:
    """Read the word that empties a value."""
    return None if text is None or text.lower() == NONE else text
