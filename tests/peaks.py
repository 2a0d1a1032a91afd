"""Peaks of memory, for scripts that tests run in a process of their own."""

import ctypes
import re
import threading
from pathlib import Path

STATUS = Path("/proc/self/status")


def anonymous():
    """Bytes in use that are not pages of files."""
    return 1024 * int(re.search(r"RssAnon:\s+(\d+)", STATUS.read_text()).group(1))


def peak_of(work):
    """Return by how many bytes memory grew at most during a call, and what the call returned."""
    ctypes.CDLL(None).malloc_trim(0)
    before, peak, done = anonymous(), [0], threading.Event()

    def watch():
        while not done.wait(0.002):
            peak[0] = max(peak[0], anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        result = work()
    finally:
        done.set()
        watcher.join()
    return peak[0] - before, result
