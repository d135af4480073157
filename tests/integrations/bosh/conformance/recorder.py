"""A cloud for managed networks that only records what it is asked."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from tenure.integrations.bosh.cloud_config.managed_networks import WantedSubnet
from tenure.integrations.bosh.state.managed_records import CreatedSubnet
from tests.integrations.bosh.conformance.town import Document, config

FIRST = {"name": "s1", "range": "10.60.1.0/28", "gateway": "10.60.1.1"}
SECOND = {"name": "s2", "range": "10.60.2.0/28", "gateway": "10.60.2.1"}


def managed_config(*subnets: Document) -> str:
    """Write a cloud config with ``lab``, and the managed network ``made``."""
    return config(more=[{"name": "made", "type": "manual", "managed": True, "subnets": list(subnets)}])


@dataclass
class Recorder:
    """A cloud that records what it is asked; it fails where it is told to."""

    asked: list[str] = field(default_factory=list)
    fails: frozenset[str] = frozenset()
    chosen: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    """What it answers, whole, for some subnets by name."""
    takes_s: float = 0
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def create_subnet(self, wanted: WantedSubnet) -> CreatedSubnet:
        self.asked.append(f"create {wanted.name} {wanted.range or wanted.netmask_bits}")
        self.begun.set()
        await asyncio.sleep(self.takes_s)
        if f"create {wanted.name}" in self.fails:
            raise RuntimeError(f"no room for {wanted.name}")
        if wanted.name in self.answers:
            answer: CreatedSubnet = self.answers[wanted.name]
            return answer
        return CreatedSubnet(f"cid-{wanted.name}", **self.chosen)

    async def delete_subnet(self, cid: str) -> None:
        self.asked.append(f"delete {cid}")
        if f"delete {cid}" in self.fails:
            raise RuntimeError(f"{cid} is stuck")
