"""The reboot file is put by sftp on a real server (VS3); what goes wrong is a failed cleanup with its cause."""

import asyncio
import dataclasses
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest

from tenure.integrations.vmpool.machines.sftp_reboot import SftpAccess, put_file, sftp_reboot
from tenure.integrations.vmpool.machines.vm_cleanup import run_cleanup
from tenure.kernel.errors import Invalid
from tests.integrations.vmpool.machines.sftp_server import SftpVM, sftp_vm
from tests.integrations.vmpool.vms import allocation


@pytest.fixture
async def vm(tmp_path: Path) -> AsyncIterator[SftpVM]:
    async with sftp_vm(tmp_path) as server:
        yield server


async def cause(access: SftpAccess, timeout_s: float = 10) -> str:
    return (await run_cleanup(sftp_reboot(access), allocation("127.0.0.1", "a"), timeout_s)).cause


async def test_vs3_the_reboot_file_is_put_and_put_again(vm: SftpVM) -> None:
    assert await cause(vm.access) == ""
    assert vm.reboot_file.read_bytes() == b"reboot"
    assert await cause(vm.access) == ""


async def test_any_file_can_be_put(vm: SftpVM) -> None:
    await put_file(vm.access, "127.0.0.1", vm.access.user_data_file, b"#cloud-config\n" * 10_000)

    assert (vm.media / "cidata" / "user-data").read_bytes() == b"#cloud-config\n" * 10_000


async def test_a_folder_of_host_keys_admits_its_vms_and_no_others(vm: SftpVM, tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    checked = dataclasses.replace(vm.access, host_keys=str(allowed))

    assert "has no public keys" in await cause(checked)
    asyncssh.generate_private_key("ssh-ed25519").write_public_key(allowed / "other.pub")
    assert "Host key is not trusted" in await cause(checked)
    assert not vm.reboot_file.exists()
    vm.host_key.write_public_key(allowed / "own.pub")
    assert await cause(checked) == ""


async def test_what_the_vm_refuses_is_the_cause(vm: SftpVM, tmp_path: Path) -> None:
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(tmp_path / "stranger")

    assert "Permission denied" in await cause(dataclasses.replace(vm.access, key=str(tmp_path / "stranger")))
    assert "No such file" in await cause(dataclasses.replace(vm.access, reboot_file="nowhere/reboot"))
    assert "No such file" in await cause(dataclasses.replace(vm.access, key=str(tmp_path / "no-key")))


async def test_a_vm_that_takes_connections_and_says_nothing_has_failed_in_time(vm: SftpVM) -> None:
    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as silent:
        port = silent.sockets[0].getsockname()[1]
        silent_vm = dataclasses.replace(vm.access, port=port, timeout_s=0.3)

        assert "sftp peerpod@127.0.0.1" in await cause(silent_vm)
        assert await cause(dataclasses.replace(silent_vm, timeout_s=30), timeout_s=0.3) == "it took longer than 0.3 s"


def test_the_adaptors_variables_are_read_and_what_is_given_counts_more() -> None:
    found = {
        "SSH_USERNAME": "ann",
        "SSH_PRIV_KEY_PATH": "/etc/key",
        "SSH_TIMEOUT": "7",
        "SSH_HOST_KEY_ALLOWLIST_DIR": "/etc/keys",
    }

    assert SftpAccess.from_environment(found) == SftpAccess("ann", "/etc/key", 22, 7.0, "/etc/keys")
    assert SftpAccess.from_environment(found, username="bob", port=2222).port == 2222
    assert SftpAccess.from_environment({"SSH_TIMEOUT": " "}) == SftpAccess()
    with pytest.raises(Invalid, match="SSH_TIMEOUT"):
        SftpAccess.from_environment({"SSH_TIMEOUT": "soon"})


def test_nothing_but_sftp_itself_needs_asyncssh() -> None:
    text = """
import sys
sys.modules["asyncssh"] = None
import asyncio
import tenure.integrations.vmpool.pool_agent
from tenure.integrations.vmpool.machines.sftp_reboot import SftpAccess, put_file
try:
    asyncio.run(put_file(SftpAccess(), "127.0.0.1", "f", b""))
except Exception as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, encoding="utf-8", check=True)

    assert done.stdout == "sftp needs asyncssh: pip install 'tenure[vmpool]'\n"
