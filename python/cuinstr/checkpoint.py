"""Suspends and resumes the CUDA state of processes, by their pid: calls as those of `cuda.core.checkpoint`, with deadlines and rollback.

    from cuinstr.checkpoint import Process

    with Process(4711):              # its GPU memory is in host memory, and the GPU is free
        ...
                                     # and now it is back, at the same addresses

Each call of the driver is made by a helper process, which is killed if it does not return: so a process may name its own pid. The helper is made
from this interpreter. Needs driver 570 or later; 550 to 569 with NVIDIA's `cuda-checkpoint` can `suspend` and `resume` only.
"""

from __future__ import annotations

import sys
import types
import uuid
from collections.abc import Mapping
from typing import Any

from . import _native
from ._native import Lost, NoRoom, NotCheckpointable, NotCuda, WrongState
from ._pool import SERVE

__all__ = ["Lost", "NoRoom", "NotCheckpointable", "NotCuda", "Process", "WrongState"]

# Longest that a lock waits for kernels where nothing else is said.
_PATIENCE_MS = 10_000


class Process:
    """A process that uses CUDA."""

    def __init__(self, pid: int) -> None:
        """Of a process that is there.

        Raises ValueError, ProcessLookupError or PermissionError where there can be none, is none, or it is another user's."""
        if isinstance(pid, bool) or not isinstance(pid, int):
            raise TypeError(f"a pid is an int, not {type(pid).__name__}")
        if not 0 < pid < 2**31:
            raise ValueError(f"{pid} is no process id; give a number from 1 to 2147483647")
        self._pid = pid
        self._process = _native.Checkpoint(pid, sys.executable, ["-c", SERVE])

    @property
    def pid(self) -> int:
        """Its pid."""
        return self._pid

    @property
    def state(self) -> str:
        """Its state: "running", "locked", "checkpointed" or "failed"; "state-N" where the driver has one that is newer than this."""
        return self._process.state()

    @property
    def restore_thread_id(self) -> int:
        """The thread of it that restores it."""
        return self._process.restore_thread_id()

    def lock(self, timeout_ms: int = 0) -> None:
        """Lets it make no calls of CUDA, once its kernels have ended. A timeout of 0 is none; TimeoutError when it is over: the process runs on."""
        self._process.lock(_milliseconds(timeout_ms))

    def checkpoint(self) -> None:
        """Copies its GPU memory to host memory and frees the GPU. It must be locked."""
        self._process.checkpoint()

    def restore(self, gpu_mapping: Mapping[Any, str | bytes] | None = None) -> None:
        """Brings its GPU memory back; it stays locked. A mapping says which GPU takes the place of which, by their UUIDs; an empty one is none.

        Raises NoRoom where the GPU has not enough free memory, before anything is touched."""
        self._process.restore(_pairs(gpu_mapping))

    def unlock(self) -> None:
        """Lets it make calls of CUDA again."""
        self._process.unlock()

    def suspend(self, timeout_ms: int = _PATIENCE_MS) -> None:
        """Locks and checkpoints it. What fails half way is undone: it runs on then."""
        self._process.suspend(_milliseconds(timeout_ms))

    def resume(self, gpu_mapping: Mapping[Any, str | bytes] | None = None) -> None:
        """Restores it if it is checkpointed, and unlocks it."""
        self._process.resume(_pairs(gpu_mapping))

    def __enter__(self) -> Process:
        self.suspend()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None) -> None:
        self.resume()

    def __repr__(self) -> str:
        return f"cuinstr.checkpoint.Process({self._pid})"


def _milliseconds(timeout: int) -> int:
    if not 0 <= timeout < 2**32:
        raise ValueError(f"a timeout of {timeout} ms makes no sense; give 0, which is none, to 4294967295")
    return timeout


def _pairs(mapping: Mapping[Any, str | bytes] | None) -> list[tuple[bytes, bytes]]:
    return [(_uuid(old), _uuid(new)) for old, new in (mapping or {}).items()]


def _uuid(gpu: str | bytes) -> bytes:
    """The 16 bytes of a UUID, which is given so, or as text."""
    if isinstance(gpu, bytes) and len(gpu) == 16:
        return gpu
    text = gpu.decode("ascii", "replace") if isinstance(gpu, bytes) else gpu
    try:
        return uuid.UUID(text.removeprefix("GPU-")).bytes
    except ValueError:
        raise ValueError(f"{gpu!r} is no UUID of a GPU; `nvidia-smi -L` lists them") from None
