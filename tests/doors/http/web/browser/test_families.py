"""IPv4 and IPv6 in a real browser: a pool that is full shows as full, whatever lies beside it."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.doors.http.web.browser.scene import Scene

pytestmark = pytest.mark.one_worker("web")


def plan_dual(scene: Scene, network: str, number: int) -> None:
    """Add a network whose IPv4 is all but gone beside a /64 in which little is held."""
    scene.plan(network, f"10.{number}.0.0/28", f"2001:db8:{number}::/64", four=f"10.{number}.0.2-10.{number}.0.5")
    six = {"range": f"2001:db8:{number}::/64", "name": "six"}
    scene.ask("POST", f"/networks/{network}/pools", six)
    for owner in range(4):
        scene.allocate(network, f"instance/{owner}", pool="four")
    scene.allocate(network, "instance/six", pool="six")


def rows(page: Page) -> list[str]:
    """Name the networks in the order of the list."""
    return [str(each.get_attribute("data-network")) for each in page.locator(".network").all()]


def test_a_full_ipv4_pool_beside_a_64_is_shown_as_full(scene: Scene) -> None:
    plan_dual(scene, "dual", 70)

    with scene.visit() as page:
        row = page.locator(".network[data-network=dual]")
        expect(row).to_contain_text("IPv4 100 % held 0 free")
        expect(row).to_contain_text(re.compile(r"IPv6 < 0\.1 % held 1\.8 × 10¹⁹ free"))
        expect(row.locator(".bar")).to_have_count(2)
        row.click()

        expect(page.locator(".summary").first).to_contain_text(
            "IPv4 100 % held – 4 held, 2 reserved or kept back, 0 free"
        )
        expect(page.locator(".summary").last).to_contain_text("IPv6 < 0.1 % held – 1 held")


def test_the_fullest_network_is_the_one_with_the_fullest_family(scene: Scene) -> None:
    plan_dual(scene, "spent", 71)
    scene.plan("half", "10.72.0.0/28", pool="10.72.0.2-10.72.0.5")
    for owner in range(2):
        scene.allocate("half", f"instance/{owner}")
    scene.plan("roomy", "10.73.0.0/24", pool="10.73.0.2-10.73.0.200")

    with scene.visit() as page:
        page.locator("#order").select_option("fullest")
        fullest = [name for name in rows(page) if name in ("spent", "half", "roomy")]
        page.locator("#order").select_option("free")
        freest = [name for name in rows(page) if name in ("spent", "half", "roomy")]

        assert (fullest, freest) == (["spent", "half", "roomy"], ["roomy", "half", "spent"])


def test_totals_keep_families_apart(scene: Scene) -> None:
    plan_dual(scene, "counted", 74)

    with scene.visit() as page:
        tiles = page.locator(".tile").all_inner_texts()

        names = [text.splitlines()[-1] for text in tiles]
        families = [
            f"{family} {what}"
            for family in ("IPv4", "IPv6")
            for what in ("held", "reserved or kept back", "free in pools")
        ]
        assert names == ["networks", *families, "waiting claims"]
        free = {text.splitlines()[-1]: text.splitlines()[0] for text in tiles}
        assert ("×" in free["IPv4 free in pools"], "×" in free["IPv6 free in pools"]) == (False, True)


def test_the_plot_shows_one_family_at_a_time(scene: Scene) -> None:
    plan_dual(scene, "plotted", 75)

    with scene.visit("#/networks/plotted") as page:
        expect(page.locator("svg.plot")).to_have_attribute("aria-label", "From 0 to 4 held of 4")
        page.locator("#plot-family").select_option("IPv6")

        expect(page.locator("svg.plot")).to_have_attribute("aria-label", "From 0 to 1 held of 1.8 × 10¹⁹")


SHARES = {
    "0, 10": "0 %",
    "10, 10": "100 %",
    "1, 2 ** 64": "< 0.1 %",
    "996, 1000": "99.6 %",
    "9996, 10000": "> 99.9 %",
    "4, 1000": "0.4 %",
    "1, 2": "50 %",
}


def test_0_is_written_for_none_and_100_for_all(scene: Scene) -> None:
    calls = ", ".join(f"words.share({share})" for share in SHARES)

    with scene.visit(live=False) as page:
        written = page.evaluate(f"import('/web/words.js').then((words) => [{calls}])")

    assert dict(zip(SHARES, written, strict=True)) == SHARES
