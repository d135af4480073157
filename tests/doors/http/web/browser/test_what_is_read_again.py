"""What pages ask the server for in a real browser: what changed, all of it, and nothing else."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.doors.http.web.browser.scene import API, Scene, cell

pytestmark = [pytest.mark.one_worker("web"), pytest.mark.halved]

QUIET_MS = 1500
"""Longer than a page gathers changes before it reads anything."""


def listen(page: Page) -> list[str]:
    """Note every path of the API that the page asks for from now on."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.split(API)[-1]) if API in request.url else None)
    return asked


def settle(page: Page) -> None:
    """Wait until nothing is under way."""
    page.wait_for_load_state("load")
    page.wait_for_timeout(QUIET_MS)


def test_a_network_page_asks_only_for_what_there_is(scene: Scene) -> None:
    scene.plan("asked", "10.80.0.0/28", pool="10.80.0.2-10.80.0.9")

    with scene.visit() as page:
        refused: list[str] = []
        page.on("response", lambda answer: refused.append(answer.url) if answer.status >= 400 else None)
        page.goto(f"{scene.url}/#/networks/asked")
        expect(cell(page, "10.80.0.2")).to_be_visible()
        settle(page)

        assert refused == []


def test_changes_elsewhere_cost_an_open_page_nothing(scene: Scene) -> None:
    scene.plan("still", "10.81.0.0/28", pool="10.81.0.2-10.81.0.9")
    scene.plan("noisy", "10.82.0.0/28", pool="10.82.0.2-10.82.0.9")

    with scene.visit("#/networks/still") as page:
        settle(page)
        asked = listen(page)
        scene.allocate("noisy", "instance/loud")
        scene.token("somebody", "read")
        settle(page)

        assert asked == []


def test_a_change_of_an_address_reads_what_shows_it_again_and_not_the_plan(scene: Scene) -> None:
    scene.plan("moving", "10.83.0.0/28", pool="10.83.0.2-10.83.0.9")

    with scene.visit("#/networks/moving") as page:
        page.clock.install()
        settle(page)
        page.clock.run_for(5000)  # so long the plot is not read again
        asked = listen(page)
        scene.allocate("moving", "instance/new")
        expect(cell(page, "10.83.0.2")).to_have_class(re.compile("is-held"))
        expect(page.locator(".holding-list")).to_contain_text("instance/new")
        settle(page)

        paths = sorted({path.split("?")[0].removeprefix("/networks/moving") for path in asked})
        assert paths == ["/holdings", "/map", "/timeline", "/utilisation"]


def test_a_login_does_not_make_the_overview_count_again(scene: Scene) -> None:
    scene.plan("overview", "10.84.0.0/28")

    with scene.visit() as page:
        settle(page)
        asked = listen(page)
        scene.token("another", "read")
        settle(page)
        before = list(asked)
        with page.expect_request(f"**{API}/utilisation*"):
            scene.allocate("overview", "instance/1", address="10.84.0.3")

        assert before == []


def test_an_address_shows_its_newest_changes_however_many_it_had(scene: Scene) -> None:
    scene.plan("worn", "10.85.0.0/28", pool="10.85.0.2-10.85.0.9")
    hold = {"owner": "instance/worn", "address": "10.85.0.2"}
    modify = {"op": "modify_holding", "network": "worn", "address": "10.85.0.2", "owner": "instance/worn"}
    scene.allocate("worn", **hold)
    for turn in range(2):
        operations = [{**modify, "description": f"turn {turn} {number}"} for number in range(600)]
        scene.ask("POST", ":apply", {"operations": operations})
    last = scene.ask("GET", "/changes/last")["last"]

    with scene.visit("#/addresses/10.85.0.2?network=worn") as page:
        first = page.locator(".changes li").first
        expect(first).to_have_attribute("value", str(last))
        assert page.locator(".changes li").count() >= 1201


def test_a_late_answer_does_not_replace_the_span_that_was_chosen_after_it(scene: Scene) -> None:
    scene.plan("late-plot", "10.86.0.0/28", pool="10.86.0.2-10.86.0.9")

    with scene.visit("#/networks/late-plot") as page:
        expect(page.locator("svg.plot")).to_be_visible()
        page.evaluate(
            """() => {
              const fetched = window.fetch;
              window.fetch = async (asked, ...more) => {
                const answer = await fetched(asked, ...more);
                if (String(asked.url || asked).includes("hours=744")) await new Promise((go) => setTimeout(go, 800));
                return answer;
              };
            }"""
        )
        page.locator("#plot-span").select_option("744")
        page.locator("#plot-span").select_option("1")
        page.wait_for_timeout(1500)

        labels = page.locator("svg.plot text.axis").all_text_contents()
        assert [label for label in labels if re.fullmatch(r"\d\d-\d\d", label)] == []
