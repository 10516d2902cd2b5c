"""Rewriting and mutating, with names and defaults."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from . import _native
from ._native import Mutant, Rewritten
from ._time import seconds


def rewrite(
    source: str,
    *,
    path: str = "kernel.cu",
    timeout: float | str | None = None,
    budget_cycles: int | None = None,
    fuel: int | None = None,
    polls: str = "amortised",
    strict: bool = False,
    loop_macros: Iterable[str] = (),
    device_macros: Mapping[str, str] | None = None,
    leave_alone: Iterable[str] = (),
    barrier_marks: str = "auto",
    pausable: bool = False,
) -> Rewritten:
    """Rewrites CUDA source so that every loop and every exit of its kernels can be stopped.

        module = cupy.RawModule(code=cuinstr.rewrite(source, path="gemm.cu", fuel=1 << 30).text)

    Needs no GPU. Compile `.text` of what comes back as you would have compiled the source. What this process rewrote it remembers: reports on
    such modules show the source's own lines.

    path: what compilers and reports call the source.
    timeout, budget_cycles, fuel: limits compiled in for launches that nobody guards, which then trap: seconds (or text, "500ms") and cycles
        from the start of each block, iterations of a thread. A guard's own fuel or budget needs one compiled in.
    polls: "amortised", or "each" for a poll in every iteration.
    strict: whether a gap that no poll covers is refused.
    loop_macros: macros from headers that open a loop.
    device_macros: macros that mark functions, each with "kernel", "device" or "host-device".
    leave_alone: functions to leave as they are.
    barrier_marks: the memory in which threads at barriers learn that others have left: "shared", "global", or "auto", which is global where the
        launch sizes shared memory.
    pausable: whether launches can be paused (`guard(pausable=True)`).

    Raises Refused if the source can't be rewritten.
    """
    if polls not in ("amortised", "each"):
        raise ValueError(f"polls are 'amortised' or 'each', not {polls!r}")
    timeout_ns = None
    timeout = seconds(timeout)
    if timeout is not None:
        if not 0 < timeout < 1e9:
            raise ValueError(f"a timeout of {timeout} s makes no sense")
        timeout_ns = max(1, round(timeout * 1e9))
    return _native.rewrite(
        source,
        path,
        timeout_ns,
        budget_cycles,
        fuel,
        polls == "each",
        strict,
        list(loop_macros),
        dict(device_macros or {}),
        list(leave_alone),
        barrier_marks,
        pausable,
    )


def instrument(
    ptx: str | bytes,
    *,
    path: str = "kernel.ptx",
    polls: str = "amortised",
    strict: bool = False,
    leave_alone: Iterable[str] = (),
) -> Rewritten:
    """Puts polls into compiled PTX, of nvcc, NVRTC, Triton, clang, Numba or by hand, so that every loop of it can be stopped.

        module = cupy.RawModule(code=cuinstr.instrument(ptx).text)

    Needs no GPU. Load `.text` as you would have loaded the PTX; `.sites` is its site map. What this process instrumented it remembers: reports on
    such modules show the PTX's own lines, or the source's, where the PTX names them.

    path: what reports call the PTX.
    polls: "amortised", or "each" for a poll in every iteration.
    strict: whether a gap that no poll covers is refused.
    leave_alone: functions to leave as they are.

    Raises Refused if it is no PTX, or was instrumented before.
    """
    if polls not in ("amortised", "each"):
        raise ValueError(f"polls are 'amortised' or 'each', not {polls!r}")
    return _native.instrument(_bytes(ptx), path, polls == "each", strict, list(leave_alone))


@dataclasses.dataclass(frozen=True)
class Proof:
    """What `verify` found. It is true if everything holds."""

    open: list[str]
    """What is not proved, a line each: loops that can't be stopped, and what is wrong with the text."""
    report: dict[str, Any]
    """All that was found: `kernels`, `loops` with a `verdict` each, `unknown` calls and `faults`."""

    def __bool__(self) -> bool:
        return not self.open


def verify(ptx: str | bytes, *, path: str = "kernel.ptx") -> Proof:
    """Proves on PTX that each of its loops can be stopped or ends, and says of which this is not proved.

        assert cuinstr.verify(cuinstr.instrument(ptx).text)

    Needs no GPU. The PTX may be that of rewritten source, too. `path` is what the lines of `open` call it.
    """
    open_, report = _native.verify(_bytes(ptx).decode(errors="replace"), path)
    return Proof(open_, json.loads(report))


def _bytes(ptx: str | bytes) -> bytes:
    """As the compiler wrote it: NVRTC and the driver hand on texts with a zero behind them."""
    return (ptx.encode() if isinstance(ptx, str) else bytes(ptx)).removesuffix(b"\0")


def mutants(source: str, *, most: int | None = None, operators: Iterable[str] | None = None) -> list[Mutant]:
    """Every small change that the classic operators, and those that CUDA adds, make in the device functions of a source.

        for mutant in cuinstr.mutants(source, most=50, operators=["loop-bound", "loop-step"]):
            print(mutant.line, mutant.before, "->", mutant.after)

    Nothing is compiled or run. A mutant may not compile, may compute the same as before, and may never end: guard it.

    most: at most so many, spread evenly over all; the same ones each time.
    operators: only these, of arithmetic, relational, logical, bitwise, negation, constant, deletion, loop-bound, loop-step, barrier, atomic,
        dimension and index.
    """
    return _native.mutants(source, most, None if operators is None else list(operators))
