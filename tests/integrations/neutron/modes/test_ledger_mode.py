"""The mode in which a ledger decides: whatever a statement of Neutron's database does, no holding is forgotten."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from oslo_db import exception as db_exc
from sqlalchemy import orm

from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.errors import AddressReserved
from tests.integrations.neutron.local_site import ANY, OWNER, REALM, LocalSite, local_site

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what Neutron imports is deprecated in places
    from tenure.integrations.neutron.address_requests import WantedAddress
    from tenure.integrations.neutron.database import subnet_records


@pytest.fixture
def site(tmp_path: Path) -> Iterator[LocalSite]:
    with local_site(tmp_path) as made:
        yield made


def test_an_address_is_pending_until_the_transaction_ends(site: LocalSite) -> None:
    with orm.Session(site.engine) as session, session.begin():
        site.keeper.allocate(session, site.subnet, ANY)
        before = site.held()

    assert list(before.values()) == ["pending"]
    assert list(site.held().values()) == ["held"]


def test_an_address_whose_row_could_not_be_written_is_cancelled_with_its_transaction(site: LocalSite) -> None:
    with orm.Session(site.engine) as session:
        with site.deadlock_at("INSERT INTO tenure_allocations"), pytest.raises(db_exc.DBDeadlock):
            site.keeper.allocate(session, site.subnet, ANY)
        session.rollback()

    assert (site.held(), site.rows()) == ({}, 0)


def test_an_address_whose_row_could_not_be_written_is_cancelled_though_the_transaction_is_committed(
    site: LocalSite,
) -> None:
    """A statement may fail alone, as after a lock that was waited for too long, and its error may be handled."""
    with orm.Session(site.engine) as session, session.begin():
        with site.deadlock_at("INSERT INTO tenure_allocations"), pytest.raises(db_exc.DBDeadlock):
            site.keeper.allocate(session, site.subnet, ANY)
        site.keeper.allocate(session, site.subnet, ANY)

    assert (list(site.held().values()), site.rows()) == (["held"], 1)


def test_an_address_that_was_adopted_is_cancelled_if_its_row_could_not_be_written(site: LocalSite) -> None:
    site.ledger.hold(site.network, owner=f"{REALM}:{OWNER}", slot="0", request="an earlier one")
    with orm.Session(site.engine) as session:
        with site.deadlock_at("UPDATE tenure_allocations"), pytest.raises(db_exc.DBDeadlock):
            site.keeper.allocate(session, site.subnet, ANY)
        session.rollback()

    assert (site.held(), site.rows()) == ({}, 0)


def test_the_gateway_is_for_a_port_that_names_it(site: LocalSite) -> None:
    with orm.Session(site.engine) as session, session.begin():
        site.keeper.allocate(session, site.subnet, WantedAddress(OWNER, parse_address("10.0.0.1")))

    assert site.held() == {"10.0.0.1": "held"}


@pytest.mark.parametrize("address", ["10.0.0.1", "10.0.0.4"])
def test_what_somebody_reserved_is_for_no_port_whatever_its_reason_says(tmp_path: Path, address: str) -> None:
    with local_site(tmp_path, gateway=None) as site:
        site.ledger.reserve(site.network, address, reason="kept back as the gateway")
        ported = replace(site.subnet, gateway_ip="10.0.0.1")
        with orm.Session(site.engine) as session, session.begin():
            subnet_records.change(session, ported)
            with pytest.raises(AddressReserved):
                site.keeper.allocate(session, ported, WantedAddress(OWNER, parse_address(address)))

        assert site.held() == {}
