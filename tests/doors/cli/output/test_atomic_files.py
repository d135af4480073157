"""Files that commands write: replaced whole where they are files, written into where they are not."""

import os
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from tenure.doors.cli.output.atomic_files import whole_file, write_whole
from tests.doors.cli.processes import TENURE, surroundings
from tests.doors.cli.site import Site

WRITERS = [
    ("export", "--output", "out"),
    ("render", "hosts", "net1", "--output", "out"),
    ("network", "export-ganeti", "out"),
    ("network", "convert-runtime", "web-7.runtime", "--output", "out"),
]
"""Every command that writes a file of the user's choice."""

writers = pytest.mark.parametrize("words", WRITERS, ids=lambda words: " ".join(words[:2]))


@writers
def test_a_pipe_is_written_into_and_stays_a_pipe(machines: Site, words: tuple[str, ...]) -> None:
    pipe = machines.folder / "out"
    os.mkfifo(pipe)
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text("utf-8")), daemon=True)
    reader.start()
    machines.text(*words)
    reader.join(timeout=20)

    assert received
    assert received[0] != ""
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_whatever_is_no_file_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file stands in for a device, for a device that got lost would be missed."""
    stand_in = tmp_path / "device"
    stand_in.write_text("as it was", "utf-8")
    number = stand_in.stat().st_ino
    monkeypatch.setattr(stat, "S_ISREG", lambda mode: False)
    write_whole(stand_in, "written")

    assert (stand_in.stat().st_ino, stand_in.read_text("utf-8")) == (number, "written")
    assert list(tmp_path.iterdir()) == [stand_in]


def test_standard_output_by_its_name_goes_on_where_it_is(site: Site) -> None:
    with (site.folder / "log").open("w") as log:
        log.write("before\n")
        log.flush()
        words = ["export", "--format", "csv", "--output", "/dev/stdout"]
        subprocess.run([*TENURE, *words], env=surroundings(site.url), stdout=log, check=True)

    first, head, *_, last = (site.folder / "log").read_text("utf-8").splitlines()
    assert (first, head.partition(",")[0], last) == ("before", "network", "wrote /dev/stdout")


@writers
def test_links_are_followed_and_stay(machines: Site, words: tuple[str, ...]) -> None:
    elsewhere = machines.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "target").write_text("old", "utf-8")
    (machines.folder / "near").symlink_to("elsewhere/target")
    (machines.folder / "out").symlink_to("near")
    machines.text(*words)

    assert (machines.folder / "out").readlink() == Path("near")
    assert (machines.folder / "near").is_symlink()
    assert (elsewhere / "target").read_text("utf-8") not in ("", "old")
    assert list(elsewhere.iterdir()) == [elsewhere / "target"]


def test_a_link_to_nothing_is_followed_too(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("new")
    write_whole(tmp_path / "link", "text")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "new").read_text("utf-8") == "text"


@writers
@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_a_file_that_was_there_keeps_its_mode(machines: Site, words: tuple[str, ...], mode: int) -> None:
    file = machines.folder / "out"
    file.write_text("old", "utf-8")
    file.chmod(mode)
    machines.text(*words)

    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert file.read_text("utf-8") != "old"


def test_a_runtime_file_that_is_rewritten_keeps_its_mode(machines: Site) -> None:
    runtime = machines.folder / "web-7.runtime"
    runtime.chmod(0o600)
    machines.text("network", "export-ganeti", "out", "--runtime", "web-7.runtime")

    assert stat.S_IMODE(runtime.stat().st_mode) == 0o600


def test_nobody_can_read_a_file_of_ones_own_while_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("old", "utf-8")
    file.chmod(0o600)

    with whole_file(file) as part:
        assert stat.S_IMODE(os.fstat(part.fileno()).st_mode) == 0o600
        assert file.read_text("utf-8") == "old"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_that_was_there_keeps_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "theirs"
    file.write_text("old", "utf-8")
    os.chown(file, 12345, 23456)
    write_whole(file, "new")

    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 23456)


def test_an_owner_that_cannot_be_kept_does_not_stop_the_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    file = tmp_path / "theirs"
    file.write_text("old", "utf-8")
    monkeypatch.setattr(os, "fchown", refuse)
    write_whole(file, "new")

    assert file.read_text("utf-8") == "new"


def test_a_new_file_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "new", "text")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_file_may_have_the_longest_name_there_is(tmp_path: Path) -> None:
    write_whole(tmp_path / ("n" * 255), "text")

    assert (tmp_path / ("n" * 255)).read_text("utf-8") == "text"


def test_what_goes_wrong_in_a_pipe_is_told_with_its_name(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writing = whole_file(pipe)
    file = writing.__enter__()
    os.close(reading)
    file.write("nobody reads")

    with pytest.raises(BrokenPipeError) as caught:
        writing.__exit__(None, None, None)
    assert caught.value.filename == str(pipe)


@pytest.mark.parametrize("name", ["", ".", "loop", "gone/x"])
def test_a_name_that_cannot_be_written_is_a_file_problem(machines: Site, name: str) -> None:
    (machines.folder / "loop").symlink_to("loop")
    before = sorted(machines.folder.iterdir())
    code, _ = machines.error("export", "--output", name)

    assert code == 2
    assert sorted(machines.folder.iterdir()) == before
