"""Ctrl-C and SIGTERM wait for the end of the step and cost nothing."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Stops:
    """SIGINT and SIGTERM during training: the first signal waits until the state is complete and saved.

    It is noted when it arrives. Between two steps the loop calls `deliver_noted`, which saves and then passes the
    signal to the previous handler: Ctrl-C becomes a KeyboardInterrupt, SIGTERM ends the process or does what the
    program has set. Where the state does not change (`quiet`) both happen at once. A second signal goes through at
    once, without saving. Signals that are ignored stay ignored, and outside the main thread, where Python receives
    none, nothing is done.

    Parameters:
        save: writes a checkpoint, if the state is complete.
        patience: steps to finish after the signal. All processes of a job receive it; the first one saves, and needs
            the others to finish its step.
    """

    def __init__(self, save: Callable[[], None], patience: int = 0):
        self._save = save
        self._patience = patience
        self._noted: int | None = None
        self._quiet = False
        self._before: dict[int, Any] = {}  # signal -> its handler outside

    def __enter__(self) -> "Stops":
        if threading.current_thread() is threading.main_thread():
            self._before = {kind: signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)}
            self._before = {k: handler for k, handler in self._before.items() if handler not in (None, signal.SIG_IGN)}
            self._install()
        return self

    def __exit__(self, *error: object) -> None:
        self._restore()
        self._before = {}
        if self._noted is not None:
            self._finish()

    def deliver_noted(self) -> None:
        """The state is complete: if a signal was noted, save and deliver it."""
        if self._noted is None:
            return
        if self._patience > 0:
            self._patience -= 1
        else:
            self._finish()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Inside, the state does not change: after a signal it is saved, and the signal delivered, at once."""
        self._quiet = True
        try:
            self.deliver_noted()
            yield
        finally:
            self._quiet = False

    def _take(self, kind: int, frame: Any) -> None:
        second = self._noted is not None
        self._noted = kind
        if second:
            self._deliver()
        elif self._quiet:
            self._finish()

    def _finish(self) -> None:
        try:
            self._save()
        except BaseException:  # a full disk matters more than the signal
            self._noted = None
            raise
        self._deliver()

    def _deliver(self) -> None:
        kind, self._noted = self._noted, None
        self._restore()
        signal.raise_signal(kind)  # type: ignore[arg-type]
        self._install()  # the previous handler lets the program go on

    def _install(self) -> None:
        for kind in self._before:
            signal.signal(kind, self._take)

    def _restore(self) -> None:
        for kind, handler in self._before.items():
            signal.signal(kind, handler)
