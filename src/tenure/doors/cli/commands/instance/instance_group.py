"""``tenure instance``: virtual machines, their NICs and addresses. Its verbs lie in files of their own."""

import click

from tenure.doors.cli.framework.click_base import LazyNoun

VERBS = {
    "Instances": {
        "add": "instance.instance_change:add",
        "modify": "instance.instance_change:modify",
        "rename": "instance.instance_change:rename",
        "move": "instance.instance_change:move",
        "remove": "instance.instance_change:remove",
    },
    "Reading": {
        "list": "instance.instance_show:list_instances",
        "list-fields": "instance.instance_show:list_fields",
        "info": "instance.instance_show:info",
        "env": "instance.instance_show:env",
    },
}


@click.group("instance", cls=LazyNoun, sections=VERBS)
def instance() -> None:
    """Add, change, list and remove instances: machines with NICs and addresses.

    For example:
      tenure instance list
    """
