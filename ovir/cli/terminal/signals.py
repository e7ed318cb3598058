"""Requests to end the command: Ctrl-C, SIGTERM and SIGHUP."""

from __future__ import annotations

import os
import signal
import sys
from _thread import interrupt_main
from threading import Timer, main_thread
from time import monotonic
from types import FrameType

from ovir.system.interrupts import is_deferred

PATIENCE = 2.0
"""Seconds after a request in which others are ignored, so that they do not interrupt the cleanup."""
_AGAIN = 0.01
"""Seconds after which a request is repeated."""


class Terminated(KeyboardInterrupt):  # like KeyboardInterrupt, it is not an error
    """A request to end by SIGTERM or SIGHUP; processes and temporary files are removed on its way."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.status = 128 + number


class Requests:
    """The reaction of the process to a request to end.

    While a command runs, an exception is raised, so that it cleans up. Before and after, there is nothing to clean up,
    and the process ends at once.
    """

    def __init__(self) -> None:
        self.are_raised = False
        """Whether a command runs, which handles the exceptions."""
        self.received: KeyboardInterrupt | None = None
        """The last request."""
        self._end = 0.0
        """The time from which others are no longer ignored."""

    def handle_signals(self) -> None:
        """Handle the signals that ask to end; those that are ignored, as under nohup, remain so."""
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # not all systems have all of them
            if number is not None and signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._handle)
        sys.unraisablehook = self._handle_unraisable

    def _handle(self, number: int, _: FrameType | None = None) -> None:
        if monotonic() < self._end or is_deferred(lambda: self._handle(number)):
            return
        self._end = monotonic() + PATIENCE
        if not self.are_raised:
            os.write(2, b"interrupted\n" if number == signal.SIGINT else b"terminated\n")
            os._exit(128 + number)
        self.received = KeyboardInterrupt() if number == signal.SIGINT else Terminated(number)
        raise self.received

    def _handle_unraisable(self, failure: sys.UnraisableHookArgs) -> None:
        """Repeat a request whose exception was raised where Python drops exceptions, as in ``__del__``."""
        if not isinstance(failure.exc_value, KeyboardInterrupt):
            sys.__unraisablehook__(failure)
            return
        self._end = 0.0
        number = failure.exc_value.status - 128 if isinstance(failure.exc_value, Terminated) else signal.SIGINT
        timer = Timer(_AGAIN, _repeat, [signal.Signals(number)])
        timer.daemon = True
        timer.start()


def _repeat(number: signal.Signals) -> None:
    """Send a signal to the main thread, where it ends waiting calls."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main_thread().ident or 0, number)
    else:
        interrupt_main(number)


requests = Requests()
