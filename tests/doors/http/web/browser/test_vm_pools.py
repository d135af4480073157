"""A pool of VMs that is kept in the ledger, on the page: nodes of a cluster and people look at the same addresses."""

import re

import pytest
from playwright.sync_api import expect

from tenure.integrations.vmpool.vm_pool import VMPool
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings
from tests.doors.http.web.browser.scene import Scene, cell

pytestmark = [pytest.mark.one_worker("web")]

NAME = "nodes"


def test_a_vm_that_a_node_takes_shows_at_once_and_what_is_released_there_is_free_for_the_next(scene: Scene) -> None:
    settings = VMPoolSettings(
        pool_ips=["10.60.0.10", "10.60.0.11"], config_map_name=NAME, node_name="node-1",
        pool_mode="ledger", pool_ledger=scene.url, pool_token=scene.token("nodes", "admin"),
    )  # fmt: skip
    with VMPool(settings) as pool:
        first = pool.allocate("sandbox-1", "web-0", "shop").ip
        with scene.visit(f"#/networks/{network_of(scene)}") as page:
            cell(page, first).hover()
            expect(page.locator(".hint-line")).to_contain_text("held by vm-pool/sandbox-1")
            second = pool.allocate("sandbox-2", "web-1", "shop").ip
            expect(cell(page, second)).to_have_class(re.compile("is-held"), timeout=5000)

            cell(page, first).click()
            expect(page.locator(".panel.address")).to_contain_text("vm-pool/sandbox-1")
            page.locator(".panel.address").get_by_role("button", name="Release").click()
            page.locator("dialog").get_by_role("button", name="Release", exact=True).click()
            expect(cell(page, first)).to_have_class(re.compile("is-free"))
        assert pool.get("sandbox-1") is None
        assert pool.allocate("sandbox-3").ip == first


def network_of(scene: Scene) -> str:
    """Return the network in which the pool is."""
    (name,) = (each["name"] for each in scene.ask("GET", "/networks")["items"] if NAME in each["name"])
    return str(name)
