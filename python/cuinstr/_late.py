"""Guards of what is compiled when it is launched: other packages announce each launch, and the guard is armed then."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from ._native import instrument


class Waiting(NamedTuple):
    """A guard that waits for a launch."""

    owner: Any
    """What the guard was given."""
    arm: Callable[[Any, Any], None]
    """Arms it for a compiled kernel, on a stream."""


_here = threading.local()


def waiting() -> list[Waiting]:
    """This thread's guards that wait, the outermost first."""
    found: list[Waiting] = _here.__dict__.setdefault("waiting", [])
    return found


def launching(kernel: Any, stream: Any, belongs: Callable[[Any, Any], bool]) -> None:
    """A compiled kernel is about to be launched on a stream; `belongs` says whether it is of what a guard was given."""
    for guard in waiting():
        if belongs(guard.owner, kernel):
            guard.arm(kernel, stream)


def is_late(module: Any) -> bool:
    """Whether a guard of it is armed when it is launched."""
    kind = type(module)
    package = kind.__module__.partition(".")[0]
    if package == "triton":
        return kind.__name__ in ("JITFunction", "Autotuner", "Heuristics", "CompiledKernel")
    return package in ("numba", "numba_cuda") and kind.__name__ in ("CUDADispatcher", "_Kernel")


def digest() -> str:
    """What kept code has to be told apart by: it changes with the text that is inserted."""
    import hashlib

    ptx = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() {\n$L: bra $L;\n}\n"
    return "cuinstr-" + hashlib.sha256(instrument(ptx, "k.ptx", False, False, []).text.encode()).hexdigest()[:16]
