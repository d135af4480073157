"""Whatever stands anywhere in a manifest: it is read, or refused with places; nothing else happens."""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.integrations.bosh.documents.manifest import read_manifest
from tenure.integrations.bosh.model.bosh_errors import Rejected
from tests.integrations.bosh.documents import configs
from tests.integrations.bosh.documents.manifests import WORKED, site

SHOP = site(configs.WORKED)
OWN = {**yaml.safe_load(configs.WORKED), **yaml.safe_load(WORKED)}

junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(),
    st.text("az19.:/- é", max_size=9),
    st.sampled_from(["apps", "public", "pubpool", "edge", "pods6", "z1", "10.0.0.0/8", "::/0", "10.44.17.11"]),
    st.lists(st.sampled_from(["apps", "z1", "10.44.16.11", "dns", 7, None]), max_size=3),
    st.just({}),
    st.just({"name": "apps"}),
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return all that can be replaced in a document: each with what holds it."""
    if not isinstance(value, dict | list):
        return []
    members = list(value.items() if isinstance(value, dict) else enumerate(value))
    return [(value, key) for key, _ in members] + [place for _, member in members for place in places(member)]


@pytest.mark.parametrize("own", [False, True])
@settings(max_examples=75, deadline=None)
@given(data=st.data())
def test_a_spoilt_manifest_is_read_or_refused_with_places(own: bool, data: st.DataObject) -> None:
    document = yaml.safe_load(yaml.safe_dump(OWN)) if own else yaml.safe_load(WORKED)
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(places(document)))
        holder[key] = data.draw(junk)

    try:
        read_manifest("shop.yml", yaml.safe_dump(document), None if own else SHOP)
        told = []
    except Rejected as error:
        told = [fault.place for fault in error.faults]

    assert None not in told


def test_the_documents_are_right_before_they_are_spoilt() -> None:
    shop = read_manifest("shop.yml", yaml.safe_dump(OWN), None)

    assert shop.own == SHOP
    assert shop.groups == read_manifest("shop.yml", WORKED, SHOP).groups
