"""The files of the page: sent with their types and a strict policy, from memory, and nothing else by any trick."""

import http.client
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import tenure.doors.http
from tenure.doors.http.non_api.web_files import read_files
from tenure.kernel.plan.plan_model import Policy
from tests.doors.http.stage import Client, Server, running

WEB = Path(tenure.doors.http.__file__).parent / "web"
FILES = read_files()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with running() as started:
        yield started


def ask(server: Server, path: str, method: str = "GET") -> int:
    """Send a path as it is written: clients of a better kind would tidy it up."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        connection.putrequest(method, path, skip_host=False)
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


async def get(client: Client, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    answer = await client.ask("GET", path, below="", token="", headers=headers)
    return answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.body


async def test_files_come_with_their_type_a_policy_and_an_etag(server: Server) -> None:
    async with server.client("") as client:
        page = await get(client, "/")
        script = await get(client, "/web/main.js")
        style = await get(client, "/web/base.css")

    assert [found[0] for found in (page, script, style)] == [200, 200, 200]
    assert page[1]["content-type"] == "text/html; charset=utf-8"
    assert script[1]["content-type"] == "text/javascript; charset=utf-8"
    assert style[1]["content-type"] == "text/css; charset=utf-8"
    assert script[2] == (WEB / "main.js").read_bytes()
    for _, head, _ in (page, script, style):
        assert head["x-frame-options"] == "DENY"
        assert head["referrer-policy"] == "no-referrer"
        assert head["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in head["content-security-policy"]
        assert "unsafe" not in head["content-security-policy"]
        assert head["etag"]


async def test_a_file_that_is_known_is_not_sent_again(server: Server) -> None:
    async with server.client("") as client:
        _, head, _ = await get(client, "/web/main.js")
        known = await get(client, "/web/main.js", **{"If-None-Match": f'"other", W/{head["etag"]}'})
        other = await get(client, "/web/main.js", **{"If-None-Match": '"other"'})

    assert (known[0], known[2]) == (304, b"")
    assert other[0] == 200


async def test_nothing_else_is_reached_by_any_path(server: Server) -> None:
    tricks = [
        "/web/../pages.py",
        "/web/%2e%2e/pages.py",
        "/web/..%2fpages.py",
        "/web/%2e%2e%2fpages.py",
        "/web//etc/passwd",
        "/web/",
        "/web",
        "/web/main.js/",
        "/web/MAIN.js",
        "/web/main.js%00.css",
        "/web/index.html",
        "//",
        "/index.html",
        "/pages.py",
    ]

    assert {path: ask(server, path) for path in tricks} == dict.fromkeys(tricks, 404)


async def test_files_are_only_read(server: Server) -> None:
    assert ask(server, "/", "HEAD") == 200
    assert {method: ask(server, "/", method) for method in ("POST", "PUT", "DELETE")} == {
        "POST": 405,
        "PUT": 405,
        "DELETE": 405,
    }


def test_every_file_that_is_named_is_there_and_every_file_is_named() -> None:
    named = {"/"}
    for path in WEB.iterdir():
        text = path.read_text("utf-8")
        named |= set(re.findall(r'(?:href|src)="(/web/[\w.-]+)"', text))
        named |= {f"/web/{name}" for name in re.findall(r'from "\./([\w.-]+)"', text)}

    assert {path.decode() for path in FILES} == named


def test_files_are_short_and_keep_to_the_policy() -> None:
    texts = {path.name: path.read_text("utf-8") for path in WEB.iterdir()}

    assert {name: len(text.splitlines()) for name, text in texts.items() if len(text.splitlines()) > 300} == {}
    markup = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\sstyle=|\son[a-z]+="
    )
    assert [name for name, text in texts.items() if markup.search(text)] == []
    assert [name for name, text in texts.items() if "://" in text.replace("http://www.w3.org/2000/svg", "")] == []


def test_the_page_offers_every_policy_that_there_is() -> None:
    listed = re.search(r"const POLICIES = \[(.*?)\n\];", (WEB / "actions.js").read_text("utf-8"), re.DOTALL)

    assert listed is not None
    assert re.findall(r'\["(\w*)", ', listed[1]) == ["", *Policy]
