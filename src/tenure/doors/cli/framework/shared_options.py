"""Arguments and options that several commands share, and how their words are read."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import click

from tenure.doors.cli.framework.click_base import with_options
from tenure.doors.cli.framework.complete_names import complete_network, complete_pool, complete_subnet
from tenure.kernel.addressing.addresses import Family
from tenure.kernel.plan.edits import KEEP
from tenure.kernel.plan.plan_model import Policy
from tenure.service.allocator.claim import REACHES


class FiniteRange(click.FloatRange):
    """A number in a range. Unlike click's own, it refuses nan and infinity, which compare with every bound as fine."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def read_labels(context: click.Context, parameter: click.Parameter, pairs: Sequence[str]) -> dict[str, str]:
    """Read labels written as name=text."""
    labels: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{pair!r} is not of the form name=text", context, parameter)
        if name in labels:
            raise click.BadParameter(f"label {name!r} is given twice", context, parameter)
        labels[name] = text
    return labels


network_argument = click.argument("network", shell_complete=complete_network)
network_choice = click.argument("network", required=False, shell_complete=complete_network)
subnet_argument = click.argument("subnet", shell_complete=complete_subnet)
pool_argument = click.argument("pool", shell_complete=complete_pool)
range_argument = click.argument("range")
address_argument = click.argument("address")
owner_argument = click.argument("owner")

labels_option = click.option(
    "--label",
    "labels",
    metavar="NAME=TEXT",
    multiple=True,
    callback=read_labels,
    help="A label; a modify adds it to those that there are. Repeat for more.",
)
relabel_options = with_options(
    click.option("--no-label", "no_labels", metavar="NAME", multiple=True, help="Remove this label; repeat for more."),
    click.option("--labels-only", is_flag=True, help="Remove all labels but those of --label."),
)
description_option = click.option("--description", metavar="TEXT", help="A few words for people.")
request_option = click.option("--request", metavar="NAME", help="Name the request; it is kept in the log.")
key_option = click.option(
    "--key", metavar="KEY", help="Idempotency key: the same command with the same key takes effect once."
)
generation_option = click.option(
    "--generation", type=int, metavar="N", help="Only if the holding is still of this generation."
)
slot_option = click.option("--slot", default="", metavar="NAME", help="Which of the owner's slots.")
policy_option = click.option("--policy", type=click.Choice([str(word) for word in Policy]), help="How to pick.")
cascade_option = click.option("--cascade", is_flag=True, help="End all holdings in it, too.")
undo_option = click.option("--undo", is_flag=True, help="Take it back into use.")


def without_option(*fields: str) -> Decorator:
    """Make the option that empties fields which a modify would otherwise leave as they are."""
    help_text = "Empty this field; repeat for more."
    return click.option("--without", type=click.Choice(fields), multiple=True, help=help_text)


claim_options = with_options(
    slot_option,
    click.option("--address", metavar="ADDRESS[/LENGTH]", help="This address and no other; a length is its unit's."),
    click.option("--pool", shell_complete=complete_pool, help="Only from this pool."),
    click.option("--subnet", shell_complete=complete_subnet, help="Only from this subnet."),
    click.option("--zone", metavar="NAME", help="Only from subnets in this zone, or in none."),
    click.option("--family", type=click.Choice([str(word) for word in Family]), help="Only addresses of this family."),
    policy_option,
    click.option("--reserved", type=click.Choice(REACHES), help="How far --address may reach; refuse unless said."),
    labels_option,
    click.option("--description", default="", metavar="TEXT", help="A few words for people."),
    click.option("--carrier", metavar="NAME", help="The machine that carries the address."),
    click.option("--plan", metavar="NAME", help="The operation it belongs to."),
    request_option,
    key_option,
)
"""What an allocation may say beside network and owner."""


def changed(value: object, field: str, without: Sequence[str], empty: object) -> Any:
    """Return what a modify passes on: the new value, emptiness, or KEEP where nothing was said."""
    silent = value is None or value == () or value == {}
    if field in without:
        if not silent:
            raise click.UsageError(f"--without {field} empties what another option sets; leave one of them out")
        return empty
    return KEEP if silent else value


def changed_labels(said: dict[str, Any], without: Sequence[str]) -> dict[str, Any]:
    """Take what a modify says of labels out of its words; return it as the ledger's keywords."""
    added, removed, only = said.pop("labels"), said.pop("no_labels"), said.pop("labels_only")
    if "labels" in without:
        if added or removed or only:
            raise click.UsageError("--without labels removes them all; leave out the other words on labels")
        return {"labels": {}}
    if only and (removed or not added):
        raise click.UsageError("--labels-only needs --label and no --no-label; --without labels removes them all")
    if both := [name for name in removed if name in added]:
        raise click.UsageError(f"label {both[0]!r} is to be added and removed; leave one of them out")
    if only:
        return {"labels": added}
    return {name: value for name, value in (("add_labels", added), ("remove_labels", removed)) if value}


no_check_option = click.option(
    "--no-conflicts-check", "check", flag_value=False, default=True, help="Do not look for addresses in its way."
)
"""Let an edit of the plan be, whatever nodes and NICs without network have there."""
