"""Files are written completely or not at all; pipes and devices are never replaced."""

import errno
import os
import stat

import pytest

from cli_cases import reading
from melc.export.files import replacing


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "model.json"
    target.write_text("old")

    def write_half():
        with replacing(target) as draft:
            draft.write_text("ne")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_half()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_the_draft_keeps_the_ending_and_the_usual_permissions(tmp_path):
    plain = tmp_path / "plain"
    plain.touch()
    with replacing(tmp_path / "picture.svg") as draft:
        assert draft.suffix == ".svg"
        draft.write_text("<svg/>")
    written = tmp_path / "picture.svg"
    assert stat.S_IMODE(written.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_missing_folder_is_an_error_before_any_work(tmp_path):
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "nowhere" / "x.csv"):
        pytest.fail("the body must not run")


def test_the_mode_of_the_old_file_is_kept(tmp_path):
    target = tmp_path / "model.json"
    target.touch()
    target.chmod(0o640)
    with replacing(target) as draft:
        draft.write_text("new")
    assert (target.read_text(), stat.S_IMODE(target.stat().st_mode)) == ("new", 0o640)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_of_the_old_file_is_kept(tmp_path):
    target = tmp_path / "model.json"
    target.touch()
    os.chown(target, 12345, 23456)
    with replacing(target) as draft:
        draft.write_text("new")
    assert (target.stat().st_uid, target.stat().st_gid) == (12345, 23456)


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_a_link(tmp_path, exists):
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "model.json", tmp_path / "model.json"
    if exists:
        target.write_text("old")
    link.symlink_to(target)
    with replacing(link) as draft:
        draft.write_text("new")
    assert (link.is_symlink(), target.read_text()) == (True, "new")
    assert [path.name for path in target.parent.iterdir()] == ["model.json"]


def test_a_pipe_is_written_to_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = reading(pipe)
    with replacing(pipe) as draft:
        draft.write_text("through")
    assert (pipe.is_fifo(), draft.exists()) == (True, False)
    assert draft.parent != tmp_path
    assert read.get(timeout=10) == b"through"


def test_a_device_is_written_to_and_stays(tmp_path):
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        with open(device, "wb"):
            pass
    except PermissionError:
        pytest.skip("needs the right to make and open device nodes")
    with replacing(device) as draft:
        draft.write_text("gone")
    assert device.is_char_device()
    assert [path.name for path in tmp_path.iterdir()] == ["null"]


def test_a_full_disk_is_reported_with_the_name_of_the_file(tmp_path):
    target = tmp_path / "model.json"
    with pytest.raises(OSError, match="No space") as caught, replacing(target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # as write does
    assert (caught.value.filename, list(tmp_path.iterdir())) == (str(target), [])
