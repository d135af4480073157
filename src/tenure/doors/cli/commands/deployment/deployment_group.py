"""``tenure deployment``: BOSH's deployments. Its verbs lie in files that are read when one is called."""

import click

from tenure.doors.cli.commands import Shelf

VERBS = {
    "Configs and plans": {
        "upload-config": "deployment_configs:upload_config",
        "delete-config": "deployment_configs:delete_config",
        "plan": "deployment_planning:plan",
        "apply": "deployment_planning:apply",
        "abort": "deployment_planning:abort",
        "delete": "deployment_planning:delete",
    },
    "Reports about VMs": {
        "commit": "deployment_reporting:commit",
        "fail": "deployment_reporting:fail",
        "lose": "deployment_reporting:lose",
        "stop": "deployment_reporting:stop",
        "start": "deployment_reporting:start",
        "ignore": "deployment_reporting:ignore",
        "unignore": "deployment_reporting:unignore",
        "cleanup-orphans": "deployment_reporting:clean_up_orphans",
    },
    "VMs without a deploy": {
        "recreate": "deployment_working:recreate",
        "cck": "deployment_checking:cck",
        "run-errand": "deployment_working:run_errand",
        "end-errand": "deployment_working:end_errand",
        "compile": "deployment_working:compile_packages",
        "commit-worker": "deployment_working:commit_worker",
        "end-compile": "deployment_working:end_compile",
    },
    "Reading": {
        "configs": "deployment_configs:configs",
        "list": "deployment_reading:list_deployments",
        "show": "deployment_reading:show",
        "diff": "deployment_reading:diff",
        "why": "deployment_reading:why",
        "networks": "deployment_reading:networks",
    },
}


@click.group("deployment", cls=Shelf, sections=VERBS)
def deployment() -> None:
    """Plan and apply deployments as BOSH does: cloud configs, manifests, and addresses that stay with instances.

    A plan reserves all that a manifest wants, or nothing. Whoever makes the VMs then reports what became of each:
    until an instance's VM is replaced it holds its old addresses and its new ones.

    INSTANCE is GROUP/INDEX or GROUP/UUID, FILE may be - for standard input.

    For example:
      tenure deployment plan shop.yml
    """
