"""Judges modules in KernelBench's form: Python files with a `Model` or `ModelNew`, by a reference module with `Model`, `get_inputs` and
`get_init_inputs`.

A candidate is hostile: it runs in a process of its own, in namespaces without network and without foreign files where the system allows that. It is
given inputs that it has not seen before, in the same memory each time and behind other work of the GPU; it never sees the reference or the answers.
This process takes the time, and another one compares.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ._clocks import clocks
from ._module_child import receive, send
from ._native import Failure, __version__

_TRIALS = 3
_TIMES = 20


class Limits(NamedTuple):
    """Seconds, and what multiplies the reference's own."""

    load: float = 600.0
    """To import a candidate, its compiling included."""
    factor: float = 10.0
    least: float = 2.0
    ordinary: float = 10.0
    """For what is not the model's own: inputs, copies, Triton's compiling in the first run."""


class _Gone(Exception):
    """A candidate's process ended, or took too long."""

    def __init__(self, verdict: str, message: str) -> None:
        super().__init__(message)
        self.verdict = verdict


class _Process:
    """The process of a module."""

    def __init__(self, forks: _Forks, order: dict[str, Any]) -> None:
        ours, theirs = socket.socketpair()
        self.stream = ours
        self.pid = forks.start(order, theirs)
        theirs.close()

    def ask(self, what: dict[str, Any], payload: bytes, within: float, late: str) -> tuple[Any, bytes]:
        self.say(what, payload, within)
        return self.hear(within, late)

    def say(self, what: dict[str, Any], payload: bytes, within: float) -> None:
        self.stream.settimeout(within)
        try:
            send(self.stream, what, payload)
        except OSError as error:
            raise _Gone("fault", f"its process ended: {error}") from error

    def hear(self, within: float, late: str) -> tuple[Any, bytes]:
        self.stream.settimeout(within)
        try:
            answer, payload = receive(self.stream)
        except TimeoutError as error:
            raise _Gone("timeout", late) from error
        except (EOFError, OSError) as error:
            raise _Gone("fault", "its process ended") from error
        except ValueError as error:
            raise _Gone("wrong result", f"it does not keep to the protocol: {error}") from error
        if not isinstance(answer, dict):
            raise _Gone("wrong result", "it does not keep to the protocol")
        return answer, payload

    def end(self) -> None:
        self.stream.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


class _Forks:
    """The process that has imported torch and forks itself."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        command = [sys.executable, "-m", "cuinstr._module_child"]
        self._process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        theirs.close()

    def start(self, order: dict[str, Any], stream: socket.socket) -> int:
        try:
            socket.send_fds(self._control, [json.dumps(order).encode()], [stream.fileno()])
            answer = self._control.recv(4)
        except OSError:
            answer = b""
        if len(answer) < 4:
            _, said = self._process.communicate()
            raise Failure(f"modules need torch: {(said or '').strip().splitlines()[-1:] or 'its process ended'}")
        return int(struct.unpack("<i", answer)[0])

    def end(self) -> None:
        self._control.close()
        self._process.kill()
        self._process.communicate()


class Judge:
    """A reference, and what candidates are measured by."""

    def __init__(self, reference: pathlib.Path, limits: Limits, measure: bool) -> None:
        self._limits = limits
        self._measure = measure
        self._seed = int.from_bytes(os.urandom(4), "little")
        self.missing: list[str] = []
        self._forks = _Forks()
        folder = os.path.realpath(reference.parent)
        order: dict[str, Any] = {"scratch": None, "folder": folder, "module": reference.name, "visible": []}
        self._reference = _Process(self._forks, order)
        self._reference.hear(limits.load, "the reference does not load")
        self._loaded(self._reference, "the reference ", limits.load)
        self._init = self._of_reference({"do": "inputs", "init": True, "seed": 0})[1]
        self._of_reference({"do": "make"}, self._init)
        self.device, self.torch = (self._of_reference({"do": "device"})[0][name] for name in ("device", "torch"))
        longest = 0.0
        for _ in range(_TRIALS):
            inputs = self._inputs()
            since = time.monotonic()
            told, payload = self._of_reference({"do": "run"}, inputs)
            longest = max(longest, time.monotonic() - since)
            self._of_reference({"do": "run"}, inputs)
            if self._of_reference({"do": "compare", "outputs": told["outputs"]}, payload)[0]["difference"] is not None:
                raise Failure("the reference does not agree with itself")
        self.limit = max(limits.factor * longest, limits.least)
        self.times = self._timed(self._reference) if measure else None

    def _of_reference(self, what: dict[str, Any], payload: bytes = b"") -> tuple[Any, bytes]:
        answer, given = self._reference.ask(what, payload, self._limits.load, "it took too long")
        if "error" in answer:
            raise Failure(f"the reference fails: {answer['error']}")
        return answer, given

    def _inputs(self) -> bytes:
        """Inputs that nobody has seen."""
        self._seed += 1
        return self._of_reference({"do": "inputs", "init": False, "seed": self._seed})[1]

    def _loaded(self, process: _Process, whose: str, within: float) -> None:
        answer, _ = process.hear(within, f"{whose}took longer than {within:.0f} s to load, and was killed")
        if "error" in answer:
            raise _Gone("compile error", answer["error"])

    def _step(self, process: _Process, what: dict[str, Any], payload: bytes, within: float, late: str) -> tuple[Any, bytes]:
        answer, given = process.ask(what, payload, within, late)
        if "error" in answer:
            raise _Gone("fault", str(answer["error"])[:2000])
        return answer, given

    def _compared(self, told: Any, payload: bytes) -> None:
        if not isinstance(told.get("outputs"), list):
            raise _Gone("wrong result", "it does not keep to the protocol")
        difference = self._of_reference({"do": "compare", "outputs": told["outputs"]}, payload)[0]["difference"]
        if difference is not None:
            raise _Gone("wrong result", difference)

    def judge(self, path: pathlib.Path) -> dict[str, Any]:
        """The verdict of a candidate, with its reason."""
        since = time.monotonic()
        scratch = tempfile.mkdtemp(prefix="cuinstr-module-")
        process: _Process | None = None
        found: dict[str, Any] = {"verdict": "pass"}
        try:
            shutil.copyfile(path, os.path.join(scratch, "candidate.py"))
            process = _Process(self._forks, {"scratch": scratch, "module": "candidate.py", "visible": []})
            told, _ = process.hear(self._limits.ordinary, "its process did not begin")
            self.missing = list(told.get("missing", []))
            self._loaded(process, "it ", self._limits.load)
            self._step(process, {"do": "make"}, self._init, self._limits.load, "its model was not made in time")
            for trial in range(_TRIALS):
                inputs = self._inputs()
                within = self.limit + (0.0 if trial else self._limits.ordinary)
                late = f"it took longer than {within:.1f} s, and was killed"
                told, payload = self._step(process, {"do": "run"}, inputs, within, late)
                self._of_reference({"do": "run"}, inputs)
                self._compared(told, payload)
                if not told.get("steady"):
                    raise _Gone("wrong result", "its work goes on after forward() has returned: on a stream that nobody waits for")
            if self._measure:
                found |= self._measured(process)
        except _Gone as gone:
            found = {"verdict": gone.verdict, "message": str(gone)}
        finally:
            if process is not None:
                process.end()
            shutil.rmtree(scratch, ignore_errors=True)
        return found | {"elapsed_ms": round(1e3 * (time.monotonic() - since), 3)}

    def _timed(self, process: _Process) -> dict[str, Any]:
        """Times of runs, taken here, each with inputs of its own and a result that is compared."""
        is_reference = process is self._reference
        times, copies = [], []
        before = clocks()
        for _ in range(_TIMES + 1):
            inputs = self._inputs()
            self._step(process, {"do": "time"}, inputs, self._limits.ordinary, "it did not take its inputs in time")
            since = time.perf_counter()
            process.say({"do": "go"}, b"", self._limits.ordinary)
            answer, _ = process.hear(self.limit, f"it took longer than {self.limit:.1f} s, and was killed")
            done = time.perf_counter()
            if "error" in answer:
                raise _Gone("fault", str(answer["error"])[:2000])
            told, payload = process.hear(self._limits.ordinary, "its outputs did not come in time")
            copies.append(time.perf_counter() - done)
            times.append(done - since)
            if not is_reference:
                self._of_reference({"do": "run"}, inputs)
                self._compared(told, payload)
        # The first one loads code.
        quarters = statistics.quantiles(times[1:], n=4)
        measured = {"median_ms": 1e3 * quarters[1], "quartiles_ms": [1e3 * quarters[0], 1e3 * quarters[2]], "clocks_mhz": [before, clocks()]}
        self_copy = statistics.median(copies[1:])
        if is_reference:
            self._copy = self_copy
        elif self_copy > 3 * self._copy + 5e-3:
            raise _Gone("wrong result", f"it says that it is done {1e3 * self_copy:.1f} ms before its outputs are there")
        return measured

    def _measured(self, process: _Process) -> dict[str, Any]:
        times = self._timed(process)
        assert self.times is not None
        return {"times": times, "speed_up": self.times["median_ms"] / times["median_ms"]}

    def end(self) -> None:
        self._reference.end()
        self._forks.end()


def files(paths: Iterable[str]) -> list[pathlib.Path]:
    found: list[pathlib.Path] = []
    for text in paths:
        path = pathlib.Path(text)
        found.extend(sorted(path.glob("*.py")) if path.is_dir() else [path])
    return list(dict.fromkeys(found))


def _digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


class _Journal:
    """Verdicts by candidate, one JSON object a line; a line that was cut off is dropped."""

    def __init__(self, path: str | None, head: dict[str, Any]) -> None:
        self.known: dict[tuple[str, str], dict[str, Any]] = {}
        self._file = -1
        if path is None:
            return
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Failure(f"{path}: another evaluator is writing it: wait for that one, or name another file") from error
        text = pathlib.Path(path).read_bytes()
        whole = text.rfind(b"\n") + 1
        try:
            lines = [json.loads(line) for line in text[:whole].splitlines()]
        except ValueError as error:
            raise Failure(f"{path}: it is no journal: name another file") from error
        if lines and lines[0] != head:
            different = [name for name in head if not isinstance(lines[0], dict) or lines[0].get(name) != head[name]]
            raise Failure(f"{path}: its verdicts are of another {', '.join(different)}: name another file, or remove it")
        if not lines and text and not text.startswith(b'{"journal"'[: len(text)]):
            raise Failure(f"{path}: it is no journal: name another file")
        os.ftruncate(self._file, whole)
        if not lines:
            self.add(head)
        for line in lines[1:]:
            self.known[line["candidate"], line["hash"]] = line

    def add(self, line: dict[str, Any]) -> None:
        if self._file >= 0:
            os.write(self._file, json.dumps(line).encode() + b"\n")


def evaluate(
    reference: str, candidates: Iterable[str], journal: str | None, measure: bool, limits: Limits, tell: Callable[[str, str], object]
) -> Iterator[dict[str, Any]]:
    """Judges one after the other, each alone on the GPU."""
    found = files(candidates)
    if not found:
        raise Failure("there are no candidates: name .py files, or folders that hold some")
    judge = Judge(pathlib.Path(reference), limits, measure)
    try:
        head = {"journal": 2, "cuinstr": __version__, "form": "modules", "reference": _digest(pathlib.Path(reference))}
        kept = _Journal(journal, head | {"device": judge.device, "torch": judge.torch, "measure": measure})
        names = [(str(path), _digest(path)) for path in found]
        left = sum(name not in kept.known for name in names)
        tell("begun", json.dumps({"limits": [], "left": left, "known": len(names) - left}))
        has_warned = False
        for path, name in zip(found, names):
            line = kept.known.get(name)
            if line is None:
                line = {"candidate": name[0], "hash": name[1], "round": 1} | judge.judge(path)
                kept.add(line)
                tell("judged", json.dumps(line))
            if judge.missing and not has_warned:
                has_warned = True
                tell("warned", json.dumps({"what": "candidates are not shut in: " + "; ".join(judge.missing)}))
            yield line
    finally:
        judge.end()
