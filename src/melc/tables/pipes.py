"""Pipes from which other threads can read while the main thread still hears signals."""

import io
import os
import selectors
import signal
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_ENDING = {signal.SIGINT, signal.SIGTERM}


@contextmanager
def interruptible(stream: Any) -> Iterator[Any]:
    """Yield a stream whose readers in other threads get an error when SIGINT or SIGTERM arrives.

    Arrow reads in threads of its own while the main thread waits for them; and only the main thread answers signals. A
    pipe into which nothing is written would therefore keep the program from ending. Files that are no pipes, and pipes
    where signals cannot be watched, are yielded as they are.
    """
    if not _is_pipe(stream) or not _may_watch_signals():
        yield stream
        return
    bell, rope = socket.socketpair()
    with bell, rope, selectors.DefaultSelector() as selector:
        bell.setblocking(False)
        rope.setblocking(False)
        selector.register(stream, selectors.EVENT_READ)
        selector.register(bell, selectors.EVENT_READ)
        signal.set_wakeup_fd(rope.fileno(), warn_on_full_buffer=False)
        try:
            yield io.BufferedReader(_Interruptible(stream, selector, bell))
        finally:
            signal.set_wakeup_fd(-1)


def _is_pipe(stream: Any) -> bool:
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (AttributeError, OSError):  # bytes in memory
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _may_watch_signals() -> bool:
    """Whether signals can be watched from here: in the main thread, unless the program does so already."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        return False
    watched = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(watched)
    return watched == -1


class _Interruptible(io.RawIOBase):
    """The bytes of a stream. The ``bell`` gets the numbers of the signals that arrive."""

    def __init__(self, stream: Any, selector: selectors.BaseSelector, bell: socket.socket) -> None:
        self._stream, self._selector, self._bell = stream, selector, bell
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if threading.current_thread() is not threading.main_thread():
            self._wait()
        data = self._stream.read1(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _wait(self) -> None:
        """Wait until the stream has bytes or has ended; raise ``OSError`` if a signal arrives that ends the program."""
        ready: list[Any] = []
        while self._stream not in ready and not self._ended:
            ready = [key.fileobj for key, _ in self._selector.select()]
            self._ended = self._bell in ready and not _ENDING.isdisjoint(self._bell.recv(64))
        if self._ended:  # for good: Arrow reads ahead, and may ask for more
            raise OSError("a signal has ended the reading")
