"""Guards around launches."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from types import TracebackType
from typing import Any
from weakref import ReferenceType, ref

from . import _handles, _late, _native, triton
from ._extents import extents
from ._native import Failure, NotLaunched, Outcome, WrongContext
from ._time import seconds

# What was attached before, so that a guard costs microseconds: by the object's place, with a weak reference that tells it from a later object there.
# Objects that bear no weak reference are kept alive by it: the latest 64.
_attached_weak: dict[int, tuple[ReferenceType[Any], Module]] = {}
_attached: OrderedDict[int, Module] = OrderedDict()
_MOST_ATTACHED = 64
_lock = threading.Lock()

_Limits = tuple[float | None, int | None, int | None, bool, float, float, tuple[list[int], list[int]] | None, bool]


class Stopped(Failure):
    """A guarded launch was stopped. What the kernel wrote is incomplete; context, memory and streams are as they were.

    Its text is the report: the reason, the line of the loop, how many threads were where.
    """

    outcome: Outcome

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome

    @property
    def report(self) -> str:
        """The report, several lines."""
        return str(self.outcome)

    @property
    def line(self) -> int | None:
        """Line of the loop where the first thread was stopped, if it is known."""
        return self.outcome.line


class Faulted(Failure):
    """A guarded launch ended its context: an illegal address, a failed assertion, a trap."""

    outcome: Outcome

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome


class Module:
    """A rewritten module that another package loaded; made by `attach`. It keeps that package's object alive."""

    __slots__ = ("_native", "_object", "__weakref__")

    def __init__(self, native: _native.Attached, original: object) -> None:
        self._native = native
        self._object = original

    @property
    def kernel(self) -> str:
        """Name of its kernel; empty if there may be several."""
        return self._native.kernel


def attach(
    module: Any,
    *,
    kind: str | None = None,
    image: bytes | None = None,
    kernel: str | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> Module:
    """Binds a rewritten module that is loaded in the current context, for guards to come.

        module = cuinstr.attach(extension, kernel="halve")
        with cuinstr.guard(module, timeout=0.1):
            extension.launch(...)

    `guard` does this by itself, and remembers it. Call it for a raw handle, or to say more:

    module: a module or kernel of CuPy, cuda.core, cuda.bindings or PyCUDA, an extension module, or a handle as a number; it must stay loaded.
    kind: what a number is: "module" (CUmodule, if nothing is said), "library" (CUlibrary), "function" (CUfunction, also of cudaGetFuncBySymbol),
        "kernel" (CUkernel), or "control", the device address of cuinstr_control_v1 (of cudaGetSymbolAddress, say).
    image: PTX, cubin or fat binary that it was loaded from, for the lines in reports, if this process did not rewrite the source.
    kernel: what reports call the kernel.
    folder: what paths of sources are relative to, to show their lines.

    The first call in a context waits for what runs there, at most 10 s. Raises NotInstrumented for a module that was not rewritten.
    """
    if isinstance(module, Module):
        return module
    if kind is None:
        kind, handle = _handles.of_module(module)
    else:
        handle = int(module)
    if image is None:
        image = _handles.image_of(module)
    native = _native.attach(kind, handle, image, kernel, None if folder is None else os.fspath(folder))
    return Module(native, module)


def _attach_once(module: Any) -> Module:
    place = id(module)
    known = _attached_weak.get(place)
    if known is not None and known[0]() is module:
        return known[1]
    if isinstance(module, Module):
        return module
    if isinstance(module, int):
        # Another module may have the same number later.
        return attach(module)
    found = _attached.get(place)
    if found is not None and found._object is module:
        return found
    made = attach(module)

    def forget(gone: ReferenceType[Any]) -> None:
        # Another object may be there by now.
        known = _attached_weak.get(place)
        if known is not None and known[0] is gone:
            del _attached_weak[place]

    try:
        # It must not keep alive what it is kept under.
        _attached_weak[place] = ref(module, forget), Module(made._native, None)
    except TypeError:
        with _lock:
            _attached[place] = made
            while len(_attached) > _MOST_ATTACHED:
                _attached.popitem(last=False)
    return made


class Guard:
    """Guards what is launched between entering and leaving it; made by `guard`. Good for one use."""

    outcome: Outcome | None
    """How the launch ended; None before it is known."""

    __slots__ = ("_armed", "_kernel", "_left", "_limits", "_module", "_place", "_raises", "_stream", "_waits", "outcome")

    def __init__(self, module: Any, stream: Any, limits: _Limits | _native.Left, raises: bool, waits: bool) -> None:
        self.outcome = None
        self._waits = waits
        self._left = False
        self._place = ""
        self._module = module
        self._stream = stream
        self._limits = limits
        self._raises = raises
        self._armed: _native.Armed | None = None
        self._kernel: Any = None

    def __enter__(self) -> Guard:
        if self._armed is not None:
            raise Failure("a guard is good for one use: make another")
        if _late.is_late(self._module):
            self._await_launch()
            return self
        attached = _attach_once(self._module)
        # What was attached by hand is of the package that its object is of.
        original = attached._object if attached is self._module else self._module
        stream, self._place = _handles.of_stream(self._stream, original)
        try:
            self._armed = self._arm(attached, stream)
        except WrongContext:
            if attached is self._module:
                raise
            # CuPy's objects have a module on each device; that of the current one may be another than before.
            self._armed = self._arm(attach(self._module), stream)
        return self

    def _arm(self, attached: Module, stream: int) -> _native.Armed:
        if isinstance(self._limits, _native.Left):
            return attached._native.arm_left(stream, self._limits)
        return attached._native.arm(stream, *self._limits)

    def _await_launch(self) -> None:
        """Has it armed when a kernel of what it was given is launched."""
        if self._stream is not None:
            raise ValueError("a guard of a function that is compiled when it is launched takes the stream of that launch: give it none")
        _late.waiting().append(_late.Waiting(self._module, self._arm_late))
        if type(self._module).__module__.startswith("triton"):
            triton.listen()

    def _arm_late(self, kernel: Any, stream: Any) -> None:
        if self._armed is None:
            handle, self._place = _handles.of_stream(stream, kernel)
            self._armed = self._arm(_attach_once(kernel), handle)
            self._kernel = kernel
        elif self._kernel is not kernel:
            raise Failure("a guard is for one compiled kernel, and this function was compiled to several: guard each launch by itself")

    def _end_waiting(self) -> None:
        waiting = _late.waiting()
        waiting[:] = [guard for guard in waiting if guard.arm != self._arm_late]

        def is_tritons(owner: Any) -> bool:
            return type(owner).__module__.startswith("triton")

        if is_tritons(self._module) and not any(is_tritons(guard.owner) for guard in waiting):
            triton.forget()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        armed = self._armed
        if _late.is_late(self._module):
            self._end_waiting()
            if armed is None and kind is None:
                package = type(self._module).__module__.partition(".")[0].removesuffix("_cuda")
                help = f"call cuinstr.{package}.install() before it is compiled, and launch it in the guard's thread"
                raise NotLaunched(f"no kernel of it was launched in the guard; {help}")
        if armed is None:
            return
        if kind is not None:
            # Whether anything was launched is not known. What was is cancelled; the error that there is goes on.
            try:
                armed.launched()
                armed.give_up()
            except Failure:
                pass
            return
        self._left = True
        if self._waits:
            self._told(armed.finish)
        else:
            self._told(armed.launched)

    async def __aenter__(self) -> Guard:
        # To arm it waits for nothing, but for the first time in a context.
        self._waits = False
        return self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.__exit__(kind, error, trace)
        if kind is None:
            await self

    def __await__(self) -> Generator[Any, None, Outcome]:
        return self._ended().__await__()

    async def _ended(self) -> Outcome:
        import asyncio

        waiting = asyncio.get_running_loop().run_in_executor(None, self.wait)
        try:
            outcome = await asyncio.shield(waiting)
        except asyncio.CancelledError:
            # The kernel ends before the task does: the program's memory is its own again.
            self.cancel()
            await asyncio.wait([waiting])
            # Asked for, so that nobody says that it was not.
            waiting.exception()
            raise
        assert outcome is not None
        return outcome

    def poll(self) -> Outcome | None:
        """The outcome, or None if it is not known yet. It waits for nothing. Raises what leaving the guard would raise."""
        return self.wait(0.0)

    def wait(self, limit: float | str | None = None) -> Outcome | None:
        """The outcome, or None if it is not known after so much time; without a limit it waits as long as the launch may take.

        Raises what leaving the guard would raise. Ctrl-C cancels the launch.
        """
        within = seconds(limit)
        armed = self._armed
        if armed is None or not self._left:
            raise Failure("a guard is asked for its outcome once it is left: launch in `with`, and ask behind it")
        if self.outcome is None or self.outcome.paused:
            self._told(lambda: armed.wait(within))
        return self.outcome

    def pause(self, within: float | str = 0.1) -> Outcome:
        """Pauses what was launched in `with guard(..., pausable=True, wait=False)`, and gives the outcome: `paused`, or how it ended before.

        Blocks that have not begun decline to run. Those that have run to their ends, for so much time at most; then Failure is raised, and `wait` tells when it is
        paused. What the stream holds behind the launch waits for the resumes.
        """
        armed = self._armed
        if armed is None or not self._left:
            raise Failure("a guard is paused once it is left: launch in `with`, and pause behind it")
        time = seconds(within)
        self._told(lambda: armed.pause(0.1 if time is None else time))
        assert self.outcome is not None
        return self.outcome

    def resume(self, stream: Any) -> Part:
        """The next part of a paused launch, in another stream than its own: launch the same kernel there, with the same grid and arguments.

            with guard.resume(other):
                kernel((16,), (256,), (numbers, count), stream=other)
        """
        return Part(self, stream)

    def _told(self, ask: Callable[[], Outcome | None]) -> None:
        """Keeps the outcome that the answer brings, and raises what the caller wants raised."""
        try:
            outcome = ask()
        except NotLaunched as error:
            text = f"{error}; the guard looked at {self._place}: give it the stream that you launch on, `cuinstr.guard(module, stream, ...)`"
            raise NotLaunched(text) from None
        self.outcome = outcome
        if outcome is None or outcome.completed or outcome.paused:
            return
        if not outcome.stopped:
            raise Faulted(outcome)
        if self._raises:
            raise Stopped(outcome)

    def cancel(self) -> None:
        """Tells the launch to stop, from any thread, as often as you like; it never hits a later launch."""
        if self._armed is not None:
            self._armed.cancel()


class Part:
    """The next part of a paused launch; made by `Guard.resume`."""

    __slots__ = ("_guard", "_stream")

    def __init__(self, guard: Guard, stream: Any) -> None:
        self._guard = guard
        self._stream = stream

    def __enter__(self) -> Part:
        armed = self._guard._armed
        if armed is None:
            raise Failure("only a launch that is paused can be resumed")
        stream, self._guard._place = _handles.of_stream(self._stream, self._guard._module)
        armed.resume(stream)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        armed = self._guard._armed
        if armed is None:
            return
        if kind is not None:
            # Whether anything was launched is not known.
            try:
                armed.launched()
                armed.give_up()
            except Failure:
                pass
            return
        self._guard._told(armed.launched)


def guard(
    module: Any,
    stream: Any = None,
    *,
    timeout: float | str | None,
    fuel: int | None = None,
    budget_cycles: int | None = None,
    count_fuel: bool = False,
    grace: float = 0.1,
    begin_within: float = 60.0,
    grid: Sequence[int] | None = None,
    block: Sequence[int] | None = None,
    raises: bool = True,
    wait: bool = True,
    pausable: bool = False,
) -> Guard:
    """A context manager that stops what is launched inside it if it takes too long.

        with cuinstr.guard(module, timeout=0.1, raises=False) as guard:
            kernel((16,), (256,), (numbers, count))
        if guard.outcome.stopped:
            print(guard.outcome)

    It waits for the launch when it is left, unless `wait=False`; then `poll`, `wait` and `await` tell. `async with` waits without holding up the
    event loop:

        with cuinstr.guard(module, timeout="100ms", wait=False) as guard:
            kernel((16,), (256,), (numbers, count))
        outcome = await guard

    A guard that goes before its outcome is known cancels the launch. Several launches of the module inside it share limits and outcome.

    module: a rewritten module, or a kernel of it: of CuPy (RawModule, RawKernel), cuda.core (ObjectCode, Kernel), cuda.bindings, PyCUDA
        (SourceModule), an extension module of PyTorch's, or what `attach` gave. Of Triton and Numba it is a function or a compiled kernel, after
        `cuinstr.triton.install()` or `cuinstr.numba.install()`: the guard is armed when that is launched, on its stream.
    stream: the stream that is launched on, of any of these or PyTorch, or its handle. Without one it is the current stream of CuPy for its modules,
        and of PyTorch for extension modules. For a number it is the one of these that is not the default stream. Else it is the legacy default stream.
    timeout: seconds from the moment that the kernel begins, or a text such as "100ms"; None runs it until somebody cancels it.
    fuel, budget_cycles: iterations of a thread, cycles of a block, where such a limit is compiled in (see `rewrite`).
    count_fuel: whether `outcome.fuel_used` is wanted.
    grace: seconds that it is given to leave once it was told to.
    begin_within: seconds that the GPU may take to begin it.
    grid, block: extents of what is launched, for the report, which then says how many threads there were: nobody but the caller knows them.
    wait: whether leaving the guard waits for the launch.
    pausable: whether `pause` is wanted, of a module that was rewritten so, for one launch of `grid`.
    raises: whether a launch that was stopped raises Stopped; `outcome` of the guard tells all the same.

    Raises on leaving: Stopped; Faulted if the kernel ended its context; NotLaunched if no kernel of the module was launched on the stream; NotBegun
    and Undrained if it can't be waited for. Ctrl-C cancels the launch and raises KeyboardInterrupt. If the block itself raises, what it
    launched is cancelled.
    """
    known: tuple[list[int], list[int]] | None = None
    if grid is not None and block is not None:
        known = list(extents(grid, "grid")), list(extents(block, "block"))
    elif grid is not None or block is not None:
        raise ValueError("a guard is told grid and block, or neither")
    return Guard(module, stream, (seconds(timeout), fuel, budget_cycles, count_fuel, grace, begin_within, known, pausable), raises, wait)
