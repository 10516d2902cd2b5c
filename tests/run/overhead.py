"""Times kernels of one compiler, plain and with polls, in one process: what the suites beside it share.

A suite gives cases. Each case has a kernel in several forms, and the forms are timed in turn, round after round. Forms with polls are launched in a guard
with a deadline that never comes.
"""
from __future__ import annotations

import ctypes
import hashlib
import json
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import cuinstr

DEADLINE = 60.0
ROUNDS = (5, 40)
# Of one sample, and of all samples of a case.
SAMPLE_SECONDS = 0.006
CASE_SECONDS = 1.5


class Form(NamedTuple):
    """A kernel as it was compiled once."""

    launch: Callable[[], Any]
    module: cuinstr.Module | None = None
    """What is guarded; None if it is plain."""


class Case(NamedTuple):
    forms: dict[str, Form]
    """The plain form comes first."""
    reset: Callable[[], Any]
    """Gives the outputs their first values again."""
    outputs: Callable[[], Iterable[Any]]
    """Arrays on the host."""


class Clock:
    """Events of the driver on the default stream, on which all suites launch."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.first, self.last = self.event(), self.event()
        self.elapsed = getattr(self.library, "cuEventElapsedTime_v2", self.library.cuEventElapsedTime)

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name}: error {code}")

    def event(self) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def sample(self, launch: Callable[[], Any], repeats: int) -> tuple[float, float]:
        """Microseconds of a launch, and those that the host took for it."""
        self.call("cuEventRecord", self.first, None)
        since = time.perf_counter()
        for _ in range(repeats):
            launch()
        host = time.perf_counter() - since
        self.call("cuEventRecord", self.last, None)
        self.call("cuEventSynchronize", self.last)
        took = ctypes.c_float()
        code = self.elapsed(ctypes.byref(took), self.first, self.last)
        if code != 0:
            raise RuntimeError(f"cuEventElapsedTime: error {code}")
        return took.value * 1e3 / repeats, host * 1e6 / repeats


def guarded(form: Form, work: Callable[[], Any], count: dict[str, int], launches: int) -> Any:
    if form.module is None:
        return work()
    # Leaving it raises if no kernel with polls was launched, and if one was stopped.
    with cuinstr.guard(form.module, 0, timeout=DEADLINE) as guard:
        result = work()
    if guard.outcome is None or not guard.outcome.completed:
        raise RuntimeError(f"a guarded launch did not end by itself: {guard.outcome}")
    count["guards"] += 1
    count["launches with polls"] += launches
    return result


def digest(outputs: Iterable[Any]) -> str:
    total = hashlib.sha256()
    for array in outputs:
        total.update(memoryview(array).cast("B"))
    return total.hexdigest()[:16]


def measured(name: str, case: Case, clock: Clock) -> dict[str, Any]:
    row: dict[str, Any] = {"kernel": name, "guards": 0, "launches with polls": 0}
    forms = dict(case.forms)
    plain = next(iter(forms))
    if not any(form.module for form in forms.values()):
        raise RuntimeError("no form of it has polls")
    forms = {plain: forms[plain], "again": forms[plain], **forms}
    hashes = {}
    for form_name, form in forms.items():
        case.reset()
        guarded(form, form.launch, row, 1)
        hashes[form_name] = digest(case.outputs())
    row["hashes"] = hashes
    row["plain repeats"] = hashes[plain] == hashes["again"]
    row["same"] = len(set(hashes.values())) == 1
    cost = min(clock.sample(forms[plain].launch, 1)[0] for _ in range(3))
    repeats = max(3, min(100, int(SAMPLE_SECONDS * 1e6 / max(cost, 1.0))))
    times: dict[str, list[float]] = {form_name: [] for form_name in forms}
    host = dict.fromkeys(forms, 0.0)
    until, rounds = time.monotonic() + CASE_SECONDS, 0
    order = list(forms)
    while rounds < ROUNDS[0] or (rounds < ROUNDS[1] and time.monotonic() < until):
        for turn in range(len(order)):
            form_name = order[(turn + rounds) % len(order)]
            form = forms[form_name]
            took, of_host = guarded(form, lambda form=form: clock.sample(form.launch, repeats), row, repeats)
            times[form_name].append(took)
            host[form_name] = max(host[form_name], of_host)
        rounds += 1
    row |= {"rounds": rounds, "repeats": repeats, "us": {form_name: round(statistics.median(found), 3) for form_name, found in times.items()}}
    row["ratios"] = {
        form_name: round(statistics.median(mine / other for mine, other in zip(found, times[plain])), 4) for form_name, found in times.items() if form_name != plain
    }
    # Launches that take the host longer than the GPU hide what polls cost.
    row["host us"] = {form_name: round(found, 1) for form_name, found in host.items()}
    row["hidden"] = max(host.values()) > 0.9 * min(row["us"].values())
    return row


def run(cases: dict[str, Callable[[], Case]], arguments: list[str]) -> None:
    """Measures the cases: `SUITE ROWS SECONDS [PART PARTS]`, which appends a line to ROWS for each. With a part it compiles these cases alone."""
    path, until = arguments[0], time.monotonic() + float(arguments[1])
    names = list(cases)
    is_compiling = len(arguments) > 2
    if is_compiling:
        names = names[int(arguments[2]) :: int(arguments[3])]
    clock = None
    for name in names:
        if time.monotonic() > until:
            row: dict[str, Any] = {"kernel": name, "skipped": "the time was over"}
        else:
            since = time.monotonic()
            try:
                case = cases[name]()
                ready = time.monotonic()
                if is_compiling:
                    continue
                clock = clock or Clock()
                row = measured(name, case, clock)
                row["seconds to compile"] = round(ready - since, 2)
            except Exception as error:  # noqa: BLE001 (a case that breaks must not end the others)
                row = {"kernel": name, "error": f"{type(error).__name__}: {error}"[-800:], "at": traceback.format_exc()[-800:]}
        if is_compiling:
            continue
        print(json.dumps(row), file=sys.stderr, flush=True)
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
