"""Worker processes for kernels that may do anything."""

from __future__ import annotations

import contextlib
import pathlib
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, Union

from . import _arrays, _native
from ._extents import extents
from ._native import Failure, Outcome
from ._time import seconds

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# Tasks of a worker that `map` takes ahead of the results.
_AHEAD = 2

# The worker takes this very package, however this process found it, and nothing from the folder that it is started in.
_HERE = pathlib.Path(__file__).absolute().parent
SERVE = f"""
import sys
sys.path[:] = [path for path in sys.path if path]
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("cuinstr", {str(_HERE / "__init__.py")!r}, submodule_search_locations=[{str(_HERE)!r}])
sys.modules["cuinstr"] = package = module_from_spec(spec)
spec.loader.exec_module(package)
import os
folders = os.environ.pop("CUINSTR_SHUT_IN", None)
if folders:
    from cuinstr import _namespace
    _namespace.shut_in(*folders.split(os.pathsep))
from cuinstr._native import serve
raise serve()
"""


class In(NamedTuple):
    """Device memory that holds these bytes when the kernel begins.

    contents: anything with a buffer (NumPy's arrays), `__cuda_array_interface__` (CuPy's, Numba's) or `__dlpack__` (PyTorch's, JAX's). Arrays on a GPU
        are copied through this process: workers have memory of their own.
    """

    contents: Any


class Out(NamedTuple):
    """So many bytes of device memory, zero when the kernel begins, and read back when it has ended."""

    size: int


class InOut(NamedTuple):
    """Device memory that holds these bytes, of what `In` takes, when the kernel begins, and is read back when it has ended."""

    contents: Any


# A value is its bytes, or a number that has a buffer, such as `numpy.int32(3)`.
Argument = Union[In, Out, InOut, bytes, Any]


class Task(NamedTuple):
    """One launch of a kernel in a worker.

    image: PTX, cubin or fat binary of a rewritten module.
    arguments: in the kernel's order; memory as In, Out or InOut, anything else as its bytes, or as a number of NumPy's, such as `numpy.int32(3)`.
    timeout: seconds from the moment that the kernel begins, or a text such as "100ms". None runs it until Ctrl-C.
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
            task = cuinstr.Task(cubin, "halve", (1,), (32,), [cuinstr.InOut(numbers), numpy.int32(3)], timeout="100ms")
            outcome, (numbers,) = pool.run(task)

    `submit` gives a future for a task, `map` the results of many, taken as they are needed.

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
        self._executor: ThreadPoolExecutor | None = None
        for number in range(workers):
            device = devices[number % len(devices)]
            worker = _native.Worker(sys.executable, ["-c", SERVE], device, spares)
            self._all.append(worker)
            self._idle.put(worker)

    def run(self, task: Task) -> Result:
        """Runs one task on a worker that is idle, or will be. Ctrl-C cancels it."""
        idle = self._open()
        worker = idle.get()
        try:
            # A cancel from here on holds for this task.
            since = worker.cancels
            arguments = [_given(argument) for argument in task.arguments]
            times = (seconds(task.timeout), task.grace, task.begin_within)
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
                since,
            )
        finally:
            idle.put(worker)
        return Result(outcome, outputs)

    def _open(self) -> queue.SimpleQueue[_native.Worker]:
        """Where workers are taken from; raises if the pool is closed."""
        with self._lock:
            if not self._all:
                raise Failure("the pool is closed")
            return self._idle

    def submit(self, task: Task) -> Future[Result]:
        """Has a task run as soon as a worker is idle, and gives its future at once. Cancelling the future holds for a task that has not begun."""
        from concurrent.futures import ThreadPoolExecutor

        with self._lock:
            if not self._all:
                raise Failure("the pool is closed")
            if self._executor is None:
                # A thread for each worker waits for it.
                self._executor = ThreadPoolExecutor(len(self._all), "cuinstr-pool")
            return self._executor.submit(self.run, task)

    def map(self, tasks: Iterable[Task], *, progress: bool | TextIO = False) -> Iterator[Result | Exception]:
        """Runs tasks on all workers, and gives their results in the order of the tasks; an exception stands for what could not be run.

        Tasks are taken a few ahead of the results, so that there may be any number of them, also endless ones.

        progress: whether to show a line on standard error, or the stream to show it on.
        """
        shown = sys.stderr if progress is True else progress or None
        begun = time.monotonic()
        total = f" of {len(tasks)}" if isinstance(tasks, Sized) else ""
        waiting: deque[Future[Result]] = deque()
        rest, number = iter(tasks), 0
        try:
            while True:
                for task in islice(rest, _AHEAD * len(self._all) - len(waiting)):
                    waiting.append(self.submit(task))
                if not waiting:
                    return
                error = waiting[0].exception()
                future = waiting.popleft()
                if error is not None and not isinstance(error, Exception):
                    raise error
                number += 1
                if shown is not None:
                    rate = number / max(time.monotonic() - begun, 1e-9)
                    shown.write(f"\r{number}{total}, {rate:.1f} a second, {self.losses} workers lost")
                    shown.flush()
                yield future.result() if error is None else error
        except BaseException:
            # Ctrl-C, or nobody wants the rest. Those that wait go first, so that none of them begins.
            begins = [future for future in waiting if not future.cancel()]
            if begins:
                self._cancel()
            raise
        finally:
            if shown is not None:
                shown.write("\n")

    def _cancel(self) -> None:
        for worker in self._all:
            worker.cancel()

    @property
    def losses(self) -> int:
        """Processes that kernels have cost so far."""
        return sum(worker.losses for worker in self._all)

    def close(self) -> None:
        """Ends all processes, whatever they do. Tasks that have not begun are cancelled, those that run are stopped."""
        with self._lock:
            busy, self._all = self._all, []
            executor, self._executor = self._executor, None
            self._idle = queue.SimpleQueue()
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)
        for worker in busy:
            # One that is lost runs nothing.
            with contextlib.suppress(Failure):
                worker.close()
        if executor is not None:
            executor.shutdown()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _given(argument: Argument) -> tuple[bytes | None, int, bool, bool]:
    if isinstance(argument, Out):
        return None, argument.size, True, True
    if isinstance(argument, (In, InOut)):
        contents = _arrays.contents(argument.contents)
        return contents, len(contents), True, isinstance(argument, InOut)
    if isinstance(argument, bytes):
        return argument, len(argument), False, False
    try:
        number = memoryview(argument)
    except TypeError:
        number = None
    if number is not None and number.ndim == 0:
        return number.tobytes(), number.nbytes, False, False
    raise TypeError(f"an argument is In, Out or InOut, or the bytes of a value, or a number such as numpy.int32(3); not {type(argument).__name__}")
