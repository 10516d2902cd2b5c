"""Mutants of CUDA kernels, for judging tests: `python -m cuinstr.mutate kernel.cu -o mutants/`."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys

from . import _mutate_run
from ._native import Failure
from ._rewrite import mutants


def main(arguments: list[str] | None = None) -> int:
    """Writes each mutant into a file, and an index of them as JSON lines."""
    parser = argparse.ArgumentParser(prog="python -m cuinstr.mutate", description="Writes mutants of a CUDA source.")
    parser.add_argument("source", type=pathlib.Path, help="the CUDA source")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="folder for the mutants and index.jsonl, without it they are only listed; with --run, a file for the verdicts as JSON lines")
    parser.add_argument("--most", type=int, help="at most so many, spread evenly")
    parser.add_argument("--operator", action="append", help="only this one; may be given several times")
    parser.add_argument("--run", metavar="COMMAND", help="put each mutant in the source's place and run the project's tests so; 0 means that they pass")
    parser.add_argument("--build", metavar="COMMAND", help="run before that; a mutant for which it fails is a compile error")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="that COMMAND may take (default: ten times what it takes with the original)")
    parser.add_argument("--kernel-timeout", metavar="TIME", help="CUINSTR_TIMEOUT for the tests, such as 2s, if they were built with `cuinstr nvcc`")
    asked = parser.parse_args(arguments)
    if asked.most is not None and asked.most < 0:
        parser.error("--most is a number of mutants")
    try:
        made = mutants(asked.source.read_text(encoding="utf-8"), most=asked.most, operators=asked.operator)
    except (OSError, ValueError) as error:
        print(f"cuinstr.mutate: {error}", file=sys.stderr)
        return 1
    if asked.run is not None:
        runs = _mutate_run.Runs(asked.run, asked.build, asked.limit, asked.kernel_timeout)
        try:
            _mutate_run.main(asked.source, made, runs, asked.output)
        except (OSError, Failure) as error:
            print(f"cuinstr.mutate: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
        return 0
    width = len(str(len(made)))
    lines = []
    for number, mutant in enumerate(made):
        name = f"{asked.source.stem}.{number:0{width}}{asked.source.suffix}"
        place = {"operator": mutant.operator, "function": mutant.function, "line": mutant.line, "column": mutant.column}
        lines.append(json.dumps({"file": name, **place, "before": mutant.before, "after": mutant.after}))
        if asked.output is None:
            print(f"{asked.source}:{mutant.line}:{mutant.column}: {mutant.operator}: `{mutant.before}` -> `{mutant.after}`")
        else:
            asked.output.mkdir(parents=True, exist_ok=True)
            (asked.output / name).write_text(mutant.source, encoding="utf-8")
    if asked.output is not None:
        asked.output.mkdir(parents=True, exist_ok=True)
        (asked.output / "index.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        print(f"{len(made)} mutants in {asked.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
