"""``tenure instance``: virtual machines, their NICs and addresses. Its verbs lie in files of their own."""

import click

from tenure.doors.cli.commands import Shelf

VERBS = {
    "Instances": {
        "add": "instance_changing:add",
        "modify": "instance_changing:modify",
        "remove": "instance_changing:remove",
    },
    "Reading": {
        "list": "instance_reading:list_instances",
        "list-fields": "instance_reading:list_fields",
        "info": "instance_reading:info",
        "env": "instance_reading:env",
    },
}


@click.group("instance", cls=Shelf, sections=VERBS)
def instance() -> None:
    """Add, change, list and remove instances: machines with NICs and addresses.

    For example:
      tenure instance list
    """
