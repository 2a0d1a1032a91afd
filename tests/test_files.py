"""Files are written completely or not at all."""

import stat

import pytest

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
