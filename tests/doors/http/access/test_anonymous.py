"""Without a token: only where it was asked for, only reading, only on this machine."""

from typing import Any

import pytest

from tenure.doors.http.access.peer import check_anonymous, is_loopback, is_own_page, is_secure, peer_of
from tenure.doors.http.settings import Settings
from tenure.kernel.errors import Invalid
from tests.doors.http.stage import running

ELSEWHERE = [
    {"X-Forwarded-For": "192.0.2.7"},
    {"Forwarded": "for=192.0.2.7"},
    {"X-Real-IP": "192.0.2.7"},
    {"Host": "rebound.example.org"},
    {"Host": "127.0.0.1.example.org:8123"},
    {"Host": "[::1].example.org"},
]


async def test_nobody_reads_without_a_token_unless_it_was_asked_for() -> None:
    async with running() as server, server.client("") as client:
        answer = await client.ask("GET", "/networks")

    assert answer.code == "unauthorised"


async def test_where_it_was_asked_for_everybody_reads_and_changes_nothing() -> None:
    async with running(anonymous=True) as server, server.client("") as client:
        allocate = {"operations": [{"op": "allocate", "network": "net1", "owner": "instance/a"}]}
        mine = await client.get("/self")
        listed = await client.ask("GET", "/networks")
        answers = [
            await client.ask("POST", "/networks", {"name": "net1"}),
            await client.ask("POST", "/networks/net1:allocate", {"owner": "instance/a"}),
            await client.ask("POST", ":apply", allocate),
            await client.ask("GET", "/tokens"),
        ]

    assert (mine["anonymous"], mine["read"], mine["admin"], mine["csrf"]) == (True, True, False, None)
    assert listed.status == 200
    assert [answer.code for answer in answers] == ["forbidden"] * 4


async def test_a_wrong_token_is_refused_even_there_and_an_old_cookie_is_as_none() -> None:
    async with running(anonymous=True) as server, server.client("") as client:
        token = await client.ask("GET", "/self", token=f"tnr_{0:016}_wrong")
        cookie = await client.ask("GET", "/self", headers={"Cookie": "tenure=old"})

    assert token.code == "unauthorised"
    assert cookie.json["anonymous"]


async def test_a_proxy_and_a_page_from_elsewhere_are_not_this_machine() -> None:
    async with running(anonymous=True) as server, server.client("") as client:
        answers = [await client.ask("GET", "/networks", headers=headers) for headers in ELSEWHERE]

    assert [answer.status for answer in answers] == [401] * len(ELSEWHERE)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "ipam.example.org", ""])  # noqa: S104 - refused
def test_a_server_that_others_reach_does_not_start_with_it(host: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_anonymous(Settings(host=host, anonymous=True))

    assert refused.value.field == "anonymous"
    assert "loopback" in refused.value.message


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.53", "::1", "[::1]", "localhost"])
def test_a_server_on_loopback_may_have_it(host: str) -> None:
    check_anonymous(Settings(host=host, anonymous=True))

    assert is_loopback(host)


@pytest.mark.parametrize("host", ["localhost.example.org", "0.0.0.0", "10.0.0.1", "", "1"])  # noqa: S104 - refused
def test_nothing_else_is_loopback(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("not an address", "not an address"),
    ],
)
def test_failures_are_counted_by_address_and_in_ipv6_by_subnet(address: str, peer: str) -> None:
    scope: dict[str, Any] = {"client": (address, 1)}

    assert peer_of(scope) == peer
    assert peer_of({"client": None}) == ""


@pytest.mark.parametrize(
    ("origin", "host", "own"),
    [
        (b"http://127.0.0.1:8123", b"127.0.0.1:8123", True),
        (b"https://IPAM.example.org", b"ipam.example.org", True),
        (b"https://ipam.example.org:444", b"ipam.example.org", False),
        (b"null", b"ipam.example.org", False),
        (b"null", b"", False),
        (b"", b"", False),
    ],
)
def test_a_page_is_ours_if_it_comes_from_the_host_that_is_asked(origin: bytes, host: bytes, own: bool) -> None:
    assert is_own_page({b"origin": origin, b"host": host}) is own
    assert is_own_page({b"host": host})


@pytest.mark.parametrize(
    ("settings", "scheme", "host", "secure"),
    [
        (Settings(), "http", b"localhost:8123", False),
        (Settings(), "http", b"[::1]:8123", False),
        (Settings(), "http", b"ipam.example.org", True),
        (Settings(), "http", b"", True),
        (Settings(), "https", b"localhost", True),
        (Settings(certificate="server.pem"), "http", b"localhost", True),
        (Settings(host="192.0.2.7"), "http", b"localhost", True),
    ],
)
def test_a_cookie_travels_in_clear_only_inside_one_machine(
    settings: Settings, scheme: str, host: bytes, secure: bool
) -> None:
    assert is_secure({"scheme": scheme}, {b"host": host}, settings) is secure
