"""Rewriting and mutating, with names and defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
    )


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
