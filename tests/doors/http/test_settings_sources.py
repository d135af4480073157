"""``tenure serve``: settings from three places, what is refused at the start, the first token, health, TLS."""

import contextlib
import dataclasses
import http.client
import json
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.doors.http.settings import Limits, Settings
from tenure.doors.http.settings_sources import limit_fields, own_fields, read_settings, variable_of
from tenure.kernel.errors import Invalid
from tests.doors.http.processes import refused, serving

ROOT = Path(__file__).parents[3]


def test_flags_come_before_the_environment_and_the_environment_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "tenure.toml"
    file.write_text('port = 1\nhost = "127.0.0.9"\nlog = "json"\n[limits]\nbody_s = 3\nhead_s = 4\n')
    env = {"TENURE_SERVE_HOST": "127.0.0.8", "TENURE_SERVE_PORT": "2", "TENURE_SERVE_HEAD_S": "5", "OTHER": "x"}

    read = read_settings({"port": "3", "workers": None}, env, str(file))

    assert read == Settings(port=3, host="127.0.0.8", log="json", limits=Limits(body_s=3.0, head_s=5.0))


@pytest.mark.parametrize("name", [*own_fields(), *limit_fields()])
def test_every_setting_can_be_said_in_all_three_places(name: str, tmp_path: Path) -> None:
    field = (own_fields() | limit_fields())[name]
    value = {"int": 7000, "float": 7.0, "bool": True}.get(getattr(field.type, "__name__", ""), "memory:")
    value = field.metadata.get("words", [value])[-1]
    value = {"workers": 7, "keep_changes": 90.0}.get(name, 0.5 if name.endswith("_share") else value)
    file = tmp_path / "tenure.toml"
    table = "" if name in own_fields() else "[limits]\n"
    pair = {"certificate": {"certificate_key": "k"}, "certificate_key": {"certificate": "c"}}.get(name, {})
    file.write_text(f"{table}{name} = {json.dumps(value)}\n")

    said = [
        read_settings({name: value, **pair}, {}),
        read_settings(pair, {variable_of(name): str(value)}),
        read_settings(pair, {}, str(file)),
    ]

    held = [getattr(each if name in own_fields() else each.limits, name) for each in said]
    assert held == [value] * 3


@pytest.mark.parametrize(
    ("flags", "env", "text", "names"),
    [
        ({"port": "http"}, {}, "", "--port: a whole number is needed"),
        ({"port": "65536"}, {}, "", "--port: a whole number from 0 to 65535"),
        ({"port": "1" * 400}, {}, "", "--port: a whole number from 0 to 65535"),
        ({"port": "1" * 5000}, {}, "", "--port: a whole number is needed"),
        ({"grace_s": "1" * 400}, {}, "", "--grace-s: a number is needed"),
        ({"grace_s": "nan"}, {}, "", "--grace-s: a number is needed"),
        ({"log": "xml"}, {}, "", "--log: console or json is needed"),
        ({}, {"TENURE_SERVE_PROT": "1"}, "", "TENURE_SERVE_PROT: no setting goes by that name"),
        ({}, {"TENURE_SERVE_PROT": "1"}, "", "did you mean TENURE_SERVE_PORT"),
        ({}, {"TENURE_SERVE_ANONYMOUS": "maybe"}, "", "TENURE_SERVE_ANONYMOUS: true or false"),
        ({}, {}, "prot = 1", "prot: no setting goes by that name; did you mean port?"),
        ({}, {}, "body_s = 1", "it belongs under [limits]"),
        ({}, {}, "port = '1'\nport = 2", "is not TOML"),
        ({}, {}, f"port = {'1' * 5000}", "is not TOML"),
        ({}, {}, f"[limits]\nrequests_per_s = {'1' * 400}", "limits.requests_per_s: a number is needed"),
        ({}, {}, "limits = 3", "limits: a table is needed"),
        ({}, {}, "[limits]\nbody_bytes = true", "limits.body_bytes: a whole number is needed"),
        ({}, {}, "host = 7", "host: text is needed"),
        ({"certificate": "x"}, {}, "", "certificate_key: TLS needs both files"),
        ({"workers": "2", "store": "memory:"}, {}, "", "workers: a ledger in memory"),
    ],
)
def test_a_wrong_or_unknown_setting_is_refused_by_name(
    flags: dict[str, str], env: dict[str, str], text: str, names: str, tmp_path: Path
) -> None:
    file = tmp_path / "tenure.toml"
    file.write_text(text)

    with pytest.raises(Invalid) as caught:
        read_settings(flags, env, str(file))

    assert names in caught.value.message


@pytest.mark.parametrize(
    ("flags", "code", "names"),
    [
        (["--port", "x"], 2, "--port"),
        (["--config", "missing.toml"], 2, "missing.toml: No such file"),
        (["--host", "192.0.2.1"], 2, "Cannot assign requested address"),
        (["--host", "::", "--anonymous"], 2, "anonymous: only for a server that listens on loopback"),
        (["--certificate", "none.pem", "--certificate-key", "none.pem"], 2, "certificate: none.pem: No such file"),
        (["--store", "nonsense:"], 2, "names no store"),
        (["--store", "nonsense:", "--workers", "2"], 2, "names no store"),
        (["--store", "postgresql://127.0.0.1:1/x"], 6, "cannot reach PostgreSQL"),
    ],
)
def test_a_server_that_cannot_start_says_why_and_leaves_nothing(
    flags: list[str], code: int, names: str, tmp_path: Path
) -> None:
    found, error = refused(tmp_path, ["--port", "0", *flags])

    assert (found, names in error["message"]) == (code, True), error
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        _, error = refused(tmp_path, ["--port", str(server.address[1])])

    assert "Address already in use" in error["message"]


def test_without_the_extra_the_command_says_what_to_install(tmp_path: Path) -> None:
    hidden = "import sys; sys.modules['uvicorn'] = None; from tenure.doors.cli.main import main; main(['serve'])"

    done = subprocess.run(
        [sys.executable, "-c", hidden], cwd=tmp_path, capture_output=True, encoding="utf-8", check=False
    )

    assert (done.returncode, "pip install 'tenure[rest]'" in done.stderr) == (2, True), done.stderr


def test_a_new_ledger_is_made_and_its_first_token_shown_once(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        first, who = server.token, server.ask("GET", "/api/v1/self").document
    with serving(tmp_path) as server:
        second, again = server.token, server.ask("GET", "/api/v1/self", token=first)

    assert (tmp_path / "tenure.db").exists()
    assert first is not None
    assert who["admin"]
    assert second is None
    assert again.status == 200
    assert server.url.startswith("http://127.0.0.1:")


def test_the_first_token_can_go_to_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    with serving(tmp_path, "--first-token-file", "first") as server:
        shown, written = server.token, (tmp_path / "first").read_text().strip()
        answer = server.ask("GET", "/api/v1/self", token=written)

    assert shown is None
    assert answer.document["admin"]
    assert stat.S_IMODE((tmp_path / "first").stat().st_mode) == 0o600


def test_health_tells_of_the_process_and_readiness_of_the_store(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        alive, ready = (server.ask("GET", path, token=None) for path in ("/healthz", "/readyz"))
        head = server.ask("HEAD", "/readyz", token=None)
        wrong = server.ask("POST", "/readyz", token=None)

    assert [answer.status for answer in (alive, ready, head, wrong)] == [200, 200, 200, 405]
    assert head.body == b""
    assert head.headers["content-length"] == str(len(ready.body))


def test_head_answers_as_get_does_without_the_body(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        get, head = (server.ask(method, "/api/v1/networks") for method in ("GET", "HEAD"))
        stream = server.ask("HEAD", "/api/v1/events")

    assert (get.status, head.status, head.body) == (200, 200, b"")
    assert head.headers["content-length"] == str(len(get.body))
    assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")


def test_tls_by_certificate_files(tmp_path: Path) -> None:
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    make += ["-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost"]
    make += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(make, cwd=tmp_path, check=True, capture_output=True)
    flags = ("--certificate", "cert.pem", "--certificate-key", "key.pem")

    with serving(tmp_path, *flags) as server:
        trusting = ssl.create_default_context(cafile=tmp_path / "cert.pem")
        connection = http.client.HTTPSConnection(*server.address, context=trusting, timeout=10)
        with contextlib.closing(connection):
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            body = answer.read()
        code, error = refused(tmp_path, ["--port", "0", "--certificate", "key.pem", "--certificate-key", "key.pem"])

    assert server.url.startswith("https://")
    assert (answer.status, json.loads(body)["status"]) == (200, "ready")
    assert (code, "certificate: no certificate with its key" in error["message"]) == (2, True)


def test_the_documents_tell_every_setting() -> None:
    page = (ROOT / "docs" / "howto" / "serve.md").read_text("utf-8")

    untold = [name for name in own_fields() | limit_fields() if f"`{name}`" not in page]
    assert untold == []
    assert [each.name for each in dataclasses.fields(Settings) if each.name not in own_fields()] == ["limits"]
