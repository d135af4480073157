"""A certificate in a folder is shown, waited for, and exchanged when it is replaced (KP1)."""

import asyncio
import datetime as dt
import ssl
from pathlib import Path

from tenure.integrations.kubernetes.runtime.webhooks import serving_certificates
from tenure.integrations.kubernetes.runtime.webhooks.mounted_certificate import show_mounted
from tenure.integrations.kubernetes.runtime.webhooks.webhook_host import WebhookHost


def put(folder: Path) -> ssl.SSLContext:
    """Put a new certificate into the folder, and return what trusts nothing else."""
    made = serving_certificates.make_certificate(["127.0.0.1"], dt.timedelta(days=1))
    (folder / "tls.crt").write_bytes(made.certificate)
    (folder / "tls.key").write_bytes(made.key)
    return ssl.create_default_context(cadata=made.authority.decode())


async def is_shown(port: int, trusted: ssl.SSLContext) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted)
    except (ssl.SSLError, ConnectionError):
        return False
    writer.close()
    return True


async def until_shown(port: int, trusted: ssl.SSLContext) -> None:
    async with asyncio.timeout(10):
        while not await is_shown(port, trusted):  # noqa: ASYNC110 - a server is polled
            await asyncio.sleep(0.02)


async def test_a_certificate_is_waited_for_shown_and_exchanged(tmp_path: Path) -> None:
    host = WebhookHost()
    runner, port = await host.start("127.0.0.1", 0)
    showing = asyncio.create_task(show_mounted(host, tmp_path, every_s=0.02))
    try:
        await asyncio.sleep(0.1)
        assert not host.has_certificate
        first = put(tmp_path)
        await until_shown(port, first)
        (tmp_path / "tls.key").write_text("half of a key", "utf-8")
        await asyncio.sleep(0.1)
        assert await is_shown(port, first)
        second = put(tmp_path)
        await until_shown(port, second)
        assert not await is_shown(port, first)
    finally:
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)
        await runner.cleanup()
