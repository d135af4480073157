"""What is aimed: short plays in which a fault hits where chance seldom would. The rules judge them like the rest."""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Sequence

from tests.proof.fire.asking import Asker
from tests.proof.fire.attempts import Attempt, Row, Wish
from tests.proof.fire.fire_plan import ALONE, BATCH, CHILL, HOT, TWICE, fire_plan
from tests.proof.fire.stage import Stage

FROZEN_S = 24.0
"""Longer than any server may hold up the others, with the margin that the rule gives."""

PLAN = fire_plan()


class Player:
    """Plays acts, one after the other, each with owners of its own."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.asker: Asker = stage.asker("aim")
        self.chance: random.Random = self.asker.chance
        self._numbers = itertools.count(1)
        self._owners: list[str] = []

    def two_servers(self) -> tuple[int, int]:
        """Choose a server, and another one if there is one."""
        if self.stage.servers == 1:
            return 0, 0
        first, second = self.chance.sample(range(self.stage.servers), 2)
        return first, second

    def owner(self) -> str:
        """Return an owner whom nobody else asks for."""
        self._owners.append(f"vm/aim-{next(self._numbers)}x")
        return self._owners[-1]

    async def allocate(self, server: int, network: str, owner: str, *, wait_s: float = 0.0, **more: str) -> Attempt:
        """Ask for an address."""
        wish = Wish("grant", network, owner, more.get("address"), pool=None if "address" in more else network)
        return await self.asker.ask(server, "allocate", [wish], wait_s=wait_s)

    async def clear(self) -> None:
        """Give back all that the owners of an act hold."""
        owners, self._owners = self._owners, []
        for owner in owners:
            for server in range(self.stage.servers):
                attempt = await self.asker.ask(server, "release_owner", [Wish("release", None, owner)])
                if attempt.outcome == "done":
                    break


def _got(attempt: Attempt) -> Row | None:
    return attempt.acknowledged[0] if attempt.acknowledged else None


Act = Callable[[Player], Awaitable[None]]


async def hang_up_while_granted(player: Player) -> None:
    """Wait at one server, hang up while the grant is on its way, ask at another; then somebody else asks."""
    stage, (here, there) = player.stage, player.two_servers()
    holder, waiter, other = player.owner(), player.owner(), player.owner()
    await player.allocate(there, ALONE, holder)
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    wish = [Wish("grant", ALONE, waiter, pool=ALONE)]
    waiting = asyncio.create_task(player.asker.ask(here, "allocate", wish, wait_s=6.0, gone=gone))
    await asyncio.sleep(0.4)
    sprung = stage.proxy.set(here, "hold", 1.0, waiter, 4.0) if stage.base.proxy is not None else None
    await player.asker.ask(there, "release_owner", [Wish("release", None, holder)])
    if sprung is not None:
        await sprung
    else:
        await asyncio.sleep(player.chance.uniform(0, 0.06))
    gone.set_result(None)
    again = asyncio.create_task(player.allocate(there, ALONE, waiter, wait_s=3.0))
    await asyncio.gather(waiting, again)
    await player.allocate(there, ALONE, other, wait_s=2.0)


async def hang_up_behind_a_lock(player: Player) -> None:
    """Do the same while the database is locked from outside: both servers' turns wait for the lock."""
    stage, (here, there) = player.stage, player.two_servers()
    holder, waiter, other = player.owner(), player.owner(), player.owner()
    await player.allocate(there, ALONE, holder)
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    wish = [Wish("grant", ALONE, waiter, pool=ALONE)]
    waiting = asyncio.create_task(player.asker.ask(here, "allocate", wish, wait_s=6.0, gone=gone))
    await asyncio.sleep(0.4)
    await player.asker.ask(there, "release_owner", [Wish("release", None, holder)])
    with stage.excused("lock_of_space", None):
        locked = asyncio.Event()
        locking = asyncio.create_task(stage.base.lock(ALONE, 0.4, locked))
        await asyncio.sleep(0.2)
        gone.set_result(None)
        again = asyncio.create_task(player.allocate(there, ALONE, waiter, wait_s=3.0))
        await asyncio.gather(locking, waiting, again)
    await player.allocate(there, ALONE, other, wait_s=2.0)


async def _lost(player: Player, verb: str, wishes: Sequence[Wish], between: Callable[[int], Awaitable[object]]) -> None:
    """Ask one server, lose the answer behind the commit, and do something else before the server can ask again."""
    here, there = player.two_servers()
    sprung = player.stage.proxy.set(here, "lose", 0.7, wishes[0].owner, 3.0)
    asking = asyncio.create_task(player.asker.ask(here, verb, wishes))
    if await sprung:
        with player.stage.excused("answer_lost", here, 0.7):
            await between(there)
    await asking


async def _held(player: Player, *, pending: bool = False) -> Row | None:
    wish = Wish("grant", TWICE, player.owner(), pool=TWICE)
    return _got(await player.asker.ask(player.two_servers()[1], "hold" if pending else "allocate", [wish]))


async def release_twice_of_one_owner(player: Player) -> None:
    """Lose the answer of a release; meanwhile its owner is given the address again."""
    if (row := await _held(player)) is not None:
        wish = [Wish("release", TWICE, row.owner, row.address)]
        await _lost(player, "release", wish, lambda at: player.allocate(at, TWICE, row.owner, address=row.address))


async def release_twice_of_two_owners(player: Player) -> None:
    """Lose the answer of a release; meanwhile another owner is given the address."""
    if (row := await _held(player)) is not None:
        other, wish = player.owner(), [Wish("release", TWICE, row.owner, row.address)]
        await _lost(player, "release", wish, lambda at: player.allocate(at, TWICE, other, address=row.address))


async def release_all_twice(player: Player) -> None:
    """Lose the answer of a release of all that an owner holds; meanwhile he is given an address again."""
    if (row := await _held(player)) is not None:
        wish = [Wish("release", None, row.owner)]
        await _lost(player, "release_owner", wish, lambda at: player.allocate(at, TWICE, row.owner))


async def apply_twice(player: Player) -> None:
    """Lose the answer of a release and a grant that are one; meanwhile the owner is given the address again."""
    if (row := await _held(player)) is not None:
        other = Wish("grant", TWICE, player.owner(), pool=TWICE)
        wishes = [Wish("release", TWICE, row.owner, row.address), other]
        await _lost(player, "apply", wishes, lambda at: player.allocate(at, TWICE, row.owner, address=row.address))


async def cancel_twice(player: Player) -> None:
    """Lose the answer of a cancel; meanwhile another owner is given the address."""
    if (row := await _held(player, pending=True)) is not None:
        other, wish = player.owner(), [Wish("cancel", TWICE, row.owner, row.address)]
        await _lost(player, "cancel", wish, lambda at: player.allocate(at, TWICE, other, address=row.address))


async def confirm_twice(player: Player) -> None:
    """Lose the answer of a confirm; meanwhile the owner gives the address back."""
    if (row := await _held(player, pending=True)) is not None:
        wish = [Wish("confirm", TWICE, row.owner, row.address)]
        release = [Wish("release", TWICE, row.owner, row.address)]
        await _lost(player, "confirm", wish, lambda at: player.asker.ask(at, "release", release))


async def transfer_twice(player: Player) -> None:
    """Lose the answer of a transfer; meanwhile the address is handed back."""
    if (row := await _held(player)) is not None:
        other = player.owner()
        wish = [Wish("transfer", TWICE, row.owner, row.address, to=other)]
        back = [Wish("transfer", TWICE, other, row.address, to=row.owner)]
        await _lost(player, "transfer", wish, lambda at: player.asker.ask(at, "transfer", back))


async def allocate_twice(player: Player) -> None:
    """Lose the answer of a grant; meanwhile the owner is shown it elsewhere and gives it back."""
    owner = player.owner()

    async def between(server: int) -> None:
        row = _got(await player.allocate(server, TWICE, owner))
        if row is not None:
            await player.asker.ask(server, "release", [Wish("release", TWICE, owner, row.address, row.generation)])

    await _lost(player, "allocate", [Wish("grant", TWICE, owner, pool=TWICE)], between)


async def batch_one_by_one(player: Player) -> None:
    """Let a batch run into a lock, so that it is repeated one by one; behind the first commit the database is gone."""
    stage, (here, _) = player.stage, player.two_servers()
    owners = [player.owner() for _ in range(4)]
    locked = asyncio.Event()
    with stage.excused("lock_of_space", None):
        locking = asyncio.create_task(stage.base.lock(BATCH, 0.5, locked))
        await asyncio.wait([asyncio.ensure_future(locked.wait()), locking], return_when=asyncio.FIRST_COMPLETED)
        sprung = stage.proxy.set(here, "part", 0.8, "vm/aim-", 3.0)
        wishes = [Wish("grant", BATCH, owner, pool=BATCH) for owner in owners]
        asking = [asyncio.create_task(player.asker.ask(here, "allocate_many", wishes, together=False))]
        asking += [asyncio.create_task(player.allocate(here, BATCH, player.owner())) for _ in range(3)]
        await asyncio.gather(locking, sprung, *asking)
        await asyncio.sleep(1.0)  # until the server finds its database again


async def lowest_behind_cooling(player: Player) -> None:
    """Give the lowest address back, wait until it has cooled off, and ask again."""
    here, there = player.two_servers()
    first = _got(await player.allocate(here, CHILL, player.owner()))
    await player.allocate(there, CHILL, player.owner())
    if first is not None:
        await player.asker.ask(there, "release", [Wish("release", CHILL, first.owner, first.address)])
        await asyncio.sleep(1.5)
        await player.allocate(here, CHILL, player.owner())


async def lowest_behind_a_deadline(player: Player) -> None:
    """Let a pending holding of the lowest address run out, and ask again."""
    here, there = player.two_servers()
    wish = Wish("grant", CHILL, player.owner(), pool=CHILL)
    await player.asker.ask(here, "hold", [wish], lasts_s=0.5)
    await asyncio.sleep(1.0)
    await player.allocate(there, CHILL, player.owner())


async def silent_in_a_transaction(player: Player) -> None:
    """Let a server fall silent while its transaction holds the log's counter; callers of the others go on asking."""
    stage, (here, _) = player.stage, player.two_servers()
    row = await _held(player)
    if row is None:
        return
    sprung = stage.proxy.set(here, "mute", FROZEN_S, row.owner, 4.0)
    wish = [Wish("transfer", TWICE, row.owner, row.address, to=player.owner())]
    asking = [asyncio.create_task(player.asker.ask(here, "transfer", wish))]
    if await sprung:
        with stage.excused("silent_in_transaction", here, FROZEN_S):
            others = [server for server in range(stage.servers) if server != here]
            for server in others:
                asking.append(asyncio.create_task(player.allocate(server, BATCH, player.owner())))
                asking.append(asyncio.create_task(player.allocate(server, HOT, player.owner(), address=_free(player))))
            await asyncio.gather(*asking)
    await asyncio.gather(*asking)


def _free(player: Player) -> str:
    return player.chance.choice(PLAN.order(HOT, "any"))


ANYWHERE: tuple[Act, ...] = (
    hang_up_while_granted, hang_up_behind_a_lock, lowest_behind_cooling, lowest_behind_a_deadline,
)  # fmt: skip
BEHIND_A_PROXY: tuple[Act, ...] = (
    *ANYWHERE, release_twice_of_one_owner, release_twice_of_two_owners, release_all_twice, apply_twice, cancel_twice,
    confirm_twice, transfer_twice, allocate_twice, batch_one_by_one,
)  # fmt: skip
LONG: Act = silent_in_a_transaction


async def play(player: Player, act: Act) -> None:
    """Play one act to its end, and clear up behind it."""
    player.stage.faults[f"act_{act.__name__}"] += 1
    await act(player)
    await player.clear()
