"""Joining a cluster of Ray's, and knowing whether it is still there."""

import contextlib
import logging
import os
import signal
import socket
import threading
from typing import Any

from nearkin.errors import NearkinError

PATIENCE = 5.0  # seconds in which an address has to answer
IMPATIENT = {"RAY_py_gcs_connect_timeout_s": "5", "RAY_NUM_REDIS_GET_RETRIES": "2"}  # Ray's own patience: minutes


class ClusterLost(NearkinError):
    """The head of the cluster answers no more. Ray's threads wait for it and cannot be ended."""


def join(address: str) -> tuple[Any, bool]:
    """The module ray, connected, and whether this call has connected it.

    Parameters:
        address: HOST:PORT of a cluster of which this machine is a node; `auto`: the one that runs here, or where none
            does, one that is begun for this process.
    """
    os.environ |= IMPATIENT | dict(os.environ)  # Ray reads some when it is imported
    try:
        import ray
    except ImportError:
        raise NearkinError("Ray is not installed; pip install 'nearkin[ray]'") from None
    if ray.is_initialized():
        return ray, False
    if address == "auto":
        address = running() or "local"
    else:
        check(address)
    before = signal.getsignal(signal.SIGTERM)
    try:
        alone: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **alone)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        if "AuthToken" in f"{error} {error.__cause__}":
            hint = "it asks for a token: RAY_AUTH_MODE=token makes Ray send its own"
        else:
            hint = f"start it with `ray start` on this machine too ({' '.join(str(error).split())[:200]})"
        raise NearkinError(f"address={address}: cannot join Ray: {hint}") from None
    finally:
        if threading.current_thread() is threading.main_thread():  # Ray sets SIGTERM for itself
            signal.signal(signal.SIGTERM, before)
    with contextlib.suppress(AttributeError):  # what Ray prints of lost workers breaks our tables
        ray._private.worker.print_to_stdstream = lambda *words, **options: None
    return ray, True


def running() -> str | None:
    """The address of the cluster that `ray start` began on this machine, or that RAY_ADDRESS names, if it answers."""
    try:
        from ray._private.services import canonicalize_bootstrap_address

        address = canonicalize_bootstrap_address(None)  # type: ignore[arg-type]
        check(address or "")
        return address
    except (ImportError, NearkinError):  # what is noted on the disk may be long gone
        return None


def check(address: str) -> None:
    """Refuse an address at which nothing answers."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "/" in host:
        raise NearkinError(f"address={address}: HOST:PORT, as `ray start --head` prints it, or nothing")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise NearkinError(
            f"address={address}: nothing answers there ({reason}); `ray start --head --port=PORT` begins a cluster"
        ) from None


class Watch:
    """Looks every few seconds whether the head of a cluster still answers: without it Ray ends this process after a
    minute, in the middle of whatever it does.

    Parameters:
        address: HOST:PORT of the head.
    """

    def __init__(self, address: str):
        self.address = address
        self.lost = False
        self.over = threading.Event()  # once it is set, it looks no more
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        missed = 0
        while missed < 3 and not self.over.wait(PATIENCE):
            try:
                check(self.address)
                missed = 0
            except NearkinError:
                missed += 1
        self.lost = missed == 3

    def check(self) -> None:
        """Refuse to go on without the head."""
        if self.lost:
            raise ClusterLost(f"Ray at {self.address} no longer answers; the same command goes on once it is back")
