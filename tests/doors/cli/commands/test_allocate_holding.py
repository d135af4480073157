"""Commands on holdings: allocate, hold, confirm, cancel, transfer, release, modify, wait."""

import threading
import time

import tenure
from tenure.doors.cli.output.json_keys import HOLDING, WAITING
from tests.doors.cli.site import Site, build_full


def test_an_allocation_prints_a_sentence_a_document_or_the_bare_address(site: Site) -> None:
    assert site.text("allocate", "net1", "instance/a") == "192.0.2.11 held by instance/a in net1\n"
    assert site.text("allocate", "net1", "instance/a", "-q") == "192.0.2.11\n"
    document = site.json("allocate", "net1", "instance/a")
    assert list(document) == [*HOLDING, "warnings"]
    assert document["since"].endswith("Z")
    assert (document["address"], document["prefix"], document["gateway"]) == ("192.0.2.11", 24, "192.0.2.1")


def test_an_allocation_passes_on_all_that_is_said(site: Site) -> None:
    said = [
        "--slot",
        "nic0",
        "--label",
        "team=shop",
        "--label",
        "tier=web",
        "--description",
        "front",
        "--carrier",
        "vm1",
    ]
    said += ["--plan", "p1", "--request", "r1", "--pool", "pool1", "--subnet", "192.0.2.0/24", "--policy", "random"]
    found = site.json("allocate", "net1", "instance/a", *said)

    assert (
        found
        | {
            "slot": "nic0",
            "labels": {"team": "shop", "tier": "web"},
            "description": "front",
            "carrier": "vm1",
            "plan": "p1",
            "request": "r1",
        }
        == found
    )


def test_a_repeated_request_with_other_words_warns_and_leaves_the_holding(site: Site) -> None:
    asked = ["allocate", "net1", "instance/web-0", "--label", "team=lab", "--carrier", "vm-2"]
    before = site.state()

    result, document = site.call(*asked), site.json(*asked)

    [warning] = document["warnings"]
    assert warning.startswith("instance/web-0 has held 192.0.2.10 since 2")
    assert warning.endswith("; unchanged: labels, carrier (`tenure holding modify` changes that)")
    assert result.stdout == "192.0.2.10 held by instance/web-0 in net1\n"
    assert result.stderr == f"tenure: warning: {warning}\n"
    assert document["labels"] == {"team": "shop"}
    assert site.json("allocate", "net1", "instance/web-0", "--label", "team=shop")["warnings"] == []
    assert site.state() == before


def test_several_holdings_from_before_warn_one_by_one(site: Site) -> None:
    asked = ["allocate", "net1", "instance/lb", "--count", "2"]
    site.text(*asked)

    told = site.json(*asked, "--label", "team=lab")
    shown = site.call(*asked, "--label", "team=lab")

    assert [len(each["warnings"]) for each in told] == [1, 1]
    assert all("`tenure holding modify` changes that" in each["warnings"][0] for each in told)
    assert shown.stderr.count("tenure: warning: ") == 2


def test_a_hold_from_before_warns_of_another_deadline(site: Site) -> None:
    [warning] = site.json("hold", "net1", "instance/web-9", "--lasts", "600")["warnings"]

    assert warning.endswith("; unchanged: deadline, none")


def test_a_named_address_reaches_as_far_as_it_is_told(site: Site) -> None:
    assert site.error("allocate", "net1", "instance/a", "--address", "192.0.2.30")[1]["code"] == "address_reserved"

    found = site.json("allocate", "net1", "instance/a", "--address", "192.0.2.30", "--reserved", "allow")
    assert found["address"] == "192.0.2.30"


def test_several_addresses_in_a_row_are_all_or_none(site: Site) -> None:
    found = site.json("allocate", "net1", "instance/lb", "--count", "4", "--contiguous")

    assert [holding["address"] for holding in found] == ["192.0.2.14", "192.0.2.15", "192.0.2.16", "192.0.2.17"]
    assert [holding["slot"] for holding in found] == ["0", "1", "2", "3"]
    behind = site.json("allocate", "net1", "instance/lb", "--count", "2", "--slot", "nic")
    assert [holding["slot"] for holding in behind] == ["nic0", "nic1"]
    code, error = site.error("allocate", "net1", "instance/big", "--count", "90")
    assert (code, error["code"], error["wanted"]) == (5, "pool_exhausted", 90)


def test_what_is_for_one_address_is_refused_for_several(site: Site) -> None:
    before = site.state()

    for option, value in [("--carrier", "x"), ("--wait", "1"), ("--address", "192.0.2.60"), ("--reserved", "allow")]:
        _, error = site.error("allocate", "net1", "instance/a", "--count", "2", option, value)
        assert (error["code"], error["message"].startswith(f"{option} is for one address")) == ("usage", True)
    assert site.error("allocate", "net1", "instance/a", "--contiguous")[1]["code"] == "usage"
    assert site.error("allocate", "net1", "instance/a", "--count", "0")[1]["field"] == "count"
    assert site.state() == before


def test_a_key_gives_the_same_answer_even_after_a_release(site: Site) -> None:
    first = site.json("allocate", "net1", "instance/a", "--key", "k1")
    site.text("release", "net1", first["address"], "instance/a")

    assert site.json("allocate", "net1", "instance/a", "--key", "k1") == first
    assert site.error("allocate", "net1", "instance/b", "--key", "k1")[1]["code"] == "key_reused"


def test_a_held_address_is_pending_until_confirmed_or_cancelled(site: Site) -> None:
    pending = site.json("hold", "net1", "instance/a", "--lasts", "600")
    confirmed = site.json("confirm", "net1", pending["address"], "instance/a", "--request", "r2")

    assert pending["state"] == "pending"
    assert pending["until"] is not None
    assert (confirmed["state"], confirmed["until"]) == ("held", None)
    assert site.error("cancel", "net1", pending["address"], "instance/a")[0] == 4
    assert site.json("cancel", "net1", "192.0.2.13", "instance/web-9")["owner"] == "instance/web-9"
    assert site.json("cancel", "net1", "192.0.2.13", "instance/web-9") is None


def test_a_release_ends_a_holding_once(site: Site) -> None:
    assert site.text("release", "net1", "192.0.2.10", "instance/web-0") == (
        "instance/web-0 no longer holds 192.0.2.10 in net1\n"
    )
    assert site.text("release", "net1", "192.0.2.10", "instance/web-0") == "nobody holds 192.0.2.10 in net1\n"
    assert site.json("release", "net1", "192.0.2.10", "instance/web-0") is None


def test_a_release_of_another_generation_is_refused(site: Site) -> None:
    held = site.json("allocate", "net1", "instance/web-0")

    code, _ = site.error("release", "net1", "192.0.2.10", "instance/web-0", "--generation", str(held["generation"] + 1))
    assert code == 4


def test_all_holdings_of_an_owner_end_together(site: Site) -> None:
    site.text("allocate", "net1", "instance/web-0", "--slot", "nic1")

    assert len(site.json("release-owner", "instance/web-0")) == 2
    assert site.text("release-owner", "instance/web-0") == "instance/web-0 holds nothing\n"


def test_a_holding_is_handed_over(site: Site) -> None:
    moved = site.json("transfer", "net1", "192.0.2.10", "instance/web-0", "instance/web-7", "--to-slot", "nic2")

    assert (moved["owner"], moved["slot"], moved["address"]) == ("instance/web-7", "nic2", "192.0.2.10")


def test_a_holding_is_written_on_and_drained(site: Site) -> None:
    words = ["holding", "modify", "net1", "192.0.2.10", "instance/web-0"]
    changed = site.json(*words, "--carrier", "vm-1", "--state", "draining", "--description", "going")
    emptied = site.json(*words, "--without", "carrier", "--without", "labels", "--state", "held")

    assert (changed["carrier"], changed["state"], changed["labels"]) == ("vm-1", "draining", {"team": "shop"})
    assert (emptied["carrier"], emptied["state"], emptied["labels"]) == (None, "held", {})
    assert emptied["description"] == "going"


def test_holdings_are_listed_page_by_page(site: Site) -> None:
    first = site.json("holding", "list", "net1", "--limit", "2")
    rest = site.json("holding", "list", "net1", "--after", first[-1]["address"])

    assert [h["address"] for h in [*first, *rest]] == ["192.0.2.10", "192.0.2.12", "192.0.2.13", "203.0.113.5"]


def test_a_claim_waits_is_listed_and_is_served_by_a_release(site: Site) -> None:
    build_full(site)
    answers: list[str] = []
    waiter = threading.Thread(target=lambda: answers.append(_waiting_allocation(site)))
    waiter.start()
    [claim] = _until_somebody_waits(site)
    listed = site.json("waiting", "list", "full")
    overview = {row["network"]: row["waiting"] for row in site.json("show")}

    site.text("release", "full", "198.51.100.3", "instance/b")
    waiter.join(20)

    assert (claim.owner, claim.place) == ("instance/w", 1)
    assert [list(entry) for entry in listed] == [list(WAITING)]
    assert overview == {"full": 1, "net1": 0}
    assert answers == ["198.51.100.3 held by instance/w in full"]
    assert site.text("waiting", "list") == "nobody waits\n"


def _waiting_allocation(site: Site) -> str:
    with tenure.open(site.url) as ledger:
        return str(ledger.allocate("full", owner="instance/w", wait_s=20))


def _until_somebody_waits(site: Site) -> list[tenure.WaitingClaim]:
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        with tenure.open(site.url) as ledger:
            if claims := ledger.waiting():
                return claims
        time.sleep(0.05)
    raise AssertionError("nobody waits")


def test_waiting_in_vain_ends_as_a_full_pool(site: Site) -> None:
    build_full(site)

    code, error = site.error("allocate", "full", "instance/w", "--wait", "0.3")
    assert (code, error["code"], error["waited_s"]) == (5, "pool_exhausted", 0.3)
    assert site.json("waiting", "list") == []


def test_a_claim_is_withdrawn(site: Site) -> None:
    build_full(site)
    with tenure.open(site.url) as ledger:
        assert ledger.claim("full", owner="instance/w").state == "waiting"

    assert site.json("waiting", "withdraw", "full", "instance/w") == {"withdrawn": True}
    assert site.text("waiting", "withdraw", "full", "instance/w") == "instance/w does not wait in full\n"


def test_a_conflict_of_one_of_several_names_its_slot(site: Site) -> None:
    site.text("allocate", "net1", "instance/lb", "--slot", "2", "--address", "203.0.113.6")
    error = site.error("allocate", "net1", "instance/lb", "--count", "4", "--pool", "pool1")[1]

    assert (error["code"], error["field"]) == ("already_exists", "pool")
    assert error["name"] == "instance/lb (2) in net1"
    assert "203.0.113.6" in error["message"]


def test_network_info_shows_labels_to_people_and_to_scripts(site: Site) -> None:
    assert "  Labels: team=shop\n" in site.text("network", "info", "net1")
    assert site.json("network", "info", "net1")[0]["labels"] == {"team": "shop"}
