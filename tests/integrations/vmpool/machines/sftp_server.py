"""A VM's sftp server on loopback, as the adaptor's images have it: one user, one key, and ``/media`` as the root."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from tenure.integrations.vmpool.machines.sftp_reboot import SftpAccess


@dataclass(frozen=True)
class SftpVM:
    """A server with its folder, and how it is reached."""

    access: SftpAccess
    media: Path
    host_key: asyncssh.SSHKey

    @property
    def reboot_file(self) -> Path:
        """Return where the reboot file lands."""
        return self.media / "cidata" / "reboot"


@contextlib.asynccontextmanager
async def sftp_vm(folder: Path) -> AsyncIterator[SftpVM]:
    """Run a server with new keys in a folder."""
    media = folder / "media"
    (media / "cidata").mkdir(parents=True)
    host_key, user_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    user_key.write_private_key(folder / "id")
    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[host_key],
        authorized_client_keys=asyncssh.import_authorized_keys(user_key.export_public_key().decode()),
        sftp_factory=lambda channel: asyncssh.SFTPServer(channel, chroot=str(media).encode()),
    )
    try:
        yield SftpVM(SftpAccess(key=str(folder / "id"), port=server.get_port(), timeout_s=5), media, host_key)
    finally:
        server.close()
        await server.wait_closed()
