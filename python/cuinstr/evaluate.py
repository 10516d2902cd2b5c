"""Judges many candidates for a kernel by a reference: mutants, to see what tests are worth; generated kernels, to find those that are right.

    python -m cuinstr.evaluate collatz.toml --mutants 200 --journal collatz.jsonl
    python -m cuinstr.evaluate gemm.toml candidates/ --journal gemm.jsonl

`collatz.toml` names the reference, its launch and its test cases:

    reference = "collatz.cu"
    kernel = "collatz"
    grid = [16]
    block = [128]

    [[case]]
    arguments = [
        { u64 = 1000001 },
        { out = "i32", count = 2048 },
        { out = "u64", count = 2048 },
    ]

Each candidate is compiled, run in a worker process under ten times the reference's own fuel or time, and gets a verdict: pass, wrong result, timeout
(with the loop's line), fault, compile error, or refused. With a journal, an evaluation that was interrupted, by Ctrl-C or by anything else, goes
on where it was when the same command is given again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

from . import _modules, _namespace, _native, _ray, _report, _site
from ._libraries import libraries
from ._native import Failure, Summary
from ._pool import SERVE
from ._ray import Ray

__all__ = ["Ray", "Summary", "evaluate", "main"]


def evaluate(
    spec: str | os.PathLike[str],
    candidates: Iterable[str | os.PathLike[str]] = (),
    *,
    mutants: int | None = None,
    operators: Iterable[str] | None = None,
    by: str = "fuel",
    journal: str | os.PathLike[str] | None = None,
    repeat: int = 1,
    all_cases: bool = False,
    measure: bool = False,
    devices: Iterable[int] = (),
    spares: int = 2,
    jobs: int = 0,
    compile_only: str | None = None,
    baseline: tuple[bool, int, int] | None = None,
    watch: Callable[[str, str], object] | None = None,
    engine: Ray | None = None,
) -> Summary:
    """Judges candidates as the specification says, and gives all verdicts.

        summary = cuinstr.evaluate.evaluate("collatz.toml", mutants=200, journal="collatz.jsonl")
        print(summary)
        survivors = [line for line in map(json.loads, summary.lines()) if line["verdict"] == "pass"]

    spec: path of the specification, TOML or JSON.
    candidates: `.cu` and `.ptx` files, folders with some, or "@LIST", a file with a path on each line.
    mutants: at most so many mutants of the reference, besides; `operators` names the mutator's operators, else all are used.
    by: "fuel", for limits in iterations, the same on every run; or "time".
    journal: where verdicts are kept; what it holds already is not judged again.
    repeat: how often each candidate is judged.
    all_cases: whether candidates are judged in all cases, or until one decides.
    measure: whether candidates that pass are timed, compiled as they are, beside the reference.
    devices: numbers of the GPUs; all that there are, if none are named.
    spares: worker processes in reserve for each GPU, each some hundred MB.
    jobs: compilations at a time; 0 for as many as there are processors.
    compile_only: an architecture, such as "90": nothing is run, and no GPU is needed.
    baseline: whether only timeouts, how many at most, and how many at a time are also judged by one child process each, for comparison.
    watch: called with "begun", "judged", "compared" or "warned" and a JSON object, in this thread.
    engine: a Ray cluster that does the work, `cuinstr.evaluate.Ray()`; else this machine does. `devices`, `jobs` and `baseline` are this machine's.

    Raises KeyboardInterrupt on Ctrl-C, once what runs is cancelled, and whatever `watch` raises; ValueError, OSError or Failure if it can't go on.
    What a candidate does is no exception.
    """
    summary = _run(spec, candidates, mutants, operators, by, journal, repeat, all_cases, measure, devices, spares, jobs, compile_only, baseline, watch, engine)
    if summary.error is not None:
        raise summary.error
    return summary


def _run(
    spec: str | os.PathLike[str],
    candidates: Iterable[str | os.PathLike[str]],
    mutants: int | None,
    operators: Iterable[str] | None,
    by: str,
    journal: str | os.PathLike[str] | None,
    repeat: int,
    all_cases: bool,
    measure: bool,
    devices: Iterable[int],
    spares: int,
    jobs: int,
    compile_only: str | None,
    baseline: tuple[bool, int, int] | None,
    watch: Callable[[str, str], object] | None,
    engine: Ray | None,
) -> Summary:
    watch = watch or (lambda name, text: None)
    if engine is not None:
        if measure and engine.per_gpu != 1:
            raise ValueError("candidates are timed alone on their GPU: per_gpu is 1 then")
        if jobs or baseline is not None or list(devices):
            raise ValueError("devices, jobs and baseline are of this machine, and an engine does the work on others")
        files = [os.fspath(candidate) for candidate in candidates]
        names = None if operators is None else list(operators)
        plan = _native.Plan(
            os.fspath(spec), files, mutants, names, by, None if journal is None else os.fspath(journal), repeat, all_cases, measure, compile_only
        )
        arch = None if compile_only is None else "sm_" + compile_only.removeprefix("sm_")
        order = _site.Order(uuid.uuid4().hex, os.fspath(plan.spec), os.getcwd(), by, all_cases, engine.spares, measure, arch)
        return _ray.evaluate(engine, plan, order, watch)
    _tell_refused(watch)
    return _native.evaluate(
        os.fspath(spec),
        [os.fspath(candidate) for candidate in candidates],
        mutants,
        None if operators is None else list(operators),
        by,
        None if journal is None else os.fspath(journal),
        repeat,
        all_cases,
        measure,
        list(devices),
        spares,
        jobs,
        compile_only,
        baseline,
        sys.executable,
        ["-c", SERVE],
        libraries(),
        watch,
    )


def _tell_refused(watch: Callable[[str, str], object]) -> None:
    if what := _namespace.refused():
        watch("warned", json.dumps({"what": f"compilers are not shut in: {what}"}))


class _Bar:
    """One line that says how far it is, drawn at most ten times a second."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = self._drawn = time.monotonic()
        self._known = self._left = self._done = 0
        self._verdicts: Counter[str] = Counter()
        self._width = 0

    def watch(self, name: str, text: str) -> None:
        told = json.loads(text)
        if name == "begun":
            self._begun = time.monotonic()
            self._known, self._left = told["known"], told["left"]
            self._draw("", force=True)
        elif name == "judged":
            self._done += 1
            self._verdicts[told["verdict"]] += 1
            self._draw("", force=self._done == self._left)
        elif name == "compared":
            self._draw(f"; for comparison: {told['done']} of {told['all']}", force=told["done"] == told["all"])

    def _draw(self, more: str, force: bool) -> None:
        now = time.monotonic()
        if not force and now - self._drawn < 0.1:
            return
        self._drawn = now
        share = self._done / self._left if self._left else 1.0
        rate = self._done / max(now - self._begun, 1e-9)
        rest = f", {(self._left - self._done) / rate:.0f} s left" if 0 < self._done < self._left else ""
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in self._verdicts.most_common())
        known = f" (and {self._known} known)" if self._known else ""
        bar = "#" * int(20 * share)
        line = f"[{bar:20}] {self._done} of {self._left}{known}, {rate:.1f} a second{rest}: {verdicts}{more}"
        columns = 200
        if self._stream.isatty():
            # A terminal that does not know its width says 0.
            columns = os.get_terminal_size(self._stream.fileno()).columns or 80
        line = line[: max(columns - 1, 20)]
        self._stream.write("\r" + line.ljust(self._width))
        self._stream.flush()
        self._width = len(line)

    def end(self) -> None:
        if self._width:
            self._stream.write("\n")
            self._stream.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cuinstr.evaluate",
        description="Judges candidates for a kernel by a reference: pass, wrong result, timeout, fault, compile error, refused.",
        epilog="Exit status: 0 all is judged; 1 it can't go on; 2 the command line is wrong; 130 Ctrl-C. docs/EVALUATE.md says the rest.",
    )
    parser.add_argument("spec", help="the specification: reference, launch, test cases (TOML or JSON); or a module in KernelBench's form (.py)")
    parser.add_argument("candidates", nargs="*", help=".cu and .ptx files (modules: .py), folders with some, or @LIST, a file with a path on each line")
    parser.add_argument("--mutants", type=int, nargs="?", const=sys.maxsize, metavar="MOST", help="also mutants of the reference, at most so many")
    parser.add_argument("--operator", action="append", help="only this operator of the mutator; may be given several times")
    parser.add_argument("--by", choices=["fuel", "time"], default="fuel", help="what limits a candidate (default: fuel)")
    parser.add_argument("--journal", help="JSON lines of all verdicts; if there, the evaluation goes on behind them")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="judge each candidate so often, and say whose verdicts differ")
    parser.add_argument("--all-cases", action="store_true", help="judge each candidate in all cases, not only until one decides")
    parser.add_argument("--matrix", metavar="FILE", help="writes the verdict of each candidate in each case there (CSV); implies --all-cases")
    parser.add_argument("--lines", action="store_true", help="prints each verdict as a line of JSON as it comes, and the table on standard error")
    parser.add_argument("--device", type=int, action="append", default=[], metavar="N", help="only this GPU; may be given several times")
    parser.add_argument("--spares", type=int, default=2, metavar="N", help="worker processes in reserve for each GPU (default: 2)")
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help="compilations at a time (default: one for each processor)")
    parser.add_argument("--compile-only", metavar="ARCH", help="run nothing; compile for this architecture, such as 90")
    parser.add_argument("--baseline", choices=["timeouts", "all"], help="afterwards, the same work by one child process a candidate")
    parser.add_argument("--baseline-most", type=int, default=sys.maxsize, metavar="N", help="that of so many candidates at most")
    parser.add_argument("--baseline-at-a-time", type=int, default=1, metavar="N", help="so many children at a time (default: 1)")
    parser.add_argument("--ray", nargs="?", const="", metavar="ADDRESS", help="on a Ray cluster; without ADDRESS, one of this machine alone")
    parser.add_argument("--per-gpu", type=int, default=1, metavar="N", help="benches on each GPU of the cluster (default: 1)")
    parser.add_argument("--gpu", metavar="NAME", help="only the cluster's GPUs that have this in their name, such as H200")
    parser.add_argument("--measure", action="store_true", help="time each candidate that passes, compiled as it is, beside the reference")
    parser.add_argument("--load-limit", type=float, metavar="SECONDS", help="that importing a module may take (default: 600)")
    parser.add_argument("--json", metavar="FILE", help="writes the summary there")
    parser.add_argument("--html", metavar="FILE", help="writes a report there, one file that needs no other")
    parser.add_argument("--no-progress", action="store_true", help="no progress bar, on a terminal either")
    return parser


def _html(title: str, summary: Summary) -> str:
    return _report.html(title, json.loads(summary.json()), map(json.loads, summary.lines()))


def _judge_modules(asked: argparse.Namespace, watch: Callable[[str, str], object]) -> int:
    """Candidates in KernelBench's form."""
    others = [name for name in ("mutants", "ray", "compile_only", "baseline", "matrix") if getattr(asked, name) is not None]
    if others:
        print(f"cuinstr.evaluate: {', '.join('--' + name.replace('_', '-') for name in others)} is not for modules", file=sys.stderr)
        return 2
    limits = _modules.Limits(**({} if asked.load_limit is None else {"load": asked.load_limit}))
    lines = list(_modules.evaluate(asked.spec, asked.candidates, asked.journal, asked.measure, limits, watch))
    shown = sys.stderr if asked.lines else sys.stdout
    width = max(len(line["candidate"]) for line in lines)
    for line in lines:
        speed = f"{line['speed_up']:.2f} x, {line['times']['median_ms']:.3f} ms" if "times" in line else line.get("message", "")
        print(f"{line['candidate']:{width}}  {line['verdict']:13}  {speed}".rstrip(), file=shown)
    counts = Counter(line["verdict"] for line in lines)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()), file=shown)
    if asked.json is not None:
        with open(asked.json, "w", encoding="utf-8") as file:
            json.dump({"verdicts": counts, "judgements": lines}, file, indent=2)
    if asked.html is not None:
        with open(asked.html, "w", encoding="utf-8") as file:
            file.write(_report.html(asked.spec, {"judged": len(lines), "wanted": len(lines)}, lines))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: see `python -m cuinstr.evaluate --help`."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    if not asked.candidates and asked.mutants is None:
        parser.error("name candidates, or ask for --mutants")
    if min(asked.repeat, asked.baseline_most, asked.baseline_at_a_time, asked.per_gpu) < 1 or min(asked.spares, asked.jobs, *asked.device, 0) < 0:
        parser.error("numbers are positive")
    if asked.mutants is not None and asked.mutants < 0:
        parser.error("--mutants is a number")
    baseline = None
    if asked.baseline is not None:
        baseline = (asked.baseline == "timeouts", asked.baseline_most, asked.baseline_at_a_time)
    engine = None if asked.ray is None else Ray(asked.ray or None, asked.per_gpu, asked.gpu, asked.spares)
    bar = _Bar(sys.stderr) if sys.stderr.isatty() and not asked.no_progress else None

    def watch(name: str, text: str) -> None:
        if bar is not None:
            bar.watch(name, text)
        if asked.lines and name == "judged":
            print(text, flush=True)
        if name == "warned":
            print(f"cuinstr.evaluate: {json.loads(text)['what']}", file=sys.stderr)

    try:
        for path in filter(None, [asked.json, asked.matrix, asked.html]):
            # What can't be written is said before the work, not behind it.
            with open(path, "a", encoding="utf-8"):
                pass
        if asked.spec.endswith(".py"):
            return _judge_modules(asked, watch)
        summary = _run(
            asked.spec,
            asked.candidates,
            asked.mutants,
            asked.operator,
            asked.by,
            asked.journal,
            asked.repeat,
            asked.all_cases or asked.matrix is not None,
            asked.measure,
            asked.device,
            asked.spares,
            asked.jobs,
            asked.compile_only,
            baseline,
            watch,
            engine,
        )
    except (Failure, OSError, ValueError) as error:
        print(f"cuinstr.evaluate: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if bar is not None:
            bar.end()
    print(summary, end="", file=sys.stderr if asked.lines else sys.stdout)
    try:
        for path, text in [(asked.json, summary.json() + "\n"), (asked.matrix, summary.matrix()), (asked.html, _html(asked.spec, summary))]:
            if path is not None:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
    except OSError as error:
        print(f"cuinstr.evaluate: the summary is not written: {error}", file=sys.stderr)
        return 1
    if summary.error is not None:
        if not isinstance(summary.error, KeyboardInterrupt):
            raise summary.error
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
