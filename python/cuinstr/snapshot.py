"""GPU memory that is saved to a file and restored in another process, at the same addresses. Without CRIU and without privileges.

    from cuinstr.snapshot import Ledger

    ledger = Ledger()
    weights = ledger.allocate("weights", 1 << 30)       # cupy.asarray(weights), torch.as_tensor(weights, device="cuda")
    ledger.save("step.snapshot")

    # in another process, before it allocates anything else:
    ledger = Ledger.restore("step.snapshot")
    weights = ledger.memory("weights")

What does not lie in the ledger's memory is not saved. A snapshot of another GPU model, and a file that is damaged, are refused.
"""

from __future__ import annotations

import os
from typing import Any

from . import _native

__all__ = ["Ledger", "Memory"]


class Memory:
    """Memory of a ledger: bytes for whatever takes arrays of CUDA's. It stays until its process ends."""

    def __init__(self, address: int, size: int) -> None:
        self.address, self.size = address, size

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (self.size,), "typestr": "|u1", "data": (self.address, False), "version": 3, "strides": None}

    def __repr__(self) -> str:
        return f"Memory({self.address:#x}, {self.size})"


class Ledger:
    """Memory by name, in the primary context of a device."""

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

    def save(self, path: str | os.PathLike[str], *, within: float = 60.0) -> int:
        """Saves it all once the context's default stream is idle, and gives the file's size in bytes; TimeoutError if it does not become idle in time.

        Synchronise other streams first. The file takes the place of an older one when it is whole."""
        return self._ledger.save(os.fspath(path), within)
