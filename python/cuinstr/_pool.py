"""Worker processes for kernels that may do anything."""

from __future__ import annotations

import pathlib
import queue
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, TextIO, Union

from . import _native
from ._extents import extents
from ._native import Failure, Outcome
from ._time import seconds

if TYPE_CHECKING:
    from concurrent.futures import Future

# The worker finds this very package, however this process found it.
_SERVE = f"import sys; sys.path.append({str(pathlib.Path(__file__).parents[1])!r}); from cuinstr._native import serve; raise serve()"


class In(NamedTuple):
    """Device memory that holds these bytes when the kernel begins: anything with a buffer, such as a NumPy array."""

    contents: bytes | bytearray | memoryview


class Out(NamedTuple):
    """So many bytes of device memory, zero when the kernel begins, and read back when it has ended."""

    size: int


class InOut(NamedTuple):
    """Device memory that holds these bytes when the kernel begins, and is read back when it has ended."""

    contents: bytes | bytearray | memoryview


Argument = Union[In, Out, InOut, bytes]


class Task(NamedTuple):
    """One launch of a kernel in a worker.

    image: PTX, cubin or fat binary of a rewritten module.
    arguments: in the kernel's order; memory as In, Out or InOut, anything else as its bytes, such as `numpy.int32(3).tobytes()`.
    timeout: seconds, or text such as "500ms", from the moment that the kernel begins. None runs it until Ctrl-C.
    """

    image: bytes
    kernel: str
    grid: Sequence[int]
    block: Sequence[int]
    arguments: Sequence[Argument]
    timeout: float | str | None
    shared: int = 0
    fuel: int | None = None
    cooperative: bool = False
    grace: float = 0.1
    begin_within: float = 60.0


class Result(NamedTuple):
    """How a task ended."""

    outcome: Outcome
    outputs: list[bytes | None]
    """What each Out and InOut holds, in the order of the arguments; None if it was lost with its process."""


class Pool:
    """Processes that run kernels which nobody trusts.

    Nothing that a kernel does costs this process anything: what a poll can stop is stopped as under `guard`; what leaves no poll, faults, or takes
    its process down costs that process, and a spare takes over in milliseconds.

        with cuinstr.Pool(2) as pool:
            task = cuinstr.Task(cubin, "halve", (1,), (32,), [cuinstr.InOut(numbers), numpy.int32(3).tobytes()], timeout=0.1)
            outcome, (numbers,) = pool.run(task)

    workers: how many run at the same time; they take the devices in turn.
    devices: numbers of the devices, as the driver counts them.
    spares: processes that each worker has in reserve. Each process takes some hundred MB on host and device.
    """

    def __init__(self, workers: int = 1, *, devices: Sequence[int] = (0,), spares: int = 1) -> None:
        if workers < 1 or not devices:
            raise ValueError("a pool has at least one worker, and at least one device")
        self._idle: queue.SimpleQueue[_native.Worker] = queue.SimpleQueue()
        self._all: list[_native.Worker] = []
        self._lock = threading.Lock()
        for number in range(workers):
            device = devices[number % len(devices)]
            worker = _native.Worker(sys.executable, ["-c", _SERVE], device, spares)
            self._all.append(worker)
            self._idle.put(worker)

    def run(self, task: Task) -> Result:
        """Runs one task on a worker that is idle, or will be. Ctrl-C cancels it."""
        with self._lock:
            if not self._all:
                raise Failure("the pool is closed")
            idle = self._idle
        arguments = [_given(argument) for argument in task.arguments]
        times = (seconds(task.timeout), task.grace, task.begin_within)
        worker = idle.get()
        try:
            outcome, outputs = worker.run(
                task.image,
                task.kernel,
                extents(task.grid, "grid"),
                extents(task.block, "block"),
                task.shared,
                arguments,
                times,
                task.fuel,
                task.cooperative,
            )
        finally:
            idle.put(worker)
        return Result(outcome, outputs)

    def map(self, tasks: Iterable[Task], *, progress: bool | TextIO = False) -> Iterator[Result | Exception]:
        """Runs tasks on all workers, and gives their results in the order of the tasks; an exception stands for what could not be run.

        progress: whether to show a line on standard error, or the stream to show it on.
        """
        from concurrent.futures import ThreadPoolExecutor

        shown = sys.stderr if progress is True else progress or None
        begun = time.monotonic()
        with ThreadPoolExecutor(len(self._all) or 1) as executor:
            futures: list[Future[Result]] = [executor.submit(self.run, task) for task in tasks]
            try:
                for number, future in enumerate(futures, 1):
                    error = future.exception()
                    if error is not None and not isinstance(error, Exception):
                        raise error
                    if shown is not None:
                        rate = number / max(time.monotonic() - begun, 1e-9)
                        shown.write(f"\r{number} of {len(futures)}, {rate:.1f} a second, {self.losses} workers lost")
                        shown.flush()
                    yield future.result() if error is None else error
            except BaseException:
                # Ctrl-C, or nobody wants the rest.
                for future in futures:
                    future.cancel()
                for worker in self._all:
                    worker.cancel()
                raise
            finally:
                if shown is not None:
                    shown.write("\n")

    @property
    def losses(self) -> int:
        """Processes that kernels have cost so far."""
        return sum(worker.losses for worker in self._all)

    def close(self) -> None:
        """Ends all processes, whatever they do."""
        with self._lock:
            self._all.clear()
            self._idle = queue.SimpleQueue()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _given(argument: Argument) -> tuple[bytes | None, int, bool, bool]:
    if isinstance(argument, Out):
        return None, argument.size, True, True
    if isinstance(argument, (In, InOut)):
        contents = bytes(memoryview(argument.contents).cast("B"))
        return contents, len(contents), True, isinstance(argument, InOut)
    if isinstance(argument, bytes):
        return argument, len(argument), False, False
    raise TypeError(f"an argument is In, Out or InOut, or the bytes of a value, such as numpy.int32(3).tobytes(); not {type(argument).__name__}")
