"""A story of two deployments in many short steps. Each step may be done again by whoever was killed in it."""

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import tenure
from tenure.integrations.bosh.deployments_api import Deployments
from tenure.integrations.bosh.state import instance_state
from tenure.integrations.bosh.state.compile_workers import COMPILE
from tenure.integrations.bosh.state.vm_holder import ALL_VMS
from tenure.integrations.bosh.state.vm_index import VM
from tenure.kernel.errors import NotFound
from tests.integrations.bosh.conformance.town import Document, app, config, lab, manifest

Step = Callable[[Deployments], Awaitable[Any]]

STATIC = {"static": ["172.20.5.10-172.20.5.12"]}
KINDS = (
    instance_state.CONFIG, instance_state.SNAPSHOT, instance_state.DEPLOYMENT, instance_state.INSTANCE,
    instance_state.ORPHAN, COMPILE, VM, ALL_VMS,
)  # fmt: skip
SWAP: dict[str, Any] = {"update": {"vm_strategy": "create-swap-delete"}}


def cloud(**subnet: Any) -> str:
    """Write the cloud config: workers compile on ``lab``, too."""
    return config(lab(**STATIC, **subnet), compilation={"network": "lab", "workers": 2})


def alpha(*groups: Document, a: int, b: int) -> str:
    """Write the deployment that goes through most: two groups on static addresses, and others."""
    fixed = [app(name=name, static_ips=[f"172.20.5.{tail}"]) for name, tail in (("a", a), ("b", b))]
    return manifest("alpha", *groups, *fixed)


FIRST = alpha(app(2), a=10, b=11)
MOVED = alpha(app(2), app(name="new"), a=10, b=11)
SWAPPED = alpha(app(2), a=11, b=10)
SMALLER = alpha(app(1), a=11, b=10)
BETA = manifest("beta", app(**SWAP), app(name="smoke", lifecycle="errand"))


def uploaded(text: str) -> Step:
    """Put a cloud config in force."""
    return lambda door: door.upload_config(text)


def applied(text: str, **said: Any) -> Step:
    """Deploy."""
    return lambda door: door.apply(text, **said)


def reported(verb: str, deployment: str, instance: str, **said: Any) -> Step:
    """Report something of an instance."""
    return lambda door: getattr(door, verb)(deployment, instance, **said)


def made(deployment: str, instance: str, vm: str) -> Step:
    """Report a VM."""
    return reported("commit", deployment, instance, vm=vm)


async def plan_of(door: Deployments, deployment: str) -> str | None:
    """Find the plan that instances of a deployment wait for, if there is one."""
    return next((each.plan for each in await door.instances(deployment) if each.plan is not None), None)


async def aborted(door: Deployments) -> None:
    """Take back the plan that alpha waits for."""
    plan = await plan_of(door, "alpha")
    if plan is not None:
        await door.abort("alpha", plan)


async def begun(door: Deployments) -> None:
    """Reserve for workers."""
    await door.begin_compiling("beta", await plan_of(door, "beta"))


async def checked(door: Deployments) -> None:
    """Find the VM that is missing, and let its instance wait for another."""
    vms = {each.vm for each in await door.instances("alpha") if each.vm is not None}
    for missing in await door.check("alpha", vms - {"vm-6"}):
        await door.recreate_missing("alpha", missing.instance.name, vm=missing.vm)


async def gone(door: Deployments) -> None:
    """Report that a VM is gone; whoever left with it is not known any more."""
    with suppress(NotFound):
        await door.lose("alpha", "app/1")


async def cleaned_up(door: Deployments) -> None:
    """Report that the VM that was swapped is deleted."""
    await door.clean_up_orphan("vm-b1")


async def deleted(door: Deployments) -> None:
    """Let beta go; what is gone already is gone."""
    with suppress(NotFound):
        for left in await door.delete("beta"):
            await door.lose("beta", left.name)
        await door.delete("beta")


STEPS: dict[str, Step] = {
    "upload-config": uploaded(cloud()),
    "apply": applied(FIRST),
    "commit app/0": made("alpha", "app/0", "vm-1"),
    "commit app/1": made("alpha", "app/1", "vm-2"),
    "commit a/0": made("alpha", "a/0", "vm-3"),
    "commit b/0": made("alpha", "b/0", "vm-4"),
    "another upload-config": uploaded(cloud(reserved=["172.20.5.2"])),
    "apply what moves": applied(MOVED),
    "fail": reported("fail", "alpha", "app/0"),
    "abort": aborted,
    "apply with hand-over": applied(SWAPPED, hand_over=True),
    "commit who moved": made("alpha", "app/0", "vm-5"),
    "lose who hands over": reported("lose", "alpha", "a/0"),
    "commit who got it": made("alpha", "b/0", "vm-6"),
    "commit who got the other": made("alpha", "a/0", "vm-7"),
    "stop": reported("stop", "alpha", "app/0"),
    "stop --hard": reported("stop", "alpha", "app/1", hard=True),
    "start": reported("start", "alpha", "app/1"),
    "commit who started": made("alpha", "app/1", "vm-8"),
    "recreate": lambda door: door.recreate("alpha", "a/0"),
    "commit who was recreated": made("alpha", "a/0", "vm-9"),
    "cck": checked,
    "commit who was missing": made("alpha", "b/0", "vm-10"),
    "apply less": applied(SMALLER),
    "lose who leaves": gone,
    "apply beta": applied(BETA),
    "compile": begun,
    "commit-worker": lambda door: door.commit_worker("beta", None, 0, vm="vm-worker"),
    "end-compile": lambda door: door.end_compiling("beta"),
    "commit beta": made("beta", "app/0", "vm-b1"),
    "recreate beside": applied(BETA, recreate=True),
    "commit beside": made("beta", "app/0", "vm-b2"),
    "cleanup-orphans": cleaned_up,
    "run-errand": lambda door: door.run_errand("beta", "smoke"),
    "commit who runs": made("beta", "smoke/0", "vm-smoke"),
    "end-errand": lambda door: door.end_errand("beta", "smoke"),
    "run-errand again": lambda door: door.run_errand("beta", "smoke"),
    "delete": deleted,
    "apply beta again": applied(BETA),
}


async def standing(url: str) -> dict[str, Any]:
    """Return how everything stands: who holds what and how, what is written down, and whether the ledger is sound."""
    async with await tenure.open_async(url) as ledger:
        door = Deployments(ledger)
        known = {each.uuid: each for name in ("alpha", "beta") for each in await door.instances(name)}
        names = {each.uuid: f"{each.deployment}/{each.group}/{each.index}" for each in known.values()}
        return {
            "held": sorted(
                (names.get(held.owner.id, held.owner), held.address, held.state, held.carrier,
                 held.plan is not None, sorted(held.labels))
                for held in await ledger.holdings("lab")
            ),
            "instances": sorted(
                (each.deployment, each.group, each.index, each.state, each.vm, each.plan is not None, each.failed,
                 each.swaps, [(made.addresses, made.then) for made in each.earlier], each.leaving,
                 [wait["address"] for wait in each.waits])
                for each in known.values()
            ),
            "deployments": [
                (each.name, each.manifest, each.snapshot, each.plan is not None, each.undo and each.undo["manifest"])
                for each in await instance_state.load_deployments(ledger)
            ],
            "papers": Counter({kind: len(await ledger.papers(kind)) for kind in KINDS}),
            "breaches": await ledger.verify(),
        }  # fmt: skip
