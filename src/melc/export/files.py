"""Write files atomically: completely or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path to write to; it replaces ``path`` at the end of the block if no error was raised.

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
    # The same suffix, because matplotlib and pandas choose the format by it; the same folder, because replacing a file
    # is atomic only within one file system.
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
    """Return the process's umask. The system returns it only when a new one is set, so it is set back at once."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
