"""What operators do with the list of a pool: add addresses, let them retire, say when the pool grows and shrinks.

The first change makes the list, from the addresses that the caller's settings name; from then on it counts before
those of every process. While a pool is moved to another mode its list stays as it is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.vmpool.modes.pool_lease import while_alone
from tenure.integrations.vmpool.modes.pool_places import PoolPlaces
from tenure.integrations.vmpool.pool_changes import now
from tenure.integrations.vmpool.pool_decisions import PoolFilling, decide_hold_back
from tenure.integrations.vmpool.pool_document import Decide
from tenure.integrations.vmpool.pool_errors import NO_POOL_IPS
from tenure.integrations.vmpool.pool_log import PoolEvent, audit
from tenure.integrations.vmpool.pool_metrics import PoolMeter
from tenure.integrations.vmpool.state.ip_list import MOST_IPS, check_ip
from tenure.integrations.vmpool.state.size_policy import SizePolicy
from tenure.integrations.vmpool.state.sized_list import SizedList
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings
from tenure.kernel.errors import Conflict, Invalid

T = TypeVar("T")

NEEDS_CLUSTER = "a pool's list is kept in the cluster, also of one in a ledger: name a kubeconfig"


class SizablePool(Protocol):
    """What a pool must be able to for its size to be changed; ``AsyncVMPool`` is one."""

    settings: VMPoolSettings
    client: ApiClient | None
    places: PoolPlaces
    meter: PoolMeter | None

    async def change(self, operation: str, decide: Decide[T], *, about: Mapping[str, object] | None = None) -> T:
        """Decide on the pool as it is, and write what has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeRequest:
    """What is to be changed; checked at birth."""

    add: Sequence[str] = ()
    remove: Sequence[str] = ()
    policy: SizePolicy | None = None
    """When the pool grows and shrinks from now on; none: as it was."""
    stops: bool = False
    """Whether the pool is to keep its size from now on."""

    def __post_init__(self) -> None:
        for name in ("add", "remove"):
            if isinstance(getattr(self, name), str):
                raise Invalid(f"{name}: a list of addresses is needed, not text", field=name)
        object.__setattr__(self, "add", tuple(check_ip(ip, field="add") for ip in self.add))
        object.__setattr__(self, "remove", tuple(check_ip(ip, field="remove") for ip in self.remove))
        if both := set(self.add) & set(self.remove):
            raise Invalid(f"remove: {min(both)} cannot be added and removed at once", field="remove")
        if self.policy is not None and self.stops:
            raise Invalid("stops: a policy cannot begin and end at once", field="stops")
        if not (self.add or self.remove or self.policy is not None or self.stops):
            raise Invalid("add: nothing is to be changed: name addresses or watermarks", field="add")


async def resize_pool(pool: SizablePool, request: ResizeRequest) -> SizedList:
    """Change the list of a pool; return what it is then. What leaves it is held back at once, or when it is released.

    So no decider is needed for that, whatever list other processes know.
    """
    begin = SizedList(pool.settings.line.ips)
    sized = await change_list(pool.places, lambda found: _resized(found or begin, request))
    audit(
        PoolEvent.RESIZED, pool=pool.settings.config_map_name, size=len(sized.ips), generation=sized.generation,
        added=len(request.add), retiring=len(sized.retiring),
    )  # fmt: skip
    if request.add or request.remove:
        await hold_back(pool, sized)
    return sized


async def hold_back(pool: SizablePool, sized: SizedList) -> PoolFilling:
    """Hold back what retires and is free, and let go of what is in the pool again; return what is free."""
    line, leaving = pool.settings.line, frozenset(sized.retiring)
    return await pool.change("resize", lambda document: decide_hold_back(document, line, leaving, now()))


async def change_list(
    places: PoolPlaces, decide: Callable[[SizedList | None], SizedList], check: Callable[[], None] = lambda: None
) -> SizedList:
    """Decide on the list of a pool and write it, while no process moves the pool; every process follows.

    ``check`` raises if this process must not write any more.
    """
    follower = places.follower
    if follower is None:
        raise Invalid(NEEDS_CLUSTER, field="client")

    def both() -> None:
        check()
        places.check()

    async def work() -> SizedList:
        notes = await places.home.stored_notes()
        if notes.placement is not None and notes.placement.moves_to:
            to = notes.placement.moves_to
            raise Conflict(f"the pool is being moved to {to!r}: its list is changed when that has ended")
        return await follower.lists.change(decide, after=notes.list_generation, check=both)

    sized = await while_alone(places, work)
    follower.line.follow(sized.ips, sized.generation)
    # Behind the list: notes that name a list which is not there stop every process that begins.
    await places.home.note_list(sized.generation)
    return sized


def _resized(sized: SizedList, request: ResizeRequest) -> SizedList:
    for ip in request.add:
        if (work := sized.retiring.get(ip)) is not None and work.is_begun:
            raise Conflict(f"add: {ip} is being removed; add it when that has ended", field="add")
    for ip in request.remove:
        if ip not in sized.ips and ip not in sized.retiring:
            raise Invalid(f"remove: {ip} is not in the pool", field="remove")
    changed = sized.added(request.add).retired(request.remove, now())
    if not changed.ips:
        raise Invalid(f"remove: {NO_POOL_IPS}", field="remove")
    if len(changed.ips) > MOST_IPS:
        raise Invalid(f"add: a pool has at most {MOST_IPS} addresses", field="add")
    if request.policy is not None or request.stops:
        changed = replace(changed, policy=request.policy, problem="")
    return changed
