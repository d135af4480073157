"""A certificate that others keep in a folder, as Secrets are mounted: it is shown, also when it is replaced."""

import asyncio
import logging
import ssl
from pathlib import Path

from tenure.integrations.kubernetes.runtime.webhooks.webhook_certificates import CERTIFICATE, KEY
from tenure.integrations.kubernetes.runtime.webhooks.webhook_host import WebhookHost

LOG = logging.getLogger(__name__)

LOOKS_EVERY_S = 10.0


async def show_mounted(host: WebhookHost, folder: Path, every_s: float = LOOKS_EVERY_S) -> None:
    """Show the certificate of a folder until cancelled; files that are missing or do not fit are waited for."""
    shown = b""
    while True:
        certificate, key = folder / CERTIFICATE, folder / KEY
        try:
            content = certificate.read_bytes() + key.read_bytes()
            if content != shown:
                host.use_certificate(certificate, key)
                shown = content
        # A folder that is being replaced has a new certificate beside an old key for a moment.
        except (OSError, ValueError, ssl.SSLError) as error:
            LOG.warning("certificate of webhooks in %s: %s", folder, error)
        await asyncio.sleep(every_s)
