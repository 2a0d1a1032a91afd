"""Write files atomically, completely or not at all, and texts that can be encoded."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numpy.typing import NDArray


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path to write to; it replaces ``path`` at the end of the block if no error was raised.

    The new file has the permissions of the old one. If ``path`` is a symbolic link, the file that it points to is
    replaced. Pipes and devices are never replaced: what was written is copied to them at the end of the block.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "note.txt") as draft:
    ...         _ = draft.write_text("done")
    ...     (Path(folder) / "note.txt").read_text(), len(list(Path(folder).iterdir()))
    ('done', 1)
    """
    target = Path(path)
    special = is_special(target)
    if not special:
        target = Path(os.path.realpath(target))
    # The same suffix, because matplotlib and pandas choose the format by it; the same folder, because replacing a file
    # is atomic only within one file system.
    folder = None if special else target.parent
    handle, name = tempfile.mkstemp(prefix=".melc-", suffix=target.suffix, dir=folder)
    os.close(handle)
    draft = Path(name)
    try:
        if special:
            yield draft
            with open(draft, "rb") as written, open(target, "wb") as stream:
                shutil.copyfileobj(written, stream)
        else:
            _take_permissions(draft, target)
            yield draft
            draft.replace(target)
    except OSError as error:
        if error.errno == errno.ENOSPC and not error.filename:  # raised by a write, which does not know the name
            error.filename = os.fspath(path)
        raise
    finally:
        draft.unlink(missing_ok=True)


def encodable(text: str, language: str) -> str:
    """Return a text, or raise ``ValueError`` if UTF-8, in which the language is written, cannot express it.

    Examples
    --------
    >>> encodable("dose \\ud800", "SQL")
    Traceback (most recent call last):
        ...
    ValueError: 'dose \\ud800' contains half of a character, which SQL cannot express; rename it.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        part = text[max(0, error.start - 20) : error.end + 20]
        raise ValueError(
            f"{part!r} contains half of a character, which {language} cannot express; rename it."
        ) from None
    return text


def label_error(classes: NDArray[Any], language: str) -> ValueError:
    """Return the error of labels, shape (n_classes,), that a language has no type for, such as dates."""
    shown = ", ".join(map(str, classes[:3]))
    return ValueError(
        f"The labels {shown} of type {classes.dtype} cannot be written as {language}: use strings, integers, floats or "
        "booleans as labels, such as y.astype(str)."
    )


def check_writable(path: Path) -> None:
    """Raise ``ValueError`` if no file can be written at a path; pipes and devices can."""
    if is_special(path):
        return
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file.")
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise ValueError(f"{path} is a symbolic link that leads back to itself; give the name of a file.")
    folder = target.parent
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{path}: {folder} is a file, not a folder; choose another place.")
    if not folder.is_dir():
        raise ValueError(f"{path}: the folder {folder} does not exist; create it first.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{path}: the folder {folder} cannot be written to; choose another one.")


def is_special(path: Path) -> bool:
    """Whether a path exists and is neither a regular file nor a folder: a pipe, a device or a socket."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _take_permissions(draft: Path, target: Path) -> None:
    """Give the draft the mode and, where that is allowed, the owner of the target, or the usual mode of a new file."""
    try:
        old = target.stat()
    except FileNotFoundError:
        draft.chmod(0o666 & ~_umask())
        return
    with suppress(PermissionError, AttributeError):  # Windows has no owners in this sense
        os.chown(draft, old.st_uid, old.st_gid)
    draft.chmod(old.st_mode & 0o777)


def _umask() -> int:
    """Return the process's umask. The system returns it only when a new one is set, so it is set back at once."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
