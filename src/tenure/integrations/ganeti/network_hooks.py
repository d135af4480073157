"""The hooks of one operation on a network: what they are told, before and after."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tenure.integrations.ganeti.hook_environment import Variables, hook_variables, job_variables, network_variables
from tenure.integrations.ganeti.hooks import Hooking, HookResult
from tenure.kernel.plan.plan_model import Network

ADD, MODIFY, REMOVE, RENAME = "network-add", "network-modify", "network-remove", "network-rename"
CONNECT, DISCONNECT = "network-connect", "network-disconnect"


@dataclass(frozen=True, slots=True)
class NetworkHooks:
    """An operation, with the network as it was (None: new) and as it will be (None: gone).

    ``groups`` are those that a connection is made to or cut from: as in Ganeti, hooks run once for each of them.
    """

    hooking: Hooking
    operation: str
    before: Network | None
    after: Network | None
    groups: Sequence[str] = ()

    async def ask(self) -> list[HookResult]:
        """Run the hooks before the operation; HookFailed if one of them refuses it."""
        every = list(self._variables(post=False))
        return [result for each in every for result in await self.hooking.ask(self.operation, each)]

    async def report(self) -> list[HookResult]:
        """Run the hooks after the operation."""
        every = list(self._variables(post=True))
        return [result for each in every for result in await self.hooking.report(self.operation, each)]

    def _variables(self, *, post: bool) -> Iterator[Variables]:
        before = None if self.before is None else network_variables(self.before)
        after = None if self.after is None else network_variables(self.after)
        now = after if post else None
        if self.operation in (CONNECT, DISCONNECT):
            for group in self.groups:
                yield hook_variables({**(before or {}), **self._group_variables(group)}, now)
        elif self.operation == RENAME and before is not None and after is not None:
            names = {"OLD_NAME": before["NETWORK_NAME"], "NEW_NAME": after["NETWORK_NAME"]}
            yield hook_variables({**before, **names}, now)
        else:
            yield job_variables(before, after, post=post)

    def _group_variables(self, group: str) -> Variables:
        """Name a group, and how the network reaches it; of a connection that is cut, how it did."""
        network = self.after if self.operation == CONNECT else self.before
        wires = None if network is None else network.connection(group)
        assert wires is not None
        said = {"MODE": wires.mode, "LINK": wires.link, "VLAN": wires.vlan}
        return {"GROUP_NAME": group, **{f"GROUP_NETWORK_{word}": value for word, value in said.items() if value}}
