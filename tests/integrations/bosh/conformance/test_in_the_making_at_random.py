"""VMs that are made slowly while anything else happens: nobody else gets what one may come up on, nothing is left."""

import pytest

from tests.integrations.bosh.conformance.maker import live
from tests.integrations.bosh.conformance.town import Town


@pytest.mark.sampled
@pytest.mark.parametrize(
    "seed", [*range(10), 90237]
)  # the last met two VMs on one address, one of them waited for again
async def test_what_a_vm_may_come_up_on_is_its_instances(town: Town, seed: int) -> None:
    await live(town, seed, acts=60)
