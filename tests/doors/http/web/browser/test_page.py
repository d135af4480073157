"""The web page in a real browser: what people do with it, from the first login to a release."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.doors.http.web.browser.scene import ASKS_EVERY_MS, NASTY, Scene, cell

pytestmark = [pytest.mark.one_worker("web"), pytest.mark.halved]


PLACES = ("#/", "#/networks/small", "#/addresses/10.11.0.10", "#/search?text=small", "#/claims", "#/changes")
UNKNOWN = "tnr_0123456789abcdef_0000"


def fill_form(page: Page, submit: str, **values: str) -> None:
    """Fill the dialogue that is open, and send it."""
    for name, value in values.items():
        page.locator(f"dialog [name={name}]").fill(value)
    page.locator("dialog").get_by_role("button", name=submit, exact=True).click()


def test_a_wrong_token_is_refused_at_its_field_and_a_right_one_opens_the_ledger(scene: Scene) -> None:
    with scene.visit(token="") as page:
        page.get_by_role("button", name="Log in with a token").click()
        fill_form(page, "Log in", token=UNKNOWN)
        expect(page.locator("dialog .field .fault")).to_have_text("This token is not known, or no longer good.")
        fill_form(page, "Log in", token=scene.admin)

        expect(page.locator("dialog")).to_have_count(0)
        expect(page.get_by_role("heading", name="Networks", level=1)).to_be_visible()
        expect(page.locator("#live")).to_have_text("live")
        page.locator("#session").click()
        expect(page.get_by_role("heading", name="Log in to see the ledger")).to_be_visible()


def test_a_network_a_subnet_and_a_pool_are_added_by_forms_that_show_what_is_wrong(scene: Scene) -> None:
    with scene.visit() as page:
        page.get_by_role("button", name="Add network").click()
        fill_form(page, "Add network", name="made")
        expect(page.get_by_role("heading", name="made", level=1)).to_be_visible()

        page.get_by_role("button", name="Add subnet").click()
        fill_form(page, "Add subnet", cidr="192.0.2.0/33")
        expect(page.locator("dialog [name=cidr]")).to_have_attribute("aria-invalid", "true")
        fill_form(page, "Add subnet", cidr="192.0.2.0/24", gateway="192.0.2.1")
        expect(page.locator("dialog")).to_have_count(0)

        page.get_by_role("button", name="Add pool").click()
        fill_form(page, "Add pool", range="192.0.2.10-192.0.3.10")
        expect(page.locator("dialog [name=range]")).to_have_attribute("aria-invalid", "true")
        fill_form(page, "Add pool", range="192.0.2.10-192.0.2.100", name="pool1")

        expect(cell(page, "192.0.2.1")).to_have_class(re.compile("is-kept"))
        expect(cell(page, "192.0.2.10")).to_have_class(re.compile("is-free"))
        expect(cell(page, "192.0.2.200")).to_have_class(re.compile("is-outside"))
        assert scene.ask("GET", "/networks/made/pools")["items"][0]["name"] == "pool1"


def test_what_another_client_does_shows_on_the_map_at_once(scene: Scene) -> None:
    """Such as an operator in Kubernetes, whose claims are named by cluster, namespace and name (KP18)."""
    scene.plan("shared", "10.1.0.0/24", pool="10.1.0.10-10.1.0.99")
    other = scene.token("other", "allocate:shared")

    with scene.visit("#/networks/shared") as page:
        expect(cell(page, "10.1.0.10")).to_have_class(re.compile("is-free"))
        wish = {"owner": "east:ipclaim/metal/web-0"}
        held = scene.ask("POST", "/networks/shared:allocate", wish, token=other)

        expect(cell(page, held["address"])).to_have_class(re.compile("is-held"), timeout=5000)
        cell(page, held["address"]).hover()
        expect(page.locator(".hint-line")).to_contain_text("held by east:ipclaim/metal/web-0 since 2")
        gone = {"owner": "east:ipclaim/metal/web-0", "address": held["address"]}
        scene.ask("POST", "/networks/shared:release", gone, token=other)
        expect(cell(page, held["address"])).to_have_class(re.compile("is-free"), timeout=5000)


def test_next_free_points_to_a_free_address_that_can_be_allocated_and_released_there(scene: Scene) -> None:
    scene.plan("desk", "10.2.0.0/24", pool="10.2.0.10-10.2.0.99")
    scene.allocate("desk", "instance/first")

    with scene.visit("#/networks/desk") as page:
        page.get_by_role("button", name="Next free").click()
        expect(page.locator(".panel.address h2")).to_have_text("10.2.0.11")
        expect(cell(page, "10.2.0.11")).to_have_class(re.compile("chosen"))
        page.get_by_role("button", name="Allocate here").click()
        fill_form(page, "Allocate", owner="instance/web-0", description="the shop", labels="team=shop")
        expect(cell(page, "10.2.0.11")).to_have_class(re.compile("is-held"))
        expect(page.locator(".panel.address")).to_contain_text("instance/web-0")

        page.locator(".panel.address").get_by_role("button", name="Release").click()
        expect(page.locator("dialog")).to_contain_text("instance/web-0")
        page.locator("dialog").get_by_role("button", name="Cancel").click()
        expect(cell(page, "10.2.0.11")).to_have_class(re.compile("is-held"))
        page.locator(".panel.address").get_by_role("button", name="Release").click()
        fill_form(page, "Release")
        expect(cell(page, "10.2.0.11")).to_have_class(re.compile("is-free"))
        assert scene.ask("GET", "/owners/instance%2Fweb-0")["items"] == []


def test_an_address_that_was_taken_meanwhile_is_refused_with_its_holder(scene: Scene) -> None:
    scene.plan("late", "10.3.0.0/28", pool="10.3.0.4-10.3.0.9")

    with scene.visit("#/networks/late") as page:
        page.get_by_role("button", name="Next free").click()
        page.get_by_role("button", name="Allocate here").click()
        scene.allocate("late", "instance/faster", address="10.3.0.4")
        fill_form(page, "Allocate", owner="instance/slower")

        expect(page.locator("dialog")).to_contain_text("instance/faster")
        expect(cell(page, "10.3.0.4")).to_have_attribute("aria-label", re.compile("instance/faster"))


def test_a_range_is_reserved_and_given_free_again(scene: Scene) -> None:
    scene.plan("kept", "10.4.0.0/24", pool="10.4.0.10-10.4.0.99")

    with scene.visit("#/networks/kept") as page:
        cell(page, "10.4.0.20").click()
        page.locator(".panel.address").get_by_role("button", name="Reserve").click()
        fill_form(page, "Reserve", reason="for the printer")
        expect(cell(page, "10.4.0.20")).to_have_class(re.compile("is-reserved"))
        expect(page.locator(".panel.address")).to_contain_text("for the printer")

        page.locator(".panel.address").get_by_role("button", name="Lift reservation").click()
        fill_form(page, "Lift it")
        expect(cell(page, "10.4.0.20")).to_have_class(re.compile("is-free"))


def test_search_finds_an_address_an_owner_and_a_label_and_leads_there(scene: Scene) -> None:
    scene.plan("sought", "10.5.0.0/24", pool="10.5.0.10-10.5.0.99")
    scene.allocate("sought", "instance/needle-7", address="10.5.0.37", labels={"rack": "b12"})

    with scene.visit() as page:
        for text in ("needle", "rack=b12", ".37"):
            page.keyboard.press("/")
            expect(page.locator("#search-text")).to_be_focused()
            page.locator("#search-text").fill(text)
            page.keyboard.press("Enter")
            # All three find the same: without this the table of the search before would do.
            expect(page.locator("main")).to_contain_text(f"fits “{text}”")
            expect(page.locator("main table")).to_contain_text("10.5.0.37")
            expect(page.locator("main table")).to_contain_text("instance/needle-7")
            page.locator("#search-text").fill("")
            page.locator("main h1").focus()
        page.locator("#search-text").fill("10.5.0.37")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="10.5.0.37", level=1)).to_be_visible()
        expect(page.locator("main")).to_contain_text("held by instance/needle-7")

        page.get_by_role("link", name="Show it on the map of sought").click()
        expect(cell(page, "10.5.0.37")).to_have_class(re.compile("chosen"))
        page.locator("#search-text").fill(".38")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="10.5.0.38", level=1)).to_be_visible()


def test_an_address_tells_who_held_it_and_what_happened(scene: Scene) -> None:
    scene.plan("past", "10.6.0.0/24", pool="10.6.0.10-10.6.0.99")
    address = scene.allocate("past", "instance/before")
    ended = {"address": address, "owner": "instance/before", "request": "clean-up"}
    scene.ask("POST", "/networks/past:release", ended)
    scene.allocate("past", "instance/after", address=address)

    with scene.visit(f"#/addresses/{address}") as page:
        rows = page.locator("section[aria-labelledby=history] tbody tr")
        expect(rows).to_have_count(2)
        expect(rows.nth(0)).to_contain_text("instance/after")
        expect(rows.nth(0)).to_contain_text("still held")
        expect(rows.nth(1)).to_contain_text("released")
        expect(rows.nth(1).locator("td").last).to_have_text(re.compile("^token/.*, request clean-up$"))
        verbs = page.locator("section[aria-labelledby=log] .verb")
        expect(verbs).to_have_text(["grant", "release", "grant"])
        expect(page.locator("section[aria-labelledby=log] .who").nth(1)).to_contain_text("request clean-up")


def test_a_read_token_sees_everything_and_is_told_why_it_may_not_change_it(scene: Scene) -> None:
    scene.plan("glass", "10.7.0.0/24", pool="10.7.0.10-10.7.0.99")
    reader = scene.token("reader", "read")

    with scene.visit("#/networks/glass", token=reader) as page:
        expect(cell(page, "10.7.0.10")).to_have_class(re.compile("is-free"))
        button = page.get_by_role("button", name="Allocate", exact=True)
        expect(button).to_have_attribute("aria-disabled", "true")
        button.click(force=True)

        expect(page.locator(".toast")).to_contain_text("needs the scope allocate on network “glass”")
        expect(page.locator("dialog")).to_have_count(0)


def test_a_token_of_one_network_works_on_it_and_sees_nothing_else(scene: Scene) -> None:
    scene.plan("mine", "10.8.0.0/24", pool="10.8.0.10-10.8.0.99")
    scene.plan("yours", "10.9.0.0/24", pool="10.9.0.10-10.9.0.99")
    limited = scene.token("limited", "allocate:mine")

    with scene.visit(token=limited, live=False) as page:
        expect(page.locator(".network")).to_have_count(1)
        page.locator(".network", has_text="mine").click()
        cell(page, "10.8.0.10").click()
        page.get_by_role("button", name="Allocate here").click()
        fill_form(page, "Allocate", owner="instance/own")

        expect(cell(page, "10.8.0.10")).to_have_class(re.compile("is-held"))


def test_the_keyboard_reaches_everything(scene: Scene) -> None:
    scene.plan("keys", "10.10.0.0/24", pool="10.10.0.0-10.10.0.255")

    with scene.visit("#/networks/keys") as page:
        page.keyboard.press("n")
        expect(page.locator(".panel.address h2")).to_have_text("10.10.0.1")
        expect(cell(page, "10.10.0.1")).to_be_focused()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        expect(page.locator(".panel.address h2")).to_have_text("10.10.0.2")
        page.keyboard.press("a")
        expect(page.locator("dialog [name=owner]")).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)
        page.keyboard.press("?")
        expect(page.locator("dialog")).to_contain_text("waiting claims")
        page.keyboard.press("Escape")
        page.keyboard.press("g")
        page.keyboard.press("w")
        expect(page.get_by_role("heading", name="Waiting claims", level=1)).to_be_focused()
        page.keyboard.press("/")
        expect(page.locator("#search-text")).to_be_focused()


def test_dark_mode_follows_the_system_and_the_switch_which_is_remembered(scene: Scene) -> None:
    def ground(page: Page) -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    with scene.visit(color_scheme="dark") as page:
        dark = ground(page)
        page.locator("#theme").click()
        page.locator("#theme").click()
        expect(page.locator("#theme")).to_contain_text("Light")
        light = ground(page)
        page.reload()
        expect(page.locator("#theme")).to_contain_text("Light")

        assert (dark, light) == ("rgb(16, 21, 29)", "rgb(244, 246, 249)")
        assert ground(page) == light


def test_a_small_screen_shows_everything_without_scrolling_sideways(scene: Scene) -> None:
    scene.plan("small", "10.11.0.0/24", pool="10.11.0.10-10.11.0.99")
    scene.allocate("small", "instance/a-rather-long-name-that-goes-on-and-on-and-on-until-it-ends")

    with scene.visit(viewport={"width": 360, "height": 740}) as page:
        for place in PLACES:
            page.goto(f"{scene.url}/{place}")
            expect(page.locator("main h1")).to_be_visible()
            page.wait_for_timeout(200)
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, place
        page.goto(f"{scene.url}/#/networks/small")
        cell(page, "10.11.0.11").click()
        expect(page.locator(".panel.address h2")).to_have_text("10.11.0.11")


@pytest.mark.parametrize(
    ("name", "block", "pool", "squares", "steps"),
    [
        ("tiny", "10.12.0.0/28", "10.12.0.2-10.12.0.9", 16, []),
        ("wide", "10.13.0.0/16", "10.13.4.0-10.13.9.255", 256, ["10.13.4.0/24"]),
        ("vast", "11.0.0.0/8", "11.7.0.0-11.7.255.255", 256, ["11.7.0.0/16", "11.7.0.0/24"]),
    ],
)
def test_a_map_stays_useful_at_every_size(
    scene: Scene, name: str, block: str, pool: str, squares: int, steps: list[str]
) -> None:
    scene.plan(name, block, pool=pool)
    address = scene.allocate(name, "instance/somewhere")

    with scene.visit(f"#/networks/{name}") as page:
        expect(page.locator(".map-frame .cell")).to_have_count(squares)
        for step in steps:
            expect(cell(page, step)).to_have_attribute("aria-label", re.compile("1 held of "))
            cell(page, step).click()
        expect(cell(page, address)).to_have_class(re.compile("is-held"))
        if steps:
            page.keyboard.press("-")
            expect(cell(page, steps[-1])).to_be_visible()
            page.go_back()
            expect(cell(page, address)).to_be_visible()


def test_a_map_of_a_64_leads_to_what_is_used_and_to_what_is_free(scene: Scene) -> None:
    scene.plan("six", "2001:db8:5::/64", pool="2001:db8:5::10-2001:db8:5::ffff")
    address = scene.allocate("six", "instance/six")

    with scene.visit("#/networks/six") as page:
        expect(cell(page, "2001:db8:5::/72")).to_have_attribute("aria-label", re.compile("1 held of 7.2 × 10¹⁶"))
        page.get_by_role("button", name="Zoom to what is used").click()
        expect(cell(page, address)).to_have_class(re.compile("is-held"))
        page.get_by_role("button", name="Next free").click()
        expect(page.locator(".panel.address h2")).to_have_text("2001:db8:5::11")


def test_names_that_look_like_markup_are_shown_as_text(scene: Scene) -> None:
    scene.ask("POST", "/networks", {"name": NASTY, "description": NASTY, "labels": {"note": NASTY}})
    where = "/networks/" + NASTY.replace("<", "%3C").replace(">", "%3E").replace(" ", "%20").replace("'", "%27")
    scene.ask("POST", f"{where}/subnets", {"cidr": "10.14.0.0/28", "name": NASTY, "description": NASTY})
    scene.ask("POST", f"{where}/pools", {"range": "10.14.0.2-10.14.0.9", "name": NASTY})
    scene.ask("POST", f"{where}/reserved", {"range": "10.14.0.8", "reason": NASTY})
    wish = {"owner": f"instance/{NASTY}", "description": NASTY, "labels": {"note": NASTY}, "request": NASTY}
    held = scene.ask("POST", f"{where}:allocate", wish)["address"]

    with scene.visit() as page:
        page.locator(".network", has_text="onerror").click()
        expect(page.locator("main h1")).to_have_text(NASTY)
        cell(page, held).click()
        expect(page.locator(".panel.address")).to_contain_text(f"instance/{NASTY}")
        page.locator(".panel.address h2 a").click()
        expect(page.locator("main")).to_contain_text(f"instance/{NASTY}")
        page.locator("main").get_by_role("link", name=f"instance/{NASTY}").first.click()
        expect(page.locator("main h1")).to_have_text(f"instance/{NASTY}")
        page.locator("#search-text").fill("onerror")
        page.keyboard.press("Enter")
        expect(page.locator("main table")).to_contain_text(NASTY)

        assert page.locator("img[src=x]").count() == 0
        assert "owned" not in page.title().split(" – ")[-1]


def test_a_waiting_claim_is_shown_and_goes_when_it_is_served(scene: Scene) -> None:
    scene.plan("queue", "10.15.0.0/28", pool="10.15.0.2-10.15.0.2")
    scene.allocate("queue", "instance/in")
    wait = {"owner": "instance/waiting", "patience_s": 600}
    scene.ask("POST", "/networks/queue:claim", wait)

    with scene.visit("#/claims") as page:
        expect(page.locator("main table")).to_contain_text("instance/waiting")
        expect(page.locator("#waiting")).to_have_text("1")
        scene.ask("POST", "/networks/queue:release", {"address": "10.15.0.2", "owner": "instance/in"})
        scene.ask("POST", "/networks/queue:claim", wait)

        expect(page.locator("main")).to_contain_text("Nobody waits.", timeout=10_000)
        expect(page.locator("#waiting")).to_be_hidden()


def test_where_events_do_not_come_through_the_page_asks_again_and_again(scene: Scene) -> None:
    scene.plan("deaf", "10.17.0.0/28", pool="10.17.0.2-10.17.0.9")

    with scene.visit() as page:
        page.clock.install()
        page.route("**/api/v1/events*", lambda route: route.fulfill(status=502))
        page.goto(f"{scene.url}/#/networks/deaf")
        page.reload()
        expect(page.locator("#live")).to_have_text("polling")
        scene.allocate("deaf", "instance/quiet")
        page.clock.run_for(ASKS_EVERY_MS)

        expect(cell(page, "10.17.0.2")).to_have_class(re.compile("is-held"), timeout=10_000)


def test_a_page_whose_login_is_over_says_so_and_asks_no_more(scene: Scene) -> None:
    token, asked = scene.token("brief", "read"), list[str]()

    with scene.visit(token=token) as page:
        page.clock.install()
        scene.ask("POST", "/tokens/brief:revoke", {})
        expect(page.locator("#live")).to_have_text("logged out", timeout=20_000)
        page.on("request", lambda request: asked.append(request.url))
        page.clock.run_for(2 * ASKS_EVERY_MS)
        page.wait_for_timeout(500)  # a request takes its time, whatever the clock of the page says

        expect(page.locator("#live")).to_have_text("logged out")
    assert asked == []


def test_a_page_outlives_its_server_and_shows_what_happened_meanwhile(scene: Scene) -> None:
    scene.plan("brave", "10.16.0.0/28", pool="10.16.0.2-10.16.0.9")

    with scene.visit("#/networks/brave") as page:
        scene.crash()
        expect(page.locator("#live")).not_to_have_text("live", timeout=10_000)
        scene.restart()
        scene.allocate("brave", "instance/after-the-storm")

        expect(page.locator("#live")).to_have_text("live", timeout=30_000)
        expect(cell(page, "10.16.0.2")).to_have_class(re.compile("is-held"), timeout=10_000)
