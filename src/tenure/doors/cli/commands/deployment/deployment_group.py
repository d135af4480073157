"""``tenure deployment``: BOSH's deployments. Its verbs lie in files that are read when one is called."""

import click

from tenure.doors.cli.framework.click_base import LazyNoun

VERBS = {
    "Configs and plans": {
        "upload-config": "deployment.config_commands:upload_config",
        "delete-config": "deployment.config_commands:delete_config",
        "plan": "deployment.plan_apply_abort:plan",
        "apply": "deployment.plan_apply_abort:apply",
        "abort": "deployment.plan_apply_abort:abort",
        "delete": "deployment.plan_apply_abort:delete",
    },
    "Reports about VMs": {
        "commit": "deployment.vm_reports:commit",
        "fail": "deployment.vm_reports:fail",
        "lose": "deployment.vm_reports:lose",
        "stop": "deployment.vm_reports:stop",
        "start": "deployment.vm_reports:start",
        "ignore": "deployment.vm_reports:ignore",
        "unignore": "deployment.vm_reports:unignore",
        "cleanup-orphans": "deployment.vm_reports:clean_up_orphans",
    },
    "VMs without a deploy": {
        "recreate": "deployment.errand_compile:recreate",
        "cck": "deployment.cck:cck",
        "run-errand": "deployment.errand_compile:run_errand",
        "end-errand": "deployment.errand_compile:end_errand",
        "compile": "deployment.errand_compile:compile_packages",
        "commit-worker": "deployment.errand_compile:commit_worker",
        "end-compile": "deployment.errand_compile:end_compile",
    },
    "Reading": {
        "configs": "deployment.config_commands:configs",
        "list": "deployment.deployment_show:list_deployments",
        "show": "deployment.deployment_show:show",
        "diff": "deployment.deployment_show:diff",
        "why": "deployment.deployment_show:why",
        "networks": "deployment.deployment_show:networks",
    },
}


@click.group("deployment", cls=LazyNoun, sections=VERBS)
def deployment() -> None:
    """Plan and apply deployments as BOSH does: cloud configs, manifests, and addresses that stay with instances.

    A plan reserves all that a manifest wants, or nothing. Whoever makes the VMs then reports what became of each:
    until an instance's VM is replaced it holds its old addresses and its new ones.

    INSTANCE is GROUP/INDEX or GROUP/UUID, FILE may be - for standard input.

    For example:
      tenure deployment plan shop.yml
    """
