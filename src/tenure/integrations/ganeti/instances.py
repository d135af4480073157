"""Instances as this door's commands change them, with the hooks that run before and after."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tenure.integrations.ganeti.hook_environment import Variables, instance_variables, job_variables, moving_variables
from tenure.integrations.ganeti.hooks import POST, PRE, Hooking, HookResult, count_hooks
from tenure.integrations.ganeti.instance.job import Job
from tenure.integrations.ganeti.instance.plan_instance import (
    InstanceOptions,
    MoveTarget,
    plan_add,
    plan_modify,
    plan_move,
    plan_remove,
    plan_rename,
)
from tenure.integrations.ganeti.instance_records import load_instance, load_instances
from tenure.integrations.ganeti.machine_model import MAC, Instance
from tenure.integrations.ganeti.network_lookup import ATTEMPTS, NetworkLookup
from tenure.integrations.ganeti.options.option_errors import blame
from tenure.kernel.errors import AddressCovered, AlreadyExists, PoolExhausted, TenureError
from tenure.kernel.plan.plan_model import Network
from tenure.service.ledger.async_ledger import AsyncLedger

Plan = Callable[[], Awaitable[Job | None]]

GRACE_S = 15.0
"""How much longer than its hooks may take what an operation took stays pending."""

NEW_WORDS = {"instance-rename": ("INSTANCE_NEW_NAME", "name"), "instance-move": ("TARGET_NODE", "node")}
"""Operations of which Ganeti's hooks get the instance as it was: the variable with what it gets, and the field."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a command did to an instance, and how its hooks went."""

    instance: Instance
    changed: bool = True
    hooks: tuple[HookResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Instances:
    """The instances of a ledger."""

    ledger: AsyncLedger
    hooking: Hooking | None = None

    async def find(self, name: str) -> Instance:
        """Read one instance."""
        return await load_instance(self.ledger, name, NetworkLookup(self.ledger))

    async def every(self) -> list[Instance]:
        """Read all instances, in order of name."""
        return await load_instances(self.ledger, NetworkLookup(self.ledger))

    async def add(self, name: str, nets: Sequence[str], options: InstanceOptions) -> Done:
        """Add an instance with its NICs and their addresses, all or nothing.

        Without hooks: a few readings and one ``apply``; picking costs what ``allocate`` costs, however full the pool.
        """
        return await self._run("instance-add", name, nets, lambda: plan_add(self.ledger, name, nets, options))

    async def modify(self, name: str, nets: Sequence[str], options: InstanceOptions) -> Done:
        """Change an instance's NICs and their addresses, all or nothing."""
        return await self._run("instance-modify", name, nets, lambda: plan_modify(self.ledger, name, nets, options))

    async def rename(self, name: str, new: str) -> Done:
        """Give an instance another name; its uuid, NICs, MACs and addresses stay."""
        return await self._run("instance-rename", name, (), lambda: plan_rename(self.ledger, name, new))

    async def move(self, name: str, target: MoveTarget, *, check: bool = True) -> Done:
        """Move an instance to another node, with all its addresses; NICs take the links of that node's group."""
        return await self._run("instance-move", name, (), lambda: plan_move(self.ledger, name, target, check=check))

    async def remove(self, name: str) -> Done:
        """Remove an instance and give back all its addresses."""
        return await self._run("instance-remove", name, (), lambda: plan_remove(self.ledger, name))

    async def _run(self, operation: str, name: str, nets: Sequence[str], plan: Plan) -> Done:
        """Decide and do; afresh if the instance changed meanwhile and no hook has been told of it yet."""
        for left in reversed(range(ATTEMPTS)):
            job = await plan()
            if job is None:
                return Done(await self.find(name), changed=False)
            try:
                return await self._do(operation, job)
            except TenureError as error:
                # With hooks there is no second try: they may know of an instance that a new plan would change.
                if not _is_passing(error) or self.hooking is not None or not left:
                    if isinstance(error, PoolExhausted):
                        # It may be the instance itself that has the last address: its first answer was lost.
                        await job.check_name()
                    raise _blamed(error, job) from None
        raise AssertionError("the last attempt returns or raises")

    async def _do(self, operation: str, job: Job) -> Done:
        if self.hooking is None:
            await job.commit()
            return Done(job.instance)
        return await self._do_with_hooks(operation, job, self.hooking)

    async def _do_with_hooks(self, operation: str, job: Job, hooking: Hooking) -> Done:
        """Take what is wanted, ask the first hooks, do it, tell the second hooks, and let go of what was given back."""
        await job.check_name()
        # Read before anything is done: what fails behind the commit must not look as if nothing had been done.
        networks = {network.uuid: network for network in await self.ledger.networks()}
        # Without hooks in between nothing is ever pending: the commit takes everything in one apply.
        if count_hooks(hooking.directory, operation, PRE):
            await job.hold(lasts_s=hooking.longest(operation, PRE) + GRACE_S)
        try:
            before = await hooking.ask(operation, _variables(operation, job, networks, post=False))
            await job.commit(lingers_s=hooking.longest(operation, POST) + GRACE_S)
        # Also on Ctrl-C and cancellation: otherwise the addresses stay pending until their deadline.
        except BaseException:
            with suppress(TenureError):  # its deadline ends it anyway
                await job.fail()
            raise
        try:
            after = await hooking.report(operation, _variables(operation, job, networks, post=True))
        finally:
            with suppress(TenureError):  # what was done stands; what was given back is free when its time has passed
                await job.end()
        return Done(job.instance, hooks=(*before, *after))


def _variables(operation: str, job: Job, networks: Mapping[str, Network], *, post: bool) -> Variables:
    """Name what hooks are told: the instance as it was and as it will be."""
    before = None if job.before is None else instance_variables(job.before, networks)
    after = None if job.after is None else instance_variables(job.after, networks)
    if operation not in NEW_WORDS:
        return job_variables(before, after, post=post)
    word, field = NEW_WORDS[operation]
    return moving_variables({**(before or {}), word: getattr(job.instance, field)}, after or {}, post=post)


def _is_passing(error: TenureError) -> bool:
    """Return whether deciding afresh helps: the instance changed meanwhile, or a made-up MAC is somebody's."""
    return error.field == "revision" or (isinstance(error, AlreadyExists) and error.kind == MAC)


def _blamed(error: TenureError, job: Job) -> TenureError:
    """Let an error of the ledger name the option that asked for the address or pool."""
    address, pool = getattr(error, "address", None), getattr(error, "pool", None)
    if isinstance(error, AddressCovered) and error.address in job.said:
        return blame(error, "--net", job.said[error.address])
    for take in job.takes:
        if (address is not None and take.address == address) or (
            isinstance(error, PoolExhausted) and take.address is None and take.pool == pool
        ):
            return blame(error, "--net", take.option)
    return error
