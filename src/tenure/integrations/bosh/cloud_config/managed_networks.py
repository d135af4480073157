"""Managed networks: subnets that are made in the cloud when the first deployment needs them.

They are made once for all deployments. When the last one is deleted a network is an orphan: it stays there, is taken
into use again by whoever names it, and can be deleted. The cloud is asked outside of any ``apply``, so everything that
it made is written down at once: whoever breaks off leaves a paper that says what there is, and the next one goes on.
"""

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from tenure.integrations.bosh.cloud_config.configs import lay_out, load_configs
from tenure.integrations.bosh.cloud_config.ledger_networks import SPACE
from tenure.integrations.bosh.cloud_config.legacy_deployments import load_mode, turned
from tenure.integrations.bosh.documents.manifest import read_manifest
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.model.document_model import CloudConfig, CloudNetwork, CloudSubnet, Manifest, Properties
from tenure.integrations.bosh.model.retry import Again, Turn, until_done
from tenure.integrations.bosh.state.managed_records import (
    CREATING,
    DELETING,
    READY,
    CreatedSubnet,
    Managed,
    as_created,
    completed,
    find_managed,
    load_managed,
)
from tenure.kernel.addressing.addresses import format_address, is_v6, parse_address, width
from tenure.kernel.addressing.ranges import parse_cidr, parse_range
from tenure.kernel.errors import Conflict, Invalid, NotFound, StillInUse
from tenure.kernel.names import check_name, shown
from tenure.service.ledger.async_ledger import AsyncLedger

PATIENCE_S = 60.0
"""So long nothing may be heard of whoever is at work on a network, before another goes on in his place."""

POLL_S = 0.25
SHOWN = 4


@dataclass(frozen=True, slots=True)
class WantedSubnet:
    """A subnet that the cloud is to make; where no range is named it chooses one, of ``netmask_bits``."""

    network: str
    name: str
    range: str | None = None
    gateway: str | None = None
    netmask_bits: int | None = None
    azs: tuple[str, ...] = ()
    dns: tuple[str, ...] = ()
    cloud_properties: Properties = field(default_factory=dict)


class Cloud(Protocol):
    """What a cloud does for managed networks. What it raises is passed on to whoever deploys."""

    async def create_subnet(self, wanted: WantedSubnet) -> CreatedSubnet:
        """Make a subnet. Asked again for one that is there (somebody broke off), it should answer with that one."""
        ...

    async def delete_subnet(self, cid: str) -> None:
        """Delete a subnet; one that is not there is deleted."""
        ...


def managed_networks(manifest: Manifest, config: CloudConfig) -> list[str]:
    """Name the managed networks that a manifest needs: its groups', and the one to compile on."""
    names = [each.name for group in manifest.groups for each in group.networks]
    names += [] if config.compilation is None else [config.compilation.network]
    return [name for name in dict.fromkeys(names) if config.networks[name].managed]


async def prepare(
    ledger: AsyncLedger, cloud: Cloud, document: str, text: str, *, space: str = SPACE, patience_s: float = PATIENCE_S
) -> None:
    """Make the managed networks that a manifest needs, as far as they are not there."""
    configs = await load_configs(ledger)
    if configs is None:
        return
    manifest = read_manifest(document, text, configs.config)
    for name in managed_networks(manifest, configs.config):
        await _Making(ledger, cloud, space, patience_s).make(name)


async def delete_network(
    ledger: AsyncLedger, cloud: Cloud, name: str, *, space: str = SPACE, patience_s: float = PATIENCE_S
) -> None:
    """Delete a managed network that no deployment uses."""
    await _Making(ledger, cloud, space, patience_s).delete(check_name(name, field="network"))


@dataclass(slots=True)
class _Making:
    """One who makes networks, or deletes them."""

    ledger: AsyncLedger
    cloud: Cloud
    space: str
    patience_s: float
    me: str = field(default_factory=lambda: secrets.token_hex(8))

    async def make(self, name: str) -> None:
        """Make what is missing of a network; wait for whoever is at work on it."""
        while True:
            known = await find_managed(self.ledger, name)
            network = (await self._as_written()).networks.get(name)
            # If the network left the cloud config meanwhile, the deploy itself reports that.
            if network is None or _is_whole(network, known):
                break
            if known is None or known.state == READY or await self._is_silent(known):
                claimed = await self._claim(known or Managed(name), CREATING)
                if claimed is not None:
                    await self._create(network, claimed, set() if known is None else set(known.subnets))
                    break

    async def delete(self, name: str) -> None:
        """Delete a network that nobody uses, subnet by subnet; wait for whoever is at work on it."""
        while True:
            known = await find_managed(self.ledger, name)
            if known is None:
                raise NotFound("managed network", name)
            if known.deployments:
                raise StillInUse("managed network", name, list(known.deployments), hint="delete these deployments")
            await self._check_unheld(name)
            if known.state == READY or await self._is_silent(known):
                claimed = await self._claim(known, DELETING)
                if claimed is not None:
                    await self._delete(claimed)
                    break

    async def _check_unheld(self, name: str) -> None:
        """Refuse to delete a network while anybody is in it: orphaned VMs stay longer than their deployments."""
        with suppress(NotFound):  # in no cloud config any more
            held = await self.ledger.holdings(name, limit=SHOWN)
            if held:
                raise StillInUse("managed network", name, [str(each) for each in held], hint="clean them up first")

    async def _as_written(self) -> CloudConfig:
        configs = await load_configs(self.ledger)
        return CloudConfig() if configs is None else configs.written

    async def _is_silent(self, known: Managed) -> bool:
        """Wait for whoever is at work on a network; tell whether nothing was heard of him for too long."""
        waited_s = 0.0
        while waited_s < self.patience_s:
            await asyncio.sleep(POLL_S)
            waited_s += POLL_S
            now = await find_managed(self.ledger, known.name)
            # Each subnet that is made writes the paper: while its revision stands still, nothing is heard of the maker.
            if now is None or now.revision != known.revision:
                return False
        return True

    async def _claim(self, known: Managed, state: str) -> Managed | None:
        """Begin to work on a network; None if somebody else did."""
        try:
            return await self._write(replace(known, state=state, by=self.me))
        except (Conflict, NotFound):
            return None

    async def _write(self, managed: Managed) -> Managed:
        await self.ledger.apply([managed.written()])
        # apply raises a revision by one, so the paper need not be read again.
        return replace(managed, revision=managed.revision + 1)

    async def _create(self, network: CloudNetwork, claimed: Managed, had: set[str]) -> None:
        """Make the missing subnets, each written down; if one fails, all that were made now are deleted again."""
        try:
            for subnet in _missing(network, claimed):
                made = await self.cloud.create_subnet(_wanted(network, subnet))
                _check_name(network, subnet, made, claimed)
                # Noted before the rest is checked: the cloud has the subnet, and _undo deletes it if it is unusable.
                claimed = replace(claimed, subnets={**claimed.subnets, subnet.name or "": made})
                _check(network, subnet, made)
                _check_beside(network, subnet, claimed)
                claimed = await self._write(claimed)
            await self._finish(claimed)
        except BaseException as error:
            # A cancelled deploy leaves nothing behind in the cloud, either.
            with _beside(error, claimed):
                await self._undo(claimed, had, error)
            raise

    async def _delete(self, claimed: Managed) -> None:
        try:
            for name, subnet in claimed.subnets.items():
                await self.cloud.delete_subnet(subnet.cid)
                # Noted before it is written: the cloud has the subnet no more, whatever becomes of the writing.
                claimed = replace(claimed, subnets=_without(claimed, name))
                claimed = await self._write(claimed)
            await self._finish(claimed)
        except BaseException as error:
            with _beside(error, claimed):
                now = await self._is_mine(claimed)
                if now is not None:
                    await self._write(replace(claimed, state=READY, by="", revision=now.revision))
            raise

    async def _undo(self, claimed: Managed, had: set[str], error: BaseException) -> None:
        """Delete what was made; what cannot be deleted stays written down. Whoever took over goes on with it."""
        now = await self._is_mine(claimed)
        if now is None:
            return
        for name in [each for each in reversed(list(claimed.subnets)) if each not in had]:
            try:
                await self.cloud.delete_subnet(claimed.subnets[name].cid)
            except Exception as another:
                error.add_note(f"subnet {name!r} of network {claimed.name!r} could not be deleted: {another}")
                # Only the cid stays: an unusable range must not get into the networks of the ledger.
                claimed = replace(claimed, subnets={**claimed.subnets, name: _bare(claimed.subnets[name])})
            else:
                claimed = replace(claimed, subnets=_without(claimed, name))
        await self._finish(replace(claimed, revision=now.revision))

    async def _is_mine(self, claimed: Managed) -> Managed | None:
        """Return a network as it is written down, if nobody took it over.

        After an error only its revision can be written over: a write that failed may have reached the ledger.
        """
        now = await find_managed(self.ledger, claimed.name)
        return now if now is not None and now.by == self.me else None

    async def _finish(self, claimed: Managed) -> None:
        """Let a network be ready with the subnets that it has, or be no more; the ledger gets what the cloud chose."""
        done = replace(claimed, state=READY, by="")

        async def attempt(turn: Turn) -> None:
            mode = await load_mode(self.ledger)  # before all else that is read: see ``turned``
            others = [each for name, each in (await load_managed(self.ledger)).items() if name != done.name]
            config = completed(await self._as_written(), [*others, done])
            paper = done.written() if done.subnets else done.removed()
            ground = await lay_out(self.ledger, config, self.space)
            try:
                with turn:
                    await self.ledger.apply([turned(mode), paper, *ground.operations])
            except Again as again:
                # If another maker took the network over, a further attempt would overwrite its work.
                if not await self._is_mine(claimed):
                    raise again.because from None
                raise

        await until_done(attempt)


@contextmanager
def _beside(error: BaseException, claimed: Managed) -> Iterator[None]:
    """Set right what an error left of a network; what fails in that is a note on the error, and does not replace it."""
    try:
        yield
    except Exception as another:
        error.add_note(f"network {claimed.name!r} stays {claimed.state}: {another}")


def _without(managed: Managed, name: str) -> dict[str, CreatedSubnet]:
    return {each: subnet for each, subnet in managed.subnets.items() if each != name}


def _bare(subnet: CreatedSubnet) -> CreatedSubnet:
    """Return a subnet of which nothing is known but that it is there."""
    return CreatedSubnet(subnet.cid)


def _is_whole(network: CloudNetwork, managed: Managed | None) -> bool:
    return managed is not None and managed.state == READY and not _missing(network, managed)


def _missing(network: CloudNetwork, managed: Managed) -> list[CloudSubnet]:
    """Return the subnets that are not there, or of which no range is known."""
    known = {name for name, each in managed.subnets.items() if each.range is not None}
    there = [subnet.name for subnet in network.subnets if subnet.name in managed.subnets and subnet.range is not None]
    return [subnet for subnet in network.subnets if subnet.name not in known.union(there)]


def _wanted(network: CloudNetwork, subnet: CloudSubnet) -> WantedSubnet:
    return WantedSubnet(
        network=network.name,
        name=subnet.name or "",
        range=None if subnet.range is None else str(subnet.range),
        gateway=None if subnet.gateway is None else format_address(subnet.gateway),
        netmask_bits=subnet.netmask_bits,
        azs=subnet.azs or (),
        dns=subnet.dns,
        cloud_properties=subnet.cloud_properties,
    )


def _check_name(network: CloudNetwork, subnet: CloudSubnet, created: object, known: Managed) -> None:
    """Refuse what could not even be deleted again: it has no name, or that of another subnet."""
    if not isinstance(created, CreatedSubnet):
        raise _unusable(network, subnet, f"a CreatedSubnet is needed, not {shown(created)}")
    try:
        check_name(created.cid, field="cid")
    except Invalid as error:
        raise _unusable(network, subnet, error.message) from error
    for name, each in known.subnets.items():
        if name != subnet.name and each.cid == created.cid:
            raise _unusable(network, subnet, f"cid {created.cid!r} is that of subnet {name!r}")


def _check_beside(network: CloudNetwork, subnet: CloudSubnet, known: Managed) -> None:
    """Refuse a range that a cloud config could not name beside the other subnets of its network."""
    whole = completed(CloudConfig(networks={network.name: network}), [known]).networks[network.name]
    ranges = {each.name: (each.range, each.prefix) for each in whole.subnets if each.range is not None}
    if subnet.name not in ranges:
        return
    range, prefix = ranges.pop(subnet.name)
    for name, (other, length) in ranges.items():
        if other.range.overlaps(range.range):
            raise _unusable(network, subnet, f"its range {range} overlaps subnet {name!r}, which is {other}")
        if (is_v6(other.first), length) != (is_v6(range.first), prefix):
            raise _unusable(network, subnet, f"{range} and subnet {name!r}, {other}, define different prefixes")


def _check(network: CloudNetwork, subnet: CloudSubnet, created: CreatedSubnet) -> None:
    """Refuse what cannot be worked with: a range must be known and fit, and what the cloud keeps must lie in it."""
    if subnet.range is not None and created.range is None:
        return
    try:
        cidr = parse_cidr(created.range or "")
        range = cidr.range
        gateway = [] if created.gateway is None else [parse_address(created.gateway)]
        inside = [
            *(place in range for place in gateway),
            *(range.covers(parse_range(each)) for each in created.reserved),
        ]
    except Invalid as error:
        raise _unusable(network, subnet, error.message) from error
    if not all(inside):
        raise _unusable(network, subnet, f"not everything that it keeps lies in {created.range}")
    prefix = as_created(subnet, created).prefix
    if not cidr.prefix <= prefix <= width(cidr.first):
        wrong = "longer than an address of" if prefix > width(cidr.first) else "shorter than that of"
        raise _unusable(network, subnet, f"prefix {prefix} is {wrong} its range {cidr}")


def _unusable(network: CloudNetwork, subnet: CloudSubnet, why: str) -> Refused:
    told = f"The cloud made subnet '{subnet.name}' of network '{network.name}' unusable"
    return Refused(BoshErrorKind.GENERIC, f"{told}: {why}")
