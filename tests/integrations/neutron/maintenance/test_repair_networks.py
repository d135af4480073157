"""Networks of a ledger that are removed by maintenance: what others got in them since the look is not taken away."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import orm

import tenure
from tenure.kernel.errors import StillInUse
from tests.integrations.neutron.local_site import REALM, LocalSite, RacingReach, local_site

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what Neutron imports is deprecated in places
    from tenure.integrations.neutron.database import subnet_records
    from tenure.integrations.neutron.maintenance.repair_networks import NetworkRepair

GUEST = "instance/guest"


@dataclass
class OneDatabase:
    """The database of a site, as maintenance opens it."""

    site: LocalSite

    @contextmanager
    def writing(self, *, keep: bool = True) -> Iterator[Any]:
        with orm.Session(self.site.engine) as session:
            yield session
            session.rollback()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[LocalSite]:
    with local_site(tmp_path) as made:
        yield made


def repair(site: LocalSite, **named: Any) -> NetworkRepair:
    """Give a repair during which a guest comes once holdings were read."""

    async def come(ledger: tenure.AsyncLedger) -> None:
        await ledger.allocate(site.network, owner=GUEST, address="10.0.0.5")

    found = NetworkRepair(RacingReach(site.reach, come), REALM, **named)  # type: ignore[arg-type]
    found.read()
    return found


def record(site: LocalSite, **fields: Any) -> None:
    """Change the record of the subnet by hand, or take it away."""
    with orm.Session(site.engine) as session, session.begin():
        subnet_records.remove(session, site.subnet)
        if fields:
            subnet_records.put(session, replace(site.subnet, **fields))


def test_a_network_of_no_subnet_is_left_to_a_guest_who_comes_after_the_look(site: LocalSite) -> None:
    site.ledger.allocate(site.network, owner=f"{REALM}:port/a", address="10.0.0.2")
    record(site)

    [drift] = repair(site).remove(OneDatabase(site), site.subnet.id, dry=False)  # type: ignore[arg-type]

    assert (drift.kind, drift.repairable) == ("network-extra", False)
    assert drift.text.endswith("stands for no subnet, and instance/guest holds 10.0.0.5 in it")
    assert site.held()["10.0.0.5"] == "held"


def test_a_network_is_not_moved_from_under_a_guest_who_comes_after_the_look(site: LocalSite) -> None:
    site.ledger.allocate(site.network, owner=f"{REALM}:port/a", address="10.0.0.2")
    record(site, space="shared")

    with pytest.raises(StillInUse, match="instance/guest"):
        repair(site, moving=True).repair(OneDatabase(site), site.subnet.id, dry=False)  # type: ignore[arg-type]

    assert site.held()["10.0.0.5"] == "held"
