"""``tenure token``: made, listed and revoked in the ledger itself."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

import tenure
from tenure.doors.cli.output.json_keys import TOKEN
from tenure.doors.http.access.token_store import Token, good_token
from tests.doors.cli.processes import piped
from tests.doors.cli.site import Site


def whose(site: Site, text: str) -> Token | None:
    """Return the token that a text opens the door with."""

    async def look() -> Token | None:
        async with await tenure.open_async(site.url) as ledger:
            return await good_token(ledger, text)

    return asyncio.run(look())


def test_a_token_is_printed_alone_so_that_scripts_can_take_it(site: Site) -> None:
    done = piped(site.url, "token", "add", "ops", "--scope", "read", "--scope", "allocate:net1")

    found = whose(site, done.stdout.strip())
    assert done.returncode == 0
    assert found is not None
    assert (found.name, found.scopes, found.created_by) == ("ops", ("allocate:net1", "read"), "command line")
    assert done.stderr == "token ops may allocate:net1, read; it is shown this once:\n"
    assert done.stdout.strip() not in done.stderr


def test_documents_have_the_keys_of_the_reference_and_only_the_first_has_the_secret(site: Site) -> None:
    made = site.json("token", "add", "ops", "--scope", "admin")
    [listed] = site.json("token", "list")
    ended = site.json("token", "revoke", "ops")

    assert list(made) == [*TOKEN, "token"]
    assert list(listed) == list(ended) == list(TOKEN)
    assert whose(site, made["token"]) is None


def test_the_store_holds_no_secret(site: Site) -> None:
    text = site.text("token", "add", "ops", "--scope", "read").strip()

    kept = b"".join(path.read_bytes() for path in site.folder.glob("tenure.db*"))

    assert text.split("_")[2].encode() not in kept


@pytest.mark.parametrize(
    ("written", "length"),
    [
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        ("12h", timedelta(hours=12)),
        ("30d", timedelta(days=30)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_a_token_may_end_after_a_time(site: Site, written: str, length: timedelta) -> None:
    before = datetime.now(UTC)

    made = site.json("token", "add", "ops", "--scope", "read", "--expires", written)

    ends = datetime.fromisoformat(made["expires"])
    assert before + length <= ends <= datetime.now(UTC) + length


def test_a_token_may_end_at_a_time(site: Site) -> None:
    made = site.json("token", "add", "ops", "--scope", "read", "--expires", "2126-01-31T12:00:00+02:00")
    bare = site.json("token", "add", "dev", "--scope", "read", "--expires", "2126-01-31")

    assert (made["expires"], bare["expires"]) == ("2126-01-31T10:00:00Z", "2126-01-31T00:00:00Z")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["ops"], "scopes"),
        (["ops", "--scope", "write"], "scopes"),
        (["ops", "--scope", "allocate"], "scopes"),
        (["ops", "--scope", "allocate:net9"], "scopes"),
        (["ops", "--scope", "read", "--expires", "soon"], "expires"),
        (["ops", "--scope", "read", "--expires", "30"], "expires"),
        (["ops", "--scope", "read", "--expires", "999999w"], "expires"),
        (["ops", "--scope", "read", "--expires", "999999999w"], "expires"),
        (["ops", "--scope", "read", "--expires", "9999-12-31T23:59:59-23:00"], "expires"),
        (["ops", "--scope", "read", "--expires", "2001-01-01"], "expires"),
        ([" ops", "--scope", "read"], "name"),
        (["", "--scope", "read"], "name"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_what_is_wrong_is_refused_by_name_and_makes_nothing(site: Site, words: list[str], field: str) -> None:
    code, error = site.error("token", "add", *words)

    assert (code, error["field"]) == (2, field)
    assert site.json("token", "list") == []


def test_a_scope_is_listed_by_the_name_that_its_network_has_now(site: Site) -> None:
    site.text("token", "add", "ops", "--scope", "allocate:net1")
    made = site.json("token", "add", "early", "--scope", "allocate:net9", "--allow-missing")
    site.text("network", "rename", "net1", "net2")
    site.text("network", "add", "net1")

    renamed, early = site.json("token", "list")
    site.text("network", "remove", "net2", "--cascade")

    assert (renamed["scopes"], early["scopes"]) == (["allocate:net2"], made["scopes"])
    assert made["scopes"] == ["allocate:net9 (no such network yet)"]
    assert site.json("token", "revoke", "ops")["scopes"] == ["allocate:net1 (removed)"]


def test_a_name_is_for_one_good_token(site: Site) -> None:
    site.text("token", "add", "ops", "--scope", "read")

    code, error = site.error("token", "add", "ops", "--scope", "read")
    site.text("token", "revoke", "ops")
    site.text("token", "add", "ops", "--scope", "admin")

    assert (code, error["code"]) == (4, "already_exists")
    assert "tenure token revoke ops" in error["hint"]
    assert [each["scopes"] for each in site.json("token", "list")] == [["admin"]]
    assert [each["scopes"] for each in site.json("token", "list", "--revoked")] == [["read"], ["admin"]]


def test_a_token_is_revoked_by_name_or_id_and_again_is_as_good_as_once(site: Site) -> None:
    made = site.json("token", "add", "ops", "--scope", "read")

    first = site.text("token", "revoke", made["id"])
    again = site.text("token", "revoke", made["id"])
    code, error = site.error("token", "revoke", "ops")

    assert first == again == f"revoked token ops ({made['id']})\n"
    assert (code, error["code"], error["hint"]) == (3, "not_found", "`tenure token list` lists them")


def test_a_token_that_was_found_somewhere_is_revoked_by_its_text(site: Site) -> None:
    text = site.text("token", "add", "ops", "--scope", "read").strip()
    nobody = f"tnr_{'0' * 16}_{'5' * 64}"

    site.text("token", "revoke", text)
    code, error = site.error("token", "revoke", nobody)

    assert whose(site, text) is None
    assert (code, error["name"]) == (3, "0" * 16)
    assert "555" not in str(error)


def test_the_log_tells_on_whose_word(site: Site) -> None:
    site.text("token", "add", "ops", "--scope", "read")

    with tenure.open(site.url) as ledger:
        told = [change for change in ledger.changes() if change.details.get("kind") == "rest.token"]

    assert [(change.verb, change.actor) for change in told] == [("paper.write", "command line")]


def test_the_list_is_a_table_for_people(site: Site) -> None:
    assert site.text("token", "list").startswith("no tokens; ")

    site.text("token", "add", "ops", "--scope", "read", "--scope", "allocate:net1")
    head, row = site.text("token", "list").splitlines()

    assert head.split() == ["NAME", "SCOPES", "CREATED", "BY", "EXPIRES", "REVOKED", "ID"]
    assert row.startswith("ops   allocate:net1,read  ")


def test_a_scope_for_a_network_that_is_not_there_names_the_option_that_allows_it(site: Site) -> None:
    result = site.call("token", "add", "early", "--scope", "allocate:missing")

    assert result.exit_code == 2
    assert "no network 'missing'" in result.stderr
    assert "--allow-missing" in result.stderr
    assert site.error("token", "add", "early", "--scope", "allocate:missing")[1]["case"] == "missing_network"
