"""The package as it is installed, on any machine: what needs a GPU is in the examples."""

from __future__ import annotations

import gc
import importlib.metadata
import inspect
import io
import json
import os
import pathlib
import pickle
import pty
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
import unittest
from typing import Any

import cuinstr
from cuinstr import _extents, _guard, _handles, _modules, _pool, _report, evaluate

SOURCE = "__global__ void wait(volatile int* flag) { while (*flag == 0) { } }\n"
PTX = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry spin()\n{\n$L:\n\tbra $L;\n}\n"


class Rewriting(unittest.TestCase):
    def test_a_source_gets_its_polls(self) -> None:
        rewritten = cuinstr.rewrite(SOURCE, path="wait.cu", timeout=2.5, fuel=1000)
        self.assertIn('#line 1 "wait.cu"', rewritten.text)
        self.assertIn("#define __cuinstr_timeout_ns 2500000000ull", rewritten.text)
        self.assertIn("#define __cuinstr_fuel 1000ull", rewritten.text)
        self.assertEqual(str(rewritten), rewritten.text)
        self.assertEqual([site["kind"] for site in json.loads(rewritten.sites)["sites"]], ["entry", "while", "exit"])
        self.assertEqual(rewritten.diagnostics, [])

    def test_a_refusal_names_place_and_reason(self) -> None:
        with self.assertRaisesRegex(cuinstr.Refused, r"^kernel\.cu:1:23: error\[CI005\]: "):
            cuinstr.rewrite("__global__ void f() { (")
        with self.assertRaisesRegex(cuinstr.Refused, "CI004"):
            cuinstr.rewrite(cuinstr.rewrite(SOURCE).text)

    def test_gaps_are_told_and_strict_refuses_them(self) -> None:
        source = '__global__ void f(int n) { FOR_EACH(i, n) { n += i; } }\n'
        self.assertTrue(any("CI010" in line for line in cuinstr.rewrite(source).diagnostics))
        with self.assertRaises(cuinstr.Refused):
            cuinstr.rewrite(source, strict=True)
        self.assertEqual(cuinstr.rewrite(source, strict=True, loop_macros=["FOR_EACH"]).diagnostics, [])

    def test_what_makes_no_sense_is_refused(self) -> None:
        for arguments in ({"polls": "some"}, {"timeout": 0.0}, {"timeout": -1.0}, {"fuel": 1 << 60}, {"device_macros": {"K": "host"}}):
            with self.assertRaises(ValueError):
                cuinstr.rewrite(SOURCE, **arguments)
        with self.assertRaises((OverflowError, TypeError)):
            cuinstr.rewrite(SOURCE, fuel=-1)

    def test_ptx_gets_its_polls_and_they_are_proved(self) -> None:
        for ptx in (PTX, PTX.encode(), PTX.encode() + b"\0"):
            plain = cuinstr.verify(ptx, path="spin.ptx")
            self.assertFalse(plain)
            self.assertRegex(plain.open[0], r"^spin\.ptx:\d+: error\[CI05\d\]: a loop in `spin` ")
            instrumented = cuinstr.instrument(ptx)
            proof = cuinstr.verify(instrumented.text)
            self.assertTrue(proof, proof.open)
            self.assertEqual(proof.report["kernels"], ["spin"])
            self.assertIn("loop", [site["kind"] for site in json.loads(instrumented.sites)["sites"]])
        with self.assertRaisesRegex(cuinstr.Refused, "CI004"):
            cuinstr.instrument(cuinstr.instrument(PTX).text)
        with self.assertRaisesRegex(cuinstr.Refused, "kernel.ptx"):
            cuinstr.instrument(SOURCE)
        with self.assertRaises(ValueError):
            cuinstr.instrument(PTX, polls="some")

    def test_a_timeout_may_be_text(self) -> None:
        self.assertEqual(cuinstr.rewrite(SOURCE, timeout="2500ms").text, cuinstr.rewrite(SOURCE, timeout=2.5).text)
        with self.assertRaisesRegex(ValueError, "the unit is missing: 2s"):
            cuinstr.rewrite(SOURCE, timeout="2")
        with self.assertRaisesRegex(TypeError, "such as '2s', not list"):
            cuinstr.rewrite(SOURCE, timeout=[2])  # type: ignore[arg-type]

    def test_barriers_marks_lie_where_the_caller_says(self) -> None:
        source = "__global__ void f(int* p) { for (int i = 0; p[i]; ++i) { __syncthreads(); } }"
        texts = [cuinstr.rewrite(source, barrier_marks=where).text for where in ("auto", "shared", "global")]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[1], texts[2])
        with self.assertRaisesRegex(ValueError, "'auto', 'shared' or 'global'"):
            cuinstr.rewrite(source, barrier_marks="local")


class Mutating(unittest.TestCase):
    SOURCE = "__global__ void scale(float* x, int n) {\n    for (int i = 0; i < n; ++i) x[i] *= 2;\n}\n"

    def test_mutants_differ_from_the_source_in_one_place(self) -> None:
        made = cuinstr.mutants(self.SOURCE)
        self.assertEqual(len({mutant.source for mutant in made} | {self.SOURCE}), len(made) + 1)
        step = next(mutant for mutant in made if mutant.before == "++")
        self.assertEqual((step.operator, step.function, step.line, step.column, step.after), ("loop-step", "scale", 2, 28, "--"))
        self.assertEqual(step.source, self.SOURCE.replace("++i", "--i"))
        self.assertEqual({mutant.operator for mutant in cuinstr.mutants(self.SOURCE, operators=["loop-bound"])}, {"loop-bound"})
        self.assertEqual(len(cuinstr.mutants(self.SOURCE, most=3)), 3)
        with self.assertRaisesRegex(ValueError, "there are arithmetic, "):
            cuinstr.mutants(self.SOURCE, operators=["random"])

    def test_the_command_writes_them_with_an_index(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "scale.cu"
            source.write_text(self.SOURCE)
            command = [sys.executable, "-W", "error", "-m", "cuinstr.mutate", str(source), "--most", "5"]
            listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            self.assertEqual(len(listed.splitlines()), 5)
            subprocess.run([*command, "-o", f"{folder}/out"], check=True, capture_output=True)
            index = (pathlib.Path(folder) / "out/index.jsonl").read_text().splitlines()
            self.assertEqual(len(index), 5)
            for line in map(json.loads, index):
                self.assertNotEqual((pathlib.Path(folder) / "out" / line["file"]).read_text(), self.SOURCE)
            failed = subprocess.run([*command[:-3], f"{folder}/absent.cu"], capture_output=True, text=True)
            self.assertEqual((failed.returncode, failed.stderr.startswith("cuinstr.mutate: ")), (1, True))


class WithoutAGpu(unittest.TestCase):
    """Every way in ends in an exception that says what is wrong, whatever the machine has."""

    def test_null_is_no_handle(self) -> None:
        for kind in ("module", "library", "function", "kernel", "control"):
            with self.assertRaisesRegex(ValueError, "null"):
                cuinstr.attach(0, kind=kind)
        with self.assertRaisesRegex(ValueError, '"texture"'):
            cuinstr.attach(1, kind="texture")

    def test_a_thread_without_a_context_is_told_so(self) -> None:
        # Where there is no driver that is said instead.
        with self.assertRaisesRegex(cuinstr.Failure, "no current CUDA context|no CUDA driver"):
            with cuinstr.guard(4096, timeout=1.0):
                self.fail("nothing is guarded")

    def test_an_object_of_no_known_package_is_a_type_error(self) -> None:
        for module in ("kernel.cubin", None, True, object()):
            with self.assertRaisesRegex(TypeError, "no handle of the driver's is known"):
                cuinstr.attach(module)

    def test_a_timeout_must_be_said(self) -> None:
        with self.assertRaises(TypeError):
            cuinstr.guard(1)  # type: ignore[call-arg]


class Pooling(unittest.TestCase):
    def test_arguments_become_bytes(self) -> None:
        words = memoryview(bytes(range(8))).cast("I")
        self.assertEqual(_pool._given(cuinstr.InOut(words)), (bytes(range(8)), 8, True, True))
        self.assertEqual(_pool._given(cuinstr.In(b"ab")), (b"ab", 2, True, False))
        self.assertEqual(_pool._given(cuinstr.Out(16)), (None, 16, True, True))
        self.assertEqual(_pool._given(b"abcd"), (b"abcd", 4, False, False))
        with self.assertRaisesRegex(TypeError, "not int"):
            _pool._given(3)
        self.assertEqual(_extents.extents((4,), "grid"), (4, 1, 1))
        with self.assertRaises(ValueError):
            _extents.extents((1, 1, 1, 1), "grid")

    def test_a_pool_needs_a_gpu_or_says_what_is_missing(self) -> None:
        # The worker process starts, and it is that process which says so. Where there is a GPU the pool opens.
        try:
            with cuinstr.Pool(1, spares=0) as pool:
                self.assertEqual(pool.losses, 0)
        except cuinstr.Failure as failure:
            self.assertRegex(str(failure), "no CUDA driver|no GPU|CUDA driver speaks")
        with self.assertRaises(ValueError):
            cuinstr.Pool(0)

    def test_a_process_that_is_no_worker_does_not_serve(self) -> None:
        code = "from cuinstr._native import serve; raise serve()"
        child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertIn("not started as a worker", child.stderr)


def made(package: str, name: str, **attributes: Any) -> Any:
    """An object as that package makes one, as far as handles go."""
    return type(name, (), {"__module__": package, **attributes})()


class Handles(unittest.TestCase):
    def test_modules_lead_to_what_the_driver_knows(self) -> None:
        pointer = types.SimpleNamespace(ptr=7)
        number = made("cuda.bindings.driver", "CUlibrary", __int__=lambda self: 8)
        known = [
            (5, ("module", 5)),
            (made("cupy._core.raw", "RawModule", module=pointer), ("module", 7)),
            (made("cupy._core.raw", "RawKernel", kernel=pointer), ("function", 7)),
            (made("cupy.cuda.function", "Module", ptr=9), ("module", 9)),
            (made("cupy.cuda.function", "Function", ptr=9), ("function", 9)),
            (number, ("library", 8)),
            (made("cuda.bindings.cyruntime", "cudaFunction_t", __int__=lambda self: 3), ("function", 3)),
            (made("cuda.core._module", "ObjectCode", handle=number), ("library", 8)),
            (made("cuda.core._module", "Kernel", handle=4), ("kernel", 4)),
            (made("pycuda.compiler", "SourceModule", get_global=lambda self, name: (len(name), 1192)), ("control", 18)),
        ]
        for module, expected in known:
            with self.subTest(module=type(module).__name__):
                self.assertEqual(_handles.of_module(module), expected)

    def test_a_module_of_pycuda_without_the_symbol_was_not_rewritten(self) -> None:
        error = type("LogicError", (Exception,), {})

        def missing(self: object, name: str) -> None:
            raise error("named symbol not found")

        with self.assertRaises(cuinstr.NotInstrumented):
            _handles.of_module(made("pycuda.compiler", "SourceModule", get_global=missing))

    def test_streams_lead_to_what_the_driver_knows(self) -> None:
        known = [
            (None, 0),
            (2, 2),
            (made("cuda.core._stream", "Stream", __cuda_stream__=lambda self: (0, 11)), 11),
            (made("torch.cuda.streams", "Stream", cuda_stream=12), 12),
            (made("cupy.cuda.stream", "Stream", ptr=13), 13),
            (made("pycuda._driver", "Stream", handle=14), 14),
        ]
        for stream, expected in known:
            with self.subTest(stream=type(stream).__module__):
                self.assertEqual(_handles.of_stream(stream, None)[0], expected)
        with self.assertRaises(TypeError):
            _handles.of_stream("0", None)

    def test_cupy_launches_on_its_current_stream(self) -> None:
        current = types.SimpleNamespace(get_current_stream=lambda: types.SimpleNamespace(ptr=21))
        sys.modules["cupy"] = types.SimpleNamespace(cuda=current)  # type: ignore[assignment]
        try:
            self.assertEqual(_handles.of_stream(None, made("cupy._core.raw", "RawModule")), (21, "CuPy's current stream (handle 0x15)"))
            # Of a handle nobody knows the package, and CuPy has a stream of its own.
            self.assertEqual(_handles.of_stream(None, 5)[0], 21)
            self.assertEqual(_handles.of_stream(None, made("pycuda.compiler", "SourceModule")), (0, "the legacy default stream"))
        finally:
            del sys.modules["cupy"]


class Attaching(unittest.TestCase):
    """What was attached once is not attached again, and outlives nothing."""

    def setUp(self) -> None:
        self.attached: list[object] = []

        def attach(module: object) -> _guard.Module:
            self.attached.append(type(module).__name__)
            return _guard.Module(None, module)  # type: ignore[arg-type]

        self.real = _guard.attach
        _guard.attach = attach  # type: ignore[assignment]
        self.addCleanup(setattr, _guard, "attach", self.real)
        self.addCleanup(_guard._attached.clear)

    def test_an_object_is_attached_once_and_not_kept_alive(self) -> None:
        module = made("cuda.core._module", "ObjectCode")
        for _ in range(3):
            _guard._attach_once(module)
        self.assertEqual(self.attached, ["ObjectCode"])
        before = len(_guard._attached_weak)
        del module
        gc.collect()
        self.assertEqual(len(_guard._attached_weak), before - 1)

    def test_one_that_bears_no_weak_reference_is_kept_for_a_while(self) -> None:
        bare = type("RawModule", (), {"__slots__": ()})
        modules = [bare() for _ in range(_guard._MOST_ATTACHED + 1)]
        for module in modules:
            _guard._attach_once(module)
            _guard._attach_once(module)
        self.assertEqual(len(self.attached), len(modules))
        self.assertEqual(len(_guard._attached), _guard._MOST_ATTACHED)

    def test_what_came_to_the_place_of_another_is_attached_itself(self) -> None:
        first, second = made("cuda.core._module", "ObjectCode"), made("cuda.core._module", "ObjectCode")
        _guard._attach_once(first)
        # As if the first had gone and the second had been put where it was.
        _guard._attached_weak[id(second)] = _guard._attached_weak[id(first)]
        _guard._attach_once(second)
        self.assertEqual(len(self.attached), 2)
        self.assertIs(_guard._attached_weak[id(second)][0](), second)

    def test_a_number_is_attached_each_time(self) -> None:
        _guard._attach_once(77)
        _guard._attach_once(77)
        self.assertEqual(len(self.attached), 2)


SPEC = """
reference = "halve.cu"
kernel = "halve"
grid = [1]
block = [32]

[[case]]
arguments = [{ inout = "u32", values = [7, 1000, 4] }, { i32 = 3 }]
"""

HALVE = """
extern "C" __global__ void halve(unsigned* numbers, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) while (numbers[i] > 1) numbers[i] /= 2;
}
"""


class Evaluating(unittest.TestCase):
    """What of the batch evaluator needs no GPU: compiling, journals, interrupts, bad use."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "halve.cu").write_text(HALVE)
        (self.folder / "halve.toml").write_text(SPEC)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "cuinstr.evaluate", str(self.folder / "halve.toml"), *arguments]

    def run_it(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=300)
        # What a system without namespaces has said of it.
        done.stderr = "".join(line for line in done.stderr.splitlines(True) if "compilers are not shut in" not in line)
        return done

    def needs_nvrtc(self) -> None:
        done = self.run_it("--mutants", "1", "--compile-only", "80")
        if done.returncode != 0:
            self.assertIn("nothing can be compiled: NVRTC (libnvrtc)", done.stderr)
            if "nvcc" in os.environ.get("CUINSTR_REQUIRE", "").split(","):
                self.fail(f"CUINSTR_REQUIRE names nvcc, but {done.stderr}")
            self.skipTest(done.stderr)

    def lines(self, journal: pathlib.Path) -> list[dict[str, Any]]:
        text = journal.read_bytes() if journal.exists() else b""
        return [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()[1:]]

    def test_candidates_are_compiled_judged_and_written_down(self) -> None:
        self.needs_nvrtc()
        (self.folder / "candidates").mkdir()
        (self.folder / "candidates" / "good.cu").write_text(HALVE)
        (self.folder / "candidates" / "bad.cu").write_text(HALVE.replace("int i =", "int i"))
        (self.folder / "candidates" / "own.cu").write_text(cuinstr.rewrite(HALVE).text)
        journal, summary = self.folder / "journal.jsonl", self.folder / "summary.json"
        more = ("--compile-only", "80", "--journal", str(journal), "--json", str(summary))
        done = self.run_it(str(self.folder / "candidates"), *more)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        found = {pathlib.Path(line["candidate"]).stem: (line["verdict"], line.get("place", {}).get("line")) for line in self.lines(journal)}
        self.assertEqual(found["good"], ("compiles", None))
        self.assertEqual(found["bad"], ("compile error", 4))
        self.assertEqual(found["own"][0], "refused")
        self.assertEqual(json.loads(summary.read_text())["verdicts"]["compiles"], 1)
        head = json.loads(journal.read_bytes().splitlines()[0])
        self.assertRegex(head["conditions"]["compiler"], r"^NVRTC \d+\.\d+$")
        self.assertEqual(head["conditions"]["architecture"], "sm_80")
        done = self.run_it(str(self.folder / "candidates"), *more)
        self.assertRegex(done.stdout, r"\b0 judged in [0-9.]+ s; 3 known from the journal")

    def test_a_compiler_reads_no_foreign_files(self) -> None:
        self.needs_nvrtc()
        (self.folder / "beside.h").write_text("#define BESIDE 1\n")
        with tempfile.TemporaryDirectory() as other:
            foreign = pathlib.Path(other) / "foreign.h"
            foreign.write_text("#define FOREIGN 1\n")
            for name, header in ("own", "beside.h"), ("foreign", foreign):
                (self.folder / f"{name}.cu").write_text(f'#include "{header}"\n' + HALVE)
            told: list[str] = []
            watch = lambda name, text: told.append(text) if name in ("warned", "judged") else None  # noqa: E731: it is short
            evaluate.evaluate(self.folder / "halve.toml", [self.folder / f"{name}.cu" for name in ("own", "foreign")], compile_only="80", watch=watch)
        if "not shut in" in told[0]:
            self.skipTest(told[0])
        found = {pathlib.Path(line["candidate"]).stem: line["verdict"] for line in map(json.loads, told)}
        self.assertEqual(found, {"own": "compiles", "foreign": "compile error"})

    def test_each_verdict_is_a_line_and_all_are_a_matrix(self) -> None:
        self.needs_nvrtc()
        matrix = self.folder / "matrix.csv"
        done = self.run_it("--mutants", "3", "--compile-only", "80", "--lines", "--matrix", str(matrix))
        self.assertEqual([json.loads(line)["candidate"] for line in done.stdout.splitlines()].count("halve.0"), 1, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 3)
        self.assertIn("3 judged in", done.stderr)
        self.assertEqual(len(matrix.read_text().splitlines()), 4)

    def test_what_can_not_be_written_is_said_before_the_work(self) -> None:
        summary = self.folder / "no" / "such" / "folder.json"
        done = self.run_it("--mutants", "2", "--compile-only", "80", "--json", str(summary))
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn(str(summary), done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_ctrl_c_stops_it_and_the_same_command_goes_on(self) -> None:
        self.needs_nvrtc()
        journal = self.folder / "journal.jsonl"
        more = ("--mutants", "--compile-only", "80", "--journal", str(journal), "--jobs", "1")
        # Where the tests run in the background, SIGINT is ignored, and children would ignore it too.
        heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731: it runs in the child
        # On a busy machine it may be done before this process gets on.
        for _ in range(10):
            journal.unlink(missing_ok=True)
            process = subprocess.Popen(self.command(*more), stdout=subprocess.PIPE, text=True, preexec_fn=heard)
            while len(self.lines(journal)) < 3 and process.poll() is None:
                time.sleep(0.005)
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=300)
            before = self.lines(journal)
            if process.returncode != 0:
                break
        self.assertEqual(process.returncode, 130, said)
        self.assertIn(" are left; the same command goes on", said)
        done = self.run_it(*more)
        self.assertEqual(done.returncode, 0, done.stderr)
        after = self.lines(journal)
        names = [line["candidate"] for line in after]
        self.assertEqual(after[: len(before)], before)
        self.assertEqual(len(set(names)), len(names))
        self.assertEqual(len(names), len(cuinstr.mutants(HALVE)))

    def test_what_watch_raises_stops_it_and_comes_out(self) -> None:
        self.needs_nvrtc()
        told: list[str] = []

        def watch(name: str, text: str) -> None:
            told.append(name)
            if name == "judged":
                raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            evaluate.evaluate(self.folder / "halve.toml", mutants=50, compile_only="80", jobs=1, watch=watch)
        self.assertEqual(told, ["begun", "judged"])

    def test_bad_use_says_what_to_type(self) -> None:
        for arguments, status, said in [
            ((), 2, "name candidates, or ask for --mutants"),
            (("--mutants", "-1"), 2, "--mutants is a number"),
            (("x.cu", "--repeat", "0"), 2, "numbers are positive"),
            (("none.cu",), 1, "none.cu: No such file"),
            (("--mutants", "--operator", "many"), 1, "there is no operator 'many'"),
            (("--mutants", "--compile-only", "new"), 1, "an architecture is a number such as 90"),
        ]:
            done = self.run_it(*arguments)
            self.assertEqual((done.returncode, done.stdout), (status, ""), arguments)
            self.assertIn(said, done.stderr.replace('"', "'"))
        (self.folder / "halve.toml").write_text(SPEC.replace("inout", "both"))
        done = self.run_it("--mutants")
        self.assertEqual(done.returncode, 1)
        self.assertIn("unknown field `both`", done.stderr)

    def test_a_terminal_gets_a_bar_and_a_pipe_does_not(self) -> None:
        self.needs_nvrtc()
        for more, is_drawn in ((), True), (("--no-progress",), False):
            ours, theirs = pty.openpty()
            process = subprocess.Popen(
                self.command("--mutants", "3", "--compile-only", "80", *more), stdout=subprocess.PIPE, stderr=theirs, text=True
            )
            os.close(theirs)
            table, _ = process.communicate(timeout=300)
            drawn = b""
            try:
                while piece := os.read(ours, 4096):
                    drawn += piece
            except OSError:  # The other end is closed.
                pass
            os.close(ours)
            self.assertEqual(process.returncode, 0, drawn)
            self.assertIn("3 judged in", table)
            self.assertNotIn("\r", table)
            self.assertEqual(b"\r[####################] 3 of 3, " in drawn, is_drawn, drawn)

    def test_a_bar_is_drawn_where_somebody_sees_it(self) -> None:
        stream = io.StringIO()
        bar = evaluate._Bar(stream)
        bar.watch("begun", '{"limits": [], "left": 4, "known": 2}')
        for verdict in ("pass", "timeout", "pass", "pass"):
            bar.watch("judged", json.dumps({"verdict": verdict}))
        bar.end()
        last = stream.getvalue().rstrip("\n").rpartition("\r")[2]
        self.assertTrue(last.startswith("[####################] 4 of 4 (and 2 known), "), last)
        self.assertTrue(last.rstrip().endswith(": 3 pass, 1 timeout"), last)


class Reports(unittest.TestCase):
    def test_a_report_escapes_what_candidates_say_and_needs_no_other_file(self) -> None:
        place = {"file": "k.cu", "line": 7, "column": 1, "text": "for (int i = 0; i < n; ++i)"}
        lines = [
            {"candidate": "<script>", "verdict": "pass", "elapsed_ms": 1.0, "times": [{"median_ms": 2, "quartiles_ms": [1, 3], "speed_up": 4.0}]},
            {"candidate": "b", "verdict": "timeout", "elapsed_ms": 3.0, "by": "fuel", "place": place},
            {"candidate": "b", "verdict": "pass", "round": 2},
        ]
        score = {"noticed": 1, "of": 2}
        text = _report.html("k.toml", {"judged": 2, "wanted": 2, "score": score, "score_by_operator": {"loop-bound": score}}, lines)
        self.assertNotIn("<script>", text)
        for part in ("&lt;script&gt;", "line 7", "i &lt; n", "50 %", "loop-bound", "<circle", "All 2 candidates"):
            self.assertIn(part, text)
        for part in ("http:", "https:", "src=", "@import"):
            self.assertNotIn(part, text)


class Modules(unittest.TestCase):
    def test_a_journal_keeps_whole_lines_and_is_of_one_reference(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "j.jsonl")
            head = {"journal": 2, "reference": "7"}
            kept = _modules._Journal(path, head)
            kept.add({"candidate": "a", "hash": "1", "verdict": "pass"})
            with self.assertRaisesRegex(cuinstr.Failure, "another evaluator"):
                _modules._Journal(path, head)
            os.write(kept._file, b'{"candidate": "b", "ha')
            os.close(kept._file)
            again = _modules._Journal(path, head)
            self.assertEqual(list(again.known), [("a", "1")])
            os.close(again._file)
            self.assertTrue(pathlib.Path(path).read_bytes().endswith(b"}\n"))
            with self.assertRaisesRegex(cuinstr.Failure, "of another reference"):
                _modules._Journal(path, head | {"reference": "8"})

    def test_a_process_that_is_shut_in_sees_no_network_and_no_foreign_files(self) -> None:
        code = (
            "import os, socket, sys; from cuinstr import _namespace; folder, missing = _namespace.enter(sys.argv[1])\n"
            "if missing: print('not allowed'); sys.exit()\n"
            "here = socket.socket().connect_ex(('127.0.0.1', int(sys.argv[2])))\n"
            "print(here != 0, os.path.exists(sys.argv[3]), folder)"
        )
        with tempfile.TemporaryDirectory() as scratch, tempfile.NamedTemporaryFile() as foreign, socket.create_server(("127.0.0.1", 0)) as server:
            command = [sys.executable, "-c", code, scratch, str(server.getsockname()[1]), foreign.name]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        # Where the system has no such namespaces, candidates are not shut in, and the command says so.
        self.assertIn(said, ("True False /tmp", "not allowed"))

    def test_a_process_that_can_not_be_shut_in_goes_on(self) -> None:
        code = (
            "import subprocess; from cuinstr import _namespace; _namespace.shut_in('/no/such/folder')\n"
            "for _ in range(2): subprocess.run(['true'], check=True)"
        )
        subprocess.run([sys.executable, "-c", code], check=True)


class Package(unittest.TestCase):
    def test_it_is_typed_documented_and_of_the_release_it_says(self) -> None:
        self.assertEqual(cuinstr.__version__, importlib.metadata.version("cuinstr"))
        self.assertTrue((pathlib.Path(cuinstr.__file__).parent / "py.typed").is_file())
        for name in cuinstr.__all__:
            thing = getattr(cuinstr, name)
            self.assertTrue(name == "__version__" or inspect.getdoc(thing), f"{name} has no documentation")
        for name in dir(cuinstr.Outcome):
            if not name.startswith("_"):
                self.assertTrue(inspect.getdoc(getattr(cuinstr.Outcome, name)), f"Outcome.{name} has no documentation")

    def test_exceptions_are_failures(self) -> None:
        for name in ("Faulted", "NotBegun", "NotInstrumented", "NotLaunched", "Poisoned", "Refused", "Stopped", "Undrained", "WrongContext"):
            self.assertTrue(issubclass(getattr(cuinstr, name), cuinstr.Failure), name)
        error = pickle.loads(pickle.dumps(cuinstr.Refused("a.cu:1:1: error[CI003]: empty")))
        self.assertIsInstance(error, cuinstr.Refused)

    def test_importing_it_imports_no_framework_and_takes_no_time(self) -> None:
        code = (
            "import sys, time; before = set(sys.modules); since = time.perf_counter(); import cuinstr;"
            "took = time.perf_counter() - since; new = {name.partition('.')[0] for name in set(sys.modules) - before};"
            "print(took, *sorted(new & {'cupy', 'cuda', 'torch', 'pycuda', 'numpy'}))"
        )
        # The best of several, against ten times what it takes: a busy machine is slow, not the package.
        answers = [subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split() for _ in range(5)]
        self.assertEqual([frameworks for _, *frameworks in answers], [[]] * 5)
        self.assertLess(min(float(took) for took, *_ in answers), 0.5)

    def test_examples_are_short(self) -> None:
        examples = list((pathlib.Path(__file__).parents[1] / "examples").glob("*.py"))
        self.assertGreaterEqual(len(examples), 4)
        for example in examples:
            self.assertLess(len(example.read_text().splitlines()), 40, example.name)


if __name__ == "__main__":
    unittest.main()
