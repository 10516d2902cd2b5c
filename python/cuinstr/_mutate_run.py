"""Judges mutants by a project's own tests: `python -m cuinstr.mutate kernel.cu --run 'ctest …'`."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ._native import Failure, Mutant


class Runs(NamedTuple):
    """What is run for each mutant."""

    test: str
    build: str | None
    limit: float | None
    """Seconds that the tests may take; None for ten times what they take with the original, and at least ten seconds."""
    kernel: str | None
    """CUINSTR_TIMEOUT for programs that were built with `cuinstr nvcc`, so that a launch ends and not the whole test program."""


def _run(command: str, limit: float | None, kernel: str | None) -> tuple[str, str]:
    """How a command ended, "passed", "failed" or "timeout", and the last line that it printed."""
    environment = os.environ | ({} if kernel is None else {"CUINSTR_TIMEOUT": kernel})
    with subprocess.Popen(
        command,
        shell=True,
        env=environment,
        start_new_session=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        try:
            said, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return "timeout", f"killed after {limit:.0f} s"
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    last = said.strip().splitlines()[-1:] or [""]
    return "passed" if process.returncode == 0 else "failed", last[0][:500]


@contextlib.contextmanager
def _kept(source: pathlib.Path) -> Iterator[str]:
    """The source's text, which is put back whatever happens."""
    kept = source.with_name(source.name + ".cuinstr-original")
    if kept.exists():
        raise Failure(f"{kept} is left of a run that was killed: move it back to {source.name}, or remove it")
    text = source.read_text(encoding="utf-8")
    os.link(source, kept)
    try:
        yield text
    finally:
        os.replace(kept, source)


def _write(source: pathlib.Path, text: str) -> None:
    """As a new file, so that the original's own stays as it is, and build tools see that it is newer."""
    fresh = source.with_name(source.name + ".cuinstr-mutant")
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, source)


def judge(source: pathlib.Path, mutants: Sequence[Mutant], runs: Runs) -> Iterator[dict[str, object]]:
    """Puts each mutant in the source's place, builds, and tests. The original is back at the end."""
    with _kept(source):
        if runs.build is not None and (built := _run(runs.build, None, None))[0] != "passed":
            raise Failure(f"the original does not build: {built[1]}")
        since = time.monotonic()
        ended, said = _run(runs.test, runs.limit, runs.kernel)
        if ended != "passed":
            raise Failure(f"the tests do not pass with the original ({ended}): {said}")
        limit = runs.limit or max(10.0 * (time.monotonic() - since), 10.0)
        for number, mutant in enumerate(mutants):
            _write(source, mutant.source)
            since = time.monotonic()
            verdict, said = "compile error", ""
            if runs.build is None or (built := _run(runs.build, max(limit, 600.0), None))[0] == "passed":
                ended, said = _run(runs.test, limit, runs.kernel)
                verdict = {"passed": "survived", "failed": "noticed", "timeout": "timeout"}[ended]
            else:
                said = built[1]
            place = {"operator": mutant.operator, "function": mutant.function, "line": mutant.line, "column": mutant.column}
            what = {"before": mutant.before, "after": mutant.after, "message": said, "elapsed_s": round(time.monotonic() - since, 3)}
            yield {"number": number, "verdict": verdict, **place, **what}


def table(lines: Sequence[dict[str, object]]) -> str:
    """The mutation score, in all, by operator and by function: of the mutants that were built, those that the tests noticed."""
    parts = []
    for title, key in [("mutation score", None), ("by operator", "operator"), ("by function", "function")]:
        built: Counter[str] = Counter()
        noticed: Counter[str] = Counter()
        for line in lines:
            if line["verdict"] != "compile error":
                group = "" if key is None else f"{line[key]} "
                built[group] += 1
                noticed[group] += line["verdict"] != "survived"
        scores = [f"{group}{100 * noticed[group] / built[group]:.0f} % ({noticed[group]} of {built[group]})" for group in sorted(built)]
        parts.append(f"{title}: {', '.join(scores) or 'no mutant was built'}")
    return "\n".join(parts)


def main(source: pathlib.Path, mutants: Sequence[Mutant], runs: Runs, output: pathlib.Path | None) -> None:
    """Prints each mutant's verdict and the score; `output` gets the verdicts as JSON lines."""
    lines = []
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(output.open("w", encoding="utf-8")) if output is not None else None
        for line in judge(source, mutants, runs):
            lines.append(line)
            change = f"`{line['before']}` -> `{line['after']}`"
            print(f"{source}:{line['line']}:{line['column']}: {line['verdict']}: {line['operator']}: {change}", flush=True)
            if file is not None:
                file.write(json.dumps(line) + "\n")
                file.flush()
    print(table(lines))
