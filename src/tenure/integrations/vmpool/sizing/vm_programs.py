"""How VMs come and go when a pool grows and shrinks: by programs of the operator's, or by themselves."""

import asyncio
import functools
import ipaddress
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tenure.integrations.vmpool.machines.vm_program import ProgramEnd, run_program
from tenure.integrations.vmpool.pool_errors import BadArgument
from tenure.integrations.vmpool.state.argument_checks import check_count, check_seconds
from tenure.integrations.vmpool.state.ip_list import canonical_ip
from tenure.integrations.vmpool.state.sized_list import SizedList
from tenure.kernel.names import shown

PREFIX = "TENURE_VM_"
LOOKED_AT = 1 << 20
"""So many addresses of a prefix are looked at for one that is free."""


class ProgramFailed(Exception):
    """A program has not made or removed its VM; the message says why."""


@dataclass(frozen=True, slots=True)
class VMPrograms:
    """The programs of one decider; an empty one means that there is nothing to do for a VM.

    ``{pool}``, ``{request}`` and ``{ip}`` in their words are replaced, and stand in ``TENURE_VM_POOL`` and so on. A
    program is called again for the same request, or address, until it has ended with 0, also by another decider: it
    has to have made one VM then, or removed it.
    """

    make: Sequence[str] = ()
    """Makes a VM; where no prefix names its address, the last line that it prints is the address."""
    remove: Sequence[str] = ()
    """Removes the VM of an address, which no pod has any more."""
    timeout_s: float = 600.0
    at_once: int = 8

    def __post_init__(self) -> None:
        for name in ("make", "remove"):
            if isinstance(getattr(self, name), str):
                raise BadArgument(f"{name}: a program and its arguments are needed, not text", field=name)
        check_seconds(self.timeout_s, "timeout_s")
        check_count(self.at_once, "at_once", least=1)

    async def make_vm(self, pool: str, request: str, ip: str) -> str:
        """Make the VM of a request; return its address, or raise ``ProgramFailed``."""
        ended = await self._run(self.make, {"pool": pool, "request": request, "ip": ip})
        if ip:
            return ip
        found = canonical_ip(ended.last_line.strip())
        if found is None:
            raise ProgramFailed(f"{self.make[0]} did not print the address of its VM, but {shown(ended.last_line)}")
        return found

    async def remove_vm(self, pool: str, ip: str) -> None:
        """Remove the VM of an address, or raise ``ProgramFailed``."""
        if self.remove:
            await self._run(self.remove, {"pool": pool, "request": "", "ip": ip})

    async def _run(self, words: Sequence[str], fields: dict[str, str]) -> ProgramEnd:
        try:
            async with asyncio.timeout(self.timeout_s):
                ended = await run_program(words, fields, PREFIX)
        except TimeoutError:
            raise ProgramFailed(f"{words[0]} took longer than {self.timeout_s:g} s") from None
        except OSError as error:
            raise ProgramFailed(f"{words[0]} cannot be started: {error.strerror or error}") from None
        if ended.code:
            said = ended.last_error
            raise ProgramFailed(f"{words[0]} ended with {ended.code}{said and ': ' + said}")
        return ended


def free_addresses(prefix: str, sized: SizedList) -> Iterator[str]:
    """Give the addresses of a prefix that a pool does not know, in their order.

    Of IPv4, the network's own and the broadcast address are left out; those that retire, too: their VMs still run.
    """
    known = {*sized.ips, *sized.retiring, *(each.ip for each in sized.making.values())}
    hosts = map(functools.partial(str), ipaddress.ip_network(prefix).hosts())
    return (ip for ip in itertools.islice(hosts, LOOKED_AT) if ip not in known)
