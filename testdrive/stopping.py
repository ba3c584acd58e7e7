"""Signals that end what several runs belong to, between two of them too.

While the engine is at work, signals are passed to it. In between they raise an exception, which a library
that is at work at that moment may swallow: so each is remembered, too, and asked for before the next run.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from testdrive.errors import Interrupted

Handler = Callable[[int, FrameType | None], None]

#: Those that would end us.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def handled_by(handler: Handler) -> Iterator[None]:
    """While this lasts, let a function have the signals that would end us; in the main thread alone."""
    before = {number: signal.signal(number, handler) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextlib.contextmanager
def signals_stop() -> Iterator[Callable[[], None]]:
    """While this lasts, signals raise :class:`Interrupted` where no run has its own way with them.

    What is yielded raises it, too, once there was a signal. In another thread than the main one, which gets
    none, nothing is done.
    """
    received: list[int] = []

    def stop_if_asked() -> None:
        if received:
            raise Interrupted(f"interrupted by {signal.Signals(received[0]).name}")

    def stop(number: int, _: FrameType | None) -> None:
        received.append(number)
        stop_if_asked()

    if threading.current_thread() is not threading.main_thread():
        yield stop_if_asked
        return
    with handled_by(stop):
        yield stop_if_asked


def hand_on(number: int) -> None:
    """Tell whoever listens to signals now of one that came too late for the run that it was for."""
    handler = signal.getsignal(number)
    if callable(handler) and handler is not signal.default_int_handler:
        handler(number, None)
