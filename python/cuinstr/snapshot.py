"""GPU memory that is saved to a file and restored in another process, at the same addresses. Without CRIU and without privileges.

    from cuinstr.snapshot import Ledger

    ledger = Ledger()
    weights = ledger.allocate("weights", 1 << 30)       # cupy.asarray(weights), torch.as_tensor(weights, device="cuda")
    ledger.save("step.snapshot")

    # in another process, before it allocates anything else:
    ledger = Ledger.restore("step.snapshot")
    weights = ledger.memory("weights")

A paused launch goes along, if its arguments lead to the ledger's memory:

    guard.pause()
    ledger.put_paused("step", guard)

    # in the other process:
    with ledger.take_paused("step").guard(module, stream):
        kernel((4096,), (256,), arguments)              # the same grid and arguments; the blocks that are left run

What does not lie in the ledger's memory is not saved. A snapshot of another GPU model, and a file that is damaged, are refused.
"""

from __future__ import annotations

import os
from typing import Any

from . import _native
from ._guard import Guard

__all__ = ["Ledger", "Memory", "Paused"]


class Memory:
    """Memory of a ledger: bytes for whatever takes arrays of CUDA's. It stays until its process ends."""

    def __init__(self, address: int, size: int) -> None:
        self.address, self.size = address, size

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (self.size,), "typestr": "|u1", "data": (self.address, False), "version": 3, "strides": None}

    def __repr__(self) -> str:
        return f"Memory({self.address:#x}, {self.size})"


class Paused:
    """What is left of a paused launch; made by `Ledger.take_paused`. Launch it once."""

    def __init__(self, left: _native.Left) -> None:
        self._left = left

    @property
    def blocks(self) -> int:
        """How many blocks are left."""
        return self._left.blocks

    @property
    def grid(self) -> tuple[int, int, int]:
        """The grid to launch, in x, y and z."""
        x, y, z = self._left.grid
        return x, y, z

    def guard(self, module: Any, stream: Any = None, *, raises: bool = True, wait: bool = True) -> Guard:
        """A guard around the launch of what is left, as `cuinstr.guard` makes it, with what was left of the timeout. Launch the same kernel inside it, with
        the same grid and arguments. It can be paused in its turn."""
        return Guard(module, stream, self._left, raises, wait)

    def __repr__(self) -> str:
        return f"Paused({self.blocks} blocks of {self.grid})"


class Ledger:
    """Memory and paused launches by name, in the primary context of a device."""

    def __init__(self, device: int = 0, *, _path: str | None = None) -> None:
        self._ledger = _native.Ledger(device, _path)

    @classmethod
    def restore(cls, path: str | os.PathLike[str], device: int = 0) -> Ledger:
        """The ledger that a file holds, with its memory where it was."""
        return cls(device, _path=os.fspath(path))

    def allocate(self, name: str, size: int) -> Memory:
        """So many bytes of zeroes under a new name; KeyError if it is taken."""
        return Memory(*self._ledger.allocate(name, size))

    def memory(self, name: str) -> Memory:
        """The memory of this name; KeyError if there is none."""
        return Memory(*self._ledger.memory(name))

    def names(self) -> list[str]:
        """The names of all memory."""
        return self._ledger.names()

    def put_paused(self, name: str, guard: Guard) -> None:
        """Takes over the paused launch of a guard under a new name; KeyError if it is taken, Failure if the launch is not paused.

        The launch is over then, as if it was cancelled: what is queued behind it goes on, on the results of the blocks that are done."""
        if guard._armed is None:
            raise _native.Failure("only a launch that is paused can be put into a ledger")
        self._ledger.put_paused(name, guard._armed)

    def take_paused(self, name: str) -> Paused:
        """What is left of the paused launch of this name, here or where the ledger is restored; KeyError if there is none. The ledger holds it no longer."""
        return Paused(self._ledger.take_paused(name))

    def save(self, path: str | os.PathLike[str], *, within: float = 60.0) -> int:
        """Saves it all once the context's default stream is idle, and gives the file's size in bytes; TimeoutError if it does not become idle in time.

        Synchronise other streams first. The file takes the place of an older one when it is whole."""
        return self._ledger.save(os.fspath(path), within)
