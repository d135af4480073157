"""A VM's sftp server on loopback, as the adaptor's images have it: one user, one key, and ``/media`` as the root."""

import asyncio
import contextlib
import io
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


class StalledFiles(asyncssh.SFTPServer):
    """The files of a VM that lets everybody in, and then says nothing more."""

    def open(self, path: bytes, pflags: int, attrs: asyncssh.SFTPAttrs) -> object:
        """Open nothing, so nothing has to be closed."""
        return io.BytesIO()

    async def write(self, file_obj: object, offset: int, data: bytes) -> int:
        """Never answer."""
        await asyncio.Event().wait()
        raise AssertionError("an event that nobody sets")

    async def close(self, file_obj: object) -> None:
        """Never answer."""
        await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def sftp_vm(folder: Path, files: type[asyncssh.SFTPServer] = asyncssh.SFTPServer) -> AsyncIterator[SftpVM]:
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
        sftp_factory=lambda channel: files(channel, chroot=str(media).encode()),
    )
    try:
        yield SftpVM(SftpAccess(key=str(folder / "id"), port=server.get_port(), timeout_s=5), media, host_key)
    finally:
        server.close()
        await server.wait_closed()
