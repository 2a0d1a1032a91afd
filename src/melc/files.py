"""Files that are either written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path to write to; what was written takes the place of ``path`` if no error came in between.

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
    # The same ending: matplotlib and pandas choose the format by it. The same folder: replacing is then one
    # step of the file system.
    handle, name = tempfile.mkstemp(prefix=".melc-", suffix=target.suffix, dir=target.parent)
    os.close(handle)
    draft = Path(name)
    try:
        draft.chmod(0o666 & ~_umask())
        yield draft
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _umask() -> int:
    """The permissions that new files are not given; the system tells them only by setting them."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
