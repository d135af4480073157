"""``tenure network``: named things that machines attach to. Its verbs lie in files that are read when one is called."""

import click

from tenure.doors.cli.framework.click_base import LazyNoun

VERBS = {
    "Networks": {
        "add": "network.network_change:add",
        "modify": "network.network_change:modify",
        "rename": "network.network_change:rename",
        "retire": "network.network_change:retire",
        "remove": "network.network_change:remove",
    },
    "Tags and groups": {
        "add-tags": "network.network_connect:add_tags",
        "remove-tags": "network.network_connect:remove_tags",
        "list-tags": "network.network_connect:list_tags",
        "connect": "network.network_connect:connect",
        "disconnect": "network.network_connect:disconnect",
    },
    "Reading": {
        "list": "network.network_show:list_networks",
        "list-fields": "network.network_show:list_fields",
        "show": "network.network_show:show",
        "info": "network.network_show:info",
        "map": "network.network_map:map_network",
    },
    "Ganeti": {
        "import-ganeti": "network.import_ganeti:import_ganeti",
        "export-ganeti": "network.export_ganeti:export_ganeti",
        "convert-runtime": "network.export_ganeti:convert",
    },
}


@click.group("network", cls=LazyNoun, sections=VERBS)
def network() -> None:
    """Add, change, list and remove networks, and connect them to groups of nodes.

    NETWORK is a name or a uuid.

    For example:
      tenure network list
    """
