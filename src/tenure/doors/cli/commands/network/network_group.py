"""``tenure network``: named things that machines attach to. Its verbs lie in files that are read when one is called."""

import click

from tenure.doors.cli.commands import Shelf

VERBS = {
    "Networks": {
        "add": "network_changing:add",
        "modify": "network_changing:modify",
        "rename": "network_changing:rename",
        "retire": "network_changing:retire",
        "remove": "network_changing:remove",
    },
    "Tags and groups": {
        "add-tags": "network_wiring:add_tags",
        "remove-tags": "network_wiring:remove_tags",
        "list-tags": "network_wiring:list_tags",
        "connect": "network_wiring:connect",
        "disconnect": "network_wiring:disconnect",
    },
    "Reading": {
        "list": "network_reading:list_networks",
        "list-fields": "network_reading:list_fields",
        "show": "network_reading:show",
        "info": "network_reading:info",
        "map": "network_map:map_network",
    },
    "Ganeti": {
        "import-ganeti": "ganeti_in:import_ganeti",
        "export-ganeti": "ganeti_out:export_ganeti",
        "convert-runtime": "ganeti_out:convert",
    },
}


@click.group("network", cls=Shelf, sections=VERBS)
def network() -> None:
    """Add, change, list and remove networks, and connect them to groups of nodes.

    NETWORK is a name or a uuid.

    For example:
      tenure network list
    """
