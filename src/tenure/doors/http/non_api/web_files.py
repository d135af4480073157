"""The web page: a handful of static files, read once, sent from memory, under a policy that lets in nothing else."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from tenure.doors.http.routing.read_request import Scope, Send
from tenure.wire.http_errors import MethodNotAllowed

KINDS = {
    "html": b"text/html; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""No inline script or style, nothing from elsewhere, no frame around it, and no text that could become markup."""

HEAD = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    # Browsers ask for each file again: after an upgrade no old file may meet a new one in a page.
    (b"cache-control", b"no-cache"),
]


@dataclass(frozen=True, slots=True)
class File:
    """A file of the page, ready to be sent."""

    body: bytes
    kind: bytes
    etag: bytes


class Pages:
    """Serves the page's files. A path is looked up whole, so that no trick with it reaches anything else."""

    def __init__(self) -> None:
        self._files = read_files()

    async def serve(self, scope: Scope, headers: Mapping[bytes, bytes], send: Send, request_id: str) -> bool:
        """Send the file that lies at a path; tell whether one does."""
        file = self._files.get(bytes(scope["raw_path"]))
        if file is None:
            return False
        if scope["method"] not in ("GET", "HEAD"):
            raise MethodNotAllowed(scope["method"], ["GET", "HEAD"])
        head = [*HEAD, (b"etag", file.etag), (b"x-request-id", request_id.encode())]
        if _known(headers.get(b"if-none-match", b""), file.etag):
            await _send(send, 304, head, b"")
            return True
        head += [(b"content-type", file.kind), (b"content-length", str(len(file.body)).encode())]
        await _send(send, 200, head, b"" if scope["method"] == "HEAD" else file.body)
        return True


def read_files() -> dict[bytes, File]:
    """Read what lies in ``web``, by the path it is asked for with; the page itself lies at the root."""
    files: dict[bytes, File] = {}
    for each in (resources.files("tenure.doors.http") / "web").iterdir():
        kind = KINDS.get(each.name.rpartition(".")[2])
        if kind is not None:
            body = each.read_bytes()
            file = File(body, kind, f'"{hashlib.sha256(body).hexdigest()[:32]}"'.encode())
            files[b"/" if each.name == "index.html" else f"/web/{each.name}".encode()] = file
    return files


def _known(said: bytes, etag: bytes) -> bool:
    """Tell whether the asker has the file already."""
    return said.strip() == b"*" or etag in (each.strip().removeprefix(b"W/") for each in said.split(b","))


async def _send(send: Send, status: int, head: list[tuple[bytes, bytes]], body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
