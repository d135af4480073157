"""Files put on VMs by sftp: the one that makes a VM reboot (VS3), and the user data of a new instance.

asyncssh comes with the extra ``vmpool``, and is imported when the first file is put.
"""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

from tenure.integrations.vmpool.machines.vm_cleanup import Cleanup, CleanupFailed
from tenure.integrations.vmpool.machines.vm_port import SSH_PORT
from tenure.integrations.vmpool.state.argument_checks import check_port, check_seconds, read_seconds
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tenure.kernel.errors import Invalid

if TYPE_CHECKING:
    import asyncssh

REBOOT_FILE = "cidata/reboot"
USER_DATA_FILE = "cidata/user-data"
"""Relative: sshd of such a VM shows ``/media`` as the root."""
REBOOT = b"reboot"
SSH_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class SftpAccess:
    """How VMs are reached by sftp; the defaults and the names in the environment are those of the adaptor."""

    username: str = "peerpod"
    key: str = "~/.ssh/id_rsa"
    """The file of the private key."""
    port: int = SSH_PORT
    timeout_s: float = SSH_TIMEOUT_S
    host_keys: str = ""
    """A folder with the public keys that VMs may show; empty: any key will do, as with the adaptor."""
    reboot_file: str = REBOOT_FILE
    user_data_file: str = USER_DATA_FILE

    def __post_init__(self) -> None:
        check_port(self.port)
        check_seconds(self.timeout_s, "timeout_s")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None, **given: Any) -> Self:
        """Read the adaptor's variables; what is given counts more."""
        found = os.environ if environment is None else environment
        read: dict[str, Any] = {
            field: found[name].strip() for field, name in VARIABLES.items() if found.get(name, "").strip()
        }
        if "timeout_s" in read:
            read["timeout_s"] = read_seconds(read["timeout_s"], VARIABLES["timeout_s"])
        return cls(**(read | given))


VARIABLES = {
    "username": "SSH_USERNAME",
    "key": "SSH_PRIV_KEY_PATH",
    "timeout_s": "SSH_TIMEOUT",
    "host_keys": "SSH_HOST_KEY_ALLOWLIST_DIR",
}


def sftp_reboot(access: SftpAccess) -> Cleanup:
    """Return a cleanup that puts the reboot file on a VM."""

    async def clean(allocation: VMAllocation) -> None:
        await put_file(access, allocation.ip, access.reboot_file, REBOOT)

    return clean


async def put_file(access: SftpAccess, ip: str, path: str, content: bytes) -> None:
    """Put a file on a VM; raise ``CleanupFailed`` with the reason if it is not certain that the VM has all of it.

    A VM that reboots as soon as it sees the file may hang up too early: then it counts as failed, and is tried again.
    """
    asyncssh = _asyncssh()
    where = f"sftp {access.username}@{ip} port {access.port} {path}"
    try:
        async with asyncssh.connect(ip, access.port, options=_options(access)) as connection:
            writing = asyncio.ensure_future(_write(connection, path, content))
            try:
                await asyncio.shield(writing)
            except asyncio.CancelledError:
                # A VM that has stalled would not say goodbye either; without a connection the writing ends at once.
                connection.abort()
                await asyncio.gather(writing, return_exceptions=True)
                raise
    except (asyncssh.Error, OSError, ValueError) as error:
        raise CleanupFailed(f"{where}: {error or type(error).__name__}") from error


async def _write(connection: "asyncssh.SSHClientConnection", path: str, content: bytes) -> None:
    """Write a file, and return when the VM has said that it is written; closing the connection ends the rest."""
    sftp = await connection.start_sftp_client()
    file = await sftp.open(path, "wb")
    await file.write(content)
    await file.close()


def _options(access: SftpAccess) -> "asyncssh.SSHClientConnectionOptions":
    """Return what a connection needs; nothing else is taken from the account that runs this."""
    options: asyncssh.SSHClientConnectionOptions = _asyncssh().SSHClientConnectionOptions(
        username=access.username,
        client_keys=[str(Path(access.key).expanduser())],
        known_hosts=_known_hosts(access.host_keys),
        config=None,
        agent_path=None,
        connect_timeout=access.timeout_s,
        login_timeout=access.timeout_s,
    )
    return options


def _known_hosts(
    folder: str,
) -> tuple[list["asyncssh.SSHKey"], list["asyncssh.SSHKey"], list["asyncssh.SSHKey"]] | None:
    """Return the keys that any VM may show, or None if they may show any key."""
    if not folder:
        return None
    asyncssh = _asyncssh()
    keys = [
        key for file in sorted(Path(folder).iterdir()) if file.is_file() for key in asyncssh.read_public_key_list(file)
    ]
    if not keys:
        raise CleanupFailed(f"{folder} has no public keys")
    return keys, [], []


def _asyncssh() -> ModuleType:
    """Import asyncssh, or say which extra has it."""
    try:
        import asyncssh
    except ImportError as error:
        raise Invalid("sftp needs asyncssh: pip install 'tenure[vmpool]'") from error
    return asyncssh
