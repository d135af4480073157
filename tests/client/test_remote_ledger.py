"""Opening a ledger behind a server: how it is named, who is let in, what is refused, and how it is closed."""

import asyncio
import ssl
import subprocess
import threading
from pathlib import Path

import pytest

import tenure
from tenure.client.server_urls import read_servers
from tenure.client.transport import segment
from tests.contract.ledger.timing import until_waiting
from tests.doors.http.processes import serving
from tests.infrastructure.street import street


@pytest.mark.parametrize(
    ("url", "bases"),
    [
        ("http://a:8123", ("http://a:8123",)),
        ("http://a:8123/", ("http://a:8123",)),
        ("http://a:8123,b:8124", ("http://a:8123", "http://b:8124")),
        ("https://a/x,https://b/y", ("https://a/x", "https://b/y")),
        ("http://[::1]:8123", ("http://[::1]:8123",)),
    ],
)
def test_a_url_names_one_server_or_several(url: str, bases: tuple[str, ...]) -> None:
    assert read_servers(url).bases == bases


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://", "names no server"),
        ("http://a,", "names no server"),
        ("http://a:port", "not a URL"),
        ("http://a:0", "names no server"),
        ("http://me:secret@a", "by a token, not in the URL"),
        ("http://a?token=secret", "is no option"),
        ("http://a?within_s=soon", "a number of seconds is needed"),
        ("http://a?within_s=nan", "a number of seconds is needed"),
        ("http://a?ca=x.pem", "ca is for https only"),
        ("https://a?ca=nowhere.pem", "cannot be read"),
    ],
)
async def test_a_url_that_names_no_server_is_refused_without_its_secrets(url: str, says: str) -> None:
    with pytest.raises(tenure.Invalid, match=says) as refused:
        await tenure.open_async(url)

    assert refused.value.field == "url"
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("token", ["", " x", "x\n", "x\r\nHost: evil", "ü", 7])
async def test_a_token_that_cannot_stand_in_a_header_is_refused_and_not_told(token: str) -> None:
    with pytest.raises(tenure.Invalid) as refused:
        await tenure.open_async("http://127.0.0.1:1", token=token)

    assert refused.value.field == "token"
    assert "evil" not in str(refused.value)


async def test_what_is_for_servers_is_not_for_stores_and_the_other_way_round() -> None:
    with pytest.raises(tenure.Invalid, match=r"^token: "):
        await tenure.open_async("memory:", token="x")  # noqa: S106
    with pytest.raises(tenure.Invalid, match=r"^keys_live_s: "):
        await tenure.open_async("http://127.0.0.1:1", keys_live_s=60)


async def test_what_a_server_cannot_do_is_refused_with_the_reason(direct: tenure.AsyncLedger) -> None:
    with pytest.raises(tenure.Invalid, match="cannot work inside a transaction of yours"):
        direct.inside(object())
    with pytest.raises(tenure.Invalid, match="knows by the token who asks"):
        direct.asked_by("token/me")


async def test_a_closed_ledger_says_so_and_closing_twice_is_once(direct: tenure.AsyncLedger, served: str) -> None:
    ledger = await tenure.open_async(served)
    asked = asyncio.create_task(ledger.allocate("net", owner="vm/a"))
    await asyncio.sleep(0)
    await ledger.close()
    await ledger.close()

    assert (await asked).owner == "vm/a"
    with pytest.raises(tenure.Conflict, match="closed"):
        await ledger.networks()


async def test_closing_sends_away_who_waits(direct: tenure.AsyncLedger, served: str) -> None:
    await direct.allocate_many("net", owner="vm/full", count=10)
    ledger = await tenure.open_async(served)
    waiting = asyncio.create_task(ledger.allocate("net", owner="vm/late", wait_s=60))
    await until_waiting(direct, "vm/late")
    await ledger.close()

    with pytest.raises(tenure.Conflict, match="closed"):
        await asyncio.wait_for(waiting, 8)
    await until_waiting(direct)


def test_many_threads_share_one_ledger_of_a_server(tmp_path: Path) -> None:
    with street().quiet_house(f"sqlite:///{tmp_path / 'ledger.db'}") as url, tenure.open(url) as ledger:
        ledger.add_network("net")
        ledger.add_subnet("net", "10.0.0.0/24")
        ledger.add_pool("net", "10.0.0.0/24")
        threads = [threading.Thread(target=lambda n=n: ledger.allocate("net", owner=f"vm/{n}")) for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len({each.address for each in ledger.holdings("net")}) == 20
        assert [change.verb for change in ledger.changes(3)] == ["grant"] * 20
        with pytest.raises(tenure.NotFound):
            ledger.network("nowhere")


@pytest.mark.proof
def test_a_token_of_one_network_reads_past_many_changes_of_others(tmp_path: Path) -> None:
    """A page of the log has looked at ten thousand changes at most; one without an entry is not the last."""
    with serving(tmp_path) as server, tenure.open(server.url, token=server.token) as ledger:
        server.lay_out("far")
        server.lay_out("own", "10.1.0.0/24", "10.1.0.10-10.1.0.19")
        before = ledger.last_change()
        for start in range(0, 10_500, 500):
            ledger.allocate_many("far", owners=[f"vm/{number}" for number in range(start, start + 500)])
        ledger.allocate("own", owner="vm/own")
        asked = {"name": "narrow", "scopes": ["allocate:own"]}
        token = server.ask("POST", "/api/v1/tokens", asked).document["token"]
        with tenure.open(server.url, token=token) as narrow:
            assert [change.owner for change in narrow.changes(before)] == ["vm/own"]


@pytest.mark.parametrize("name", ["a/b", "a:b", "..", ".", "a b", "ü", "50%", "a?b#c", "network:allocate"])
async def test_a_name_is_one_segment_of_a_path_whatever_is_in_it(direct: tenure.AsyncLedger, name: str) -> None:
    await direct.add_network(name)
    await direct.add_subnet(name, "10.0.0.0/28")
    await direct.add_pool(name, "10.0.0.0/28")
    held = await direct.allocate(name, owner=f"vm/{name}", key=name)

    assert (await direct.network(name)).name == name
    assert await direct.holdings(name) == await direct.holdings(owner=f"vm/{name}") == [held]
    assert "/" not in segment(name)


@pytest.mark.parametrize("key", ["k" * 255, "ü" * 200, "a b/c:d"], ids=len)
async def test_a_key_of_the_caller_may_be_any_name(direct: tenure.AsyncLedger, key: str) -> None:
    first = await direct.allocate("net", owner="vm/a", key=key)
    await direct.release_owner("vm/a")

    assert await direct.allocate("net", owner="vm/a", key=key) == first
    with pytest.raises(tenure.KeyReused) as reused:
        await direct.allocate("net", owner="vm/b", key=key)
    assert reused.value.key == key


def test_a_real_server_with_tls_is_trusted_by_the_certificate_that_is_named(tmp_path: Path) -> None:
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    make += ["-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost"]
    make += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(make, cwd=tmp_path, check=True, capture_output=True)
    assert ssl.create_default_context(cafile=tmp_path / "cert.pem")
    with serving(tmp_path, "--certificate", "cert.pem", "--certificate-key", "key.pem") as server:
        with tenure.open(f"{server.url}?ca={tmp_path / 'cert.pem'}", token=server.token) as ledger:
            assert ledger.add_network("net").name == "net"
            assert [change.actor for change in ledger.changes()][-1] == "token/admin"
        refused = _error_of(server.url, server.token)
        unknown = _error_of(f"{server.url}?ca={tmp_path / 'cert.pem'}", "tnr_wrong")

    assert isinstance(refused, tenure.StoreUnavailable)
    assert (refused.outcome, "certificate is not trusted" in str(refused)) == ("none", True)
    assert isinstance(unknown, tenure.Unauthorised)


def _error_of(url: str, token: str | None) -> tenure.TenureError:
    with tenure.open(url, token=token) as ledger, pytest.raises(tenure.TenureError) as caught:
        ledger.networks()
    return caught.value
