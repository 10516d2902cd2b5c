"""What runs on the machines of a Ray cluster: compilers as tasks, benches as actors. Ray carries references to these functions by name, so the same
package must be installed there."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pathlib
import platform
import sys
import tempfile
import time
from typing import NamedTuple

from . import _namespace, _native
from ._libraries import libraries
from ._native import Failure
from ._pool import SERVE


class Order(NamedTuple):
    """What a compiler or a bench on another machine is made for."""

    number: str
    """Tells the evaluation from others in the same cluster."""
    spec: str
    folder: str
    by: str
    all_cases: bool
    spares: int
    measure: bool = False
    arch: str | None = None


class _Site:
    """The files of an evaluation on another machine, and the compilers of this process."""

    _sites: dict[str, _Site] = {}

    def __init__(self, files: dict[str, bytes], order: Order) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="cuinstr-")
        self.root = self._folder.name
        for path, contents in files.items():
            place = self.place(path)
            # What `..` leads through must be there.
            os.makedirs(os.path.dirname(self.root + path), exist_ok=True)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            pathlib.Path(place).write_bytes(contents)
        os.makedirs(self.place(order.folder), exist_ok=True)
        self.compilers: dict[str, _native.Compiler] = {}

    @classmethod
    def of(cls, files: dict[str, bytes], order: Order) -> _Site:
        """The one of this process, which serves one evaluation at a time."""
        if order.number not in cls._sites:
            cls._sites = {order.number: cls(files, order)}
        return cls._sites[order.number]

    def place(self, path: str) -> str:
        place = os.path.normpath(self.root + path)
        if not place.startswith(self.root + os.sep):
            raise Failure(f"{path}: it leads out of the folder that files are shipped to")
        return place

    def compiler(self, order: Order) -> _native.Compiler:
        assert order.arch is not None
        if order.arch not in self.compilers:
            spec, folder = self.place(order.spec), self.place(order.folder)
            self.compilers[order.arch] = _native.Compiler(self.root, spec, folder, order.arch, order.by, False, _program())
        return self.compilers[order.arch]


def _program() -> tuple[str, list[str], list[str]]:
    return sys.executable, ["-c", SERVE], libraries()


def _wheel() -> str:
    """What tells this installation of the package from others."""
    found = importlib.util.find_spec("cuinstr._native")
    assert found is not None and found.origin is not None
    return f"cuinstr {_native.__version__} ({hashlib.sha256(pathlib.Path(found.origin).read_bytes()).hexdigest()[:12]})"


def _probe() -> dict[str, str]:
    """What verdicts depend on, of a machine."""
    return {"host": platform.node(), "wheel": _wheel(), "driver": _native.driver(), "refused": _namespace.refused()}


def _compile(files: dict[str, bytes], order: Order, name: str, source: bytes) -> tuple[tuple[str | None, str], tuple[bytes, str] | None]:
    """A finding, or the compiler's name; and code with its kernel's symbol."""
    done, finding = _Site.of(files, order).compiler(order).compile(name, source)
    if done is None:
        return (finding, ""), None
    code, kernel, compiler = done
    return (None, compiler), (code, kernel)


class _Bench:
    """A GPU, or a share of one, with a worker on it."""

    def __init__(self) -> None:
        self._bench: _native.Bench | None = None

    def open(self, files: dict[str, bytes], order: Order) -> dict[str, str]:
        """Starts the worker. The actor outlives a failure, so that Ray gives a broken GPU to nobody else."""
        import ray

        site = _Site.of(files, order)
        own = ray.get_gpu_ids()
        name = str(own[0]) if own else "0"
        folder = site.place(order.folder) if order.measure else None
        # Ray has this process see its own GPU alone.
        self._bench = _native.Bench(site.root, site.place(order.spec), 0, order.by, order.all_cases, order.spares, folder, _program())
        return {"name": self._bench.name, "arch": self._bench.arch, "gpu": name}

    def _own(self) -> _native.Bench:
        if self._bench is None:
            raise Failure("the bench is not open")
        return self._bench

    def measure(self, image: tuple[bytes, str], known: str | None) -> str:
        code, kernel = image
        return self._own().measure(code, kernel, known)

    def judge(self, name: str, source: bytes, image: tuple[bytes, str], limits: str) -> tuple[str, float, int]:
        """The finding, the seconds that it took, and how many processes it has cost so far."""
        code, kernel = image
        since = time.monotonic()
        finding = self._own().judge(name, source, code, kernel, limits)
        return finding, time.monotonic() - since, self._own().losses
