"""``tenure ipam``, which kubectl finds as ``kubectl tenure``. Its verbs lie in files that are read when called."""

import click

from tenure.doors.cli.framework.click_base import LazyNoun

VERBS = {
    "Questions": {
        "why": "ipam.ask_cluster:why",
        "free": "ipam.ask_cluster:free",
        "history": "ipam.ask_cluster:history",
        "drain": "ipam.plan_drain:drain",
    },
    "Moving into a ledger and out": {
        "import": "ipam.move_pools:import_pool",
        "export": "ipam.move_pools:export_pool",
    },
}


@click.group("ipam", cls=LazyNoun, sections=VERBS)
def ipam() -> None:
    """Ask about pools of a Kubernetes cluster; move addresses of IPPools into a ledger, and out again.

    As a plug-in the same commands are `kubectl tenure …`.

    For example:
      tenure ipam why 192.0.2.10
      tenure ipam free machines
    """
