"""What the package promises on a GPU, with CuPy as the host; skipped where either is missing. Figures go to the file that FIGURES names."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from array import array
from collections.abc import Callable
from typing import Any

import cuinstr

try:
    import cupy

    cupy.cuda.runtime.getDeviceCount()
    MISSING = None
except Exception as error:  # Without a driver CuPy fails in many ways.
    MISSING = f"{type(error).__name__}: {error}"

SOURCE = r"""
extern "C" __global__ void halve(unsigned* numbers, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) while (numbers[i] != 1) numbers[i] /= 2;
}
extern "C" __global__ void one(unsigned* numbers) { numbers[threadIdx.x] = 1; }
"""

FAULT = r"""
import cupy, cuinstr
source = cuinstr.rewrite('extern "C" __global__ void f(int* p) { for (int i = 0; i < (1 << 20); ++i) p[i * 64] = i; }')
module = cupy.RawModule(code=source.text)
f = module.get_function("f")
try:
    with cuinstr.guard(module, timeout=5.0):
        f((1,), (1,), (16,))
except cuinstr.Faulted as faulted:
    print("faulted:", faulted)
try:
    with cuinstr.guard(module, timeout=5.0):
        pass
except cuinstr.Poisoned as poisoned:
    print("poisoned:", poisoned)
"""


@unittest.skipIf(MISSING is not None, f"needs CuPy and a GPU: {MISSING}")
class OnGpu(unittest.TestCase):
    module: Any
    halve: Any
    one: Any
    figures: dict[str, object] = {}

    @classmethod
    def setUpClass(cls) -> None:
        cls.module = cupy.RawModule(code=cuinstr.rewrite(SOURCE, path="halve.cu").text)
        cls.halve = cls.module.get_function("halve")
        cls.one = cls.module.get_function("one")

    @classmethod
    def tearDownClass(cls) -> None:
        if os.environ.get("FIGURES"):
            pathlib.Path(os.environ["FIGURES"]).write_text(json.dumps(cls.figures, indent=1))

    def setUp(self) -> None:
        self.endless = cupy.array([7, 1000, 0], dtype=cupy.uint32)

    def tearDown(self) -> None:
        # Whatever came before, the next launch in this context is right.
        numbers = cupy.array([7, 1000, 4], dtype=cupy.uint32)
        with cuinstr.guard(self.module, timeout=5.0):
            self.hang(numbers)
        self.assertEqual(numbers.tolist(), [1, 1, 1])

    def hang(self, numbers: Any = None) -> None:
        """Does not end, unless it is given numbers."""
        type(self).halve((1,), (32,), (self.endless if numbers is None else numbers, 3))

    def test_each_handle_leads_to_the_module(self) -> None:
        raw = self.module.module
        control = self.module.get_global("cuinstr_control_v1").ptr
        ways: dict[str, Any] = {
            "RawModule": self.module,
            "RawKernel": type(self).halve,
            "Module": raw,
            "Function": type(self).halve.kernel,
            "number": raw.ptr,
            "function": cuinstr.attach(type(self).halve.kernel.ptr, kind="function"),
            "control": cuinstr.attach(control, kind="control", kernel="halve"),
        }
        for name, module in ways.items():
            with self.subTest(way=name):
                with self.assertRaises(cuinstr.Stopped) as caught:
                    with cuinstr.guard(module, timeout=0.02):
                        self.hang()
                stopped = caught.exception
                self.assertEqual((stopped.outcome.why, stopped.line), ("deadline", 5))
                self.assertIn("while (numbers[i] != 1)", stopped.report)
                self.figures[f"latency_us_by_{name}"] = round((stopped.outcome.latency or 0) * 1e6, 1)

    def test_a_launch_that_nobody_guards_is_as_it_was(self) -> None:
        with cuinstr.guard(self.module, timeout=0.02, raises=False):
            self.hang()
        # Longer than the deadline before: it would be stopped at once, silently, if anything of that were left.
        numbers = cupy.array([1 << 30, 1000, 4], dtype=cupy.uint32)
        time.sleep(0.05)
        self.hang(numbers)
        self.assertEqual(numbers.tolist(), [1, 1, 1])

    def test_a_report_says_how_many_threads_there_were_if_it_is_told(self) -> None:
        with cuinstr.guard(self.module, timeout=0.02, grid=(1,), block=(32,), raises=False) as guard:
            self.hang()
        self.assertIn("1 of 32 threads stopped", str(guard.outcome))
        with cuinstr.guard(self.module, timeout=0.02, raises=False) as guard:
            self.hang()
        self.assertNotIn(" of ", str(guard.outcome).splitlines()[-1])

    def test_bad_use_is_an_exception_and_costs_nothing(self) -> None:
        plain = cupy.RawModule(code=SOURCE)
        plain.compile()
        with self.assertRaises(cuinstr.NotInstrumented):
            cuinstr.attach(plain)
        with self.assertRaises(cuinstr.NotLaunched):
            with cuinstr.guard(self.module, timeout=1.0):
                pass
        with self.assertRaises(cuinstr.NotLaunched):
            with cuinstr.guard(self.module, timeout=1.0):
                plain.get_function("one")((1,), (3,), (self.endless,))
        with self.assertRaisesRegex(cuinstr.Failure, "armed for another launch"):
            with cuinstr.guard(self.module, timeout=1.0):
                with cuinstr.guard(self.module, timeout=1.0):
                    self.fail("it is armed twice")
        with self.assertRaises(ValueError):
            with cuinstr.guard(self.module, timeout=0.0):
                self.fail("it is armed")
        with self.assertRaisesRegex(ValueError, "no address of device memory"):
            cuinstr.attach(4096, kind="control")

    def test_another_context_and_none_are_refused(self) -> None:
        attached = cuinstr.attach(self.module)
        driver = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        # It is current until it is destroyed.
        self.assertEqual(driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0), 0)
        try:
            with self.assertRaisesRegex(cuinstr.WrongContext, "the module is of another context"):
                with cuinstr.guard(attached, timeout=1.0):
                    self.fail("it is armed")
        finally:
            self.assertEqual(driver.cuCtxDestroy_v2(context), 0)
        raised: list[BaseException] = []

        def without() -> None:
            try:
                with cuinstr.guard(attached, timeout=1.0):
                    pass
            except cuinstr.Failure as error:
                raised.append(error)

        thread = threading.Thread(target=without)
        thread.start()
        thread.join()
        self.assertIsInstance(raised[0], cuinstr.WrongContext)

    def test_a_capture_is_refused_and_not_broken(self) -> None:
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            try:
                with self.assertRaisesRegex(cuinstr.Failure, "captured into a graph"):
                    with cuinstr.guard(self.module, stream, timeout=1.0):
                        self.fail("it is armed")
            finally:
                stream.end_capture()

    def test_an_exception_in_the_block_cancels_what_it_launched(self) -> None:
        since = time.monotonic()
        with self.assertRaises(ZeroDivisionError):
            with cuinstr.guard(self.module, timeout=None):
                self.hang()
                raise ZeroDivisionError
        self.assertLess(time.monotonic() - since, 50.0)

    def test_ctrl_c_cancels_the_kernel(self) -> None:
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        since = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            with cuinstr.guard(self.module, timeout=None):
                self.hang()
        self.figures["ctrl_c_s"] = round(time.monotonic() - since - 0.2, 4)
        timer.join()

    def test_other_threads_run_while_one_waits_and_may_cancel(self) -> None:
        guard = cuinstr.guard(self.module, timeout=None, raises=False)
        counted = 0

        def other() -> None:
            nonlocal counted
            until = time.monotonic() + 0.2
            while time.monotonic() < until:
                counted += 1
            guard.cancel()

        thread = threading.Thread(target=other)
        with guard:
            self.hang()
            thread.start()
        thread.join()
        assert guard.outcome is not None
        self.assertEqual(guard.outcome.why, "cancelled")
        self.assertGreater(counted, 1000)
        guard.cancel()

    def test_several_launches_on_a_stream_of_its_own_share_one_guard(self) -> None:
        stream = cupy.cuda.Stream(non_blocking=True)
        cupy.cuda.get_current_stream().synchronize()
        with stream:
            with cuinstr.guard(self.module, timeout=0.05, raises=False) as guard:
                for _ in range(3):
                    self.hang()
        assert guard.outcome is not None
        self.assertEqual(guard.outcome.why, "deadline")

    def test_threads_guard_modules_of_their_own(self) -> None:
        lines: list[object] = []

        def work(number: int) -> None:
            source = SOURCE.replace("halve", f"halve_{number}")
            module = cupy.RawModule(code=cuinstr.rewrite(source, path=f"halve_{number}.cu").text)
            kernel = module.get_function(f"halve_{number}")
            stream = cupy.cuda.Stream(non_blocking=True)
            for _ in range(5):
                with cuinstr.guard(module, stream, timeout=0.01, raises=False) as guard, stream:
                    kernel((1,), (32,), (self.endless, 3))
                assert guard.outcome is not None
                lines.append((guard.outcome.why, guard.outcome.file == f"halve_{number}.cu", guard.outcome.line))

        cupy.cuda.get_current_stream().synchronize()
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(lines, [("deadline", True, 5)] * 20)

    def test_a_fault_is_told_and_costs_its_process_only(self) -> None:
        child = subprocess.run([sys.executable, "-c", FAULT], capture_output=True, text=True, timeout=300)
        self.assertIn("faulted:", child.stdout, child.stderr)
        self.assertIn("poisoned:", child.stdout, child.stderr)

    def test_a_pool_runs_what_would_cost_this_process_its_gpu(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "halve.inst.cu"
            source.write_text(cuinstr.rewrite(SOURCE, path="halve.cu").text)
            subprocess.run(["nvcc", "-cubin", "-arch=native", source, "-o", source.with_suffix(".cubin")], check=True)
            image = source.with_suffix(".cubin").read_bytes()

        def task(numbers: list[int], kernel: str = "halve") -> cuinstr.Task:
            memory = cuinstr.InOut(array("I", numbers).tobytes())
            arguments: list[cuinstr.InOut | bytes]
            arguments = [memory, array("i", [3]).tobytes()] if kernel == "halve" else [array("Q", [16]).tobytes()]
            return cuinstr.Task(image, kernel, (1,), (32,), arguments, timeout=0.1)

        tasks = [task([7, 1000, 0]), task([7, 1000, 4]), task([], "one"), task([8, 9, 10])]
        with cuinstr.Pool(1, spares=1) as pool:
            stopped, right, faulted, after = list(pool.map(tasks))
            self.assertEqual(pool.losses, 1)
        assert isinstance(stopped, cuinstr.Result) and isinstance(right, cuinstr.Result)
        assert isinstance(faulted, cuinstr.Result) and isinstance(after, cuinstr.Result)
        self.assertEqual((stopped.outcome.why, stopped.outcome.line), ("deadline", 5))
        self.assertEqual(right.outputs, [array("I", [1, 1, 1]).tobytes()])
        self.assertEqual(faulted.outcome.kind, "faulted")
        self.assertEqual(after.outputs, right.outputs)

    def test_the_cost_of_a_guard(self) -> None:
        numbers = cupy.zeros(32, dtype=cupy.uint32)
        stream = cupy.cuda.get_current_stream()

        def bare() -> None:
            type(self).one((1,), (32,), (numbers,))
            stream.synchronize()

        def guarded() -> None:
            with cuinstr.guard(self.module, timeout=1.0):
                type(self).one((1,), (32,), (numbers,))

        def microseconds(call: Callable[[], None]) -> float:
            times = []
            for _ in range(2000):
                since = time.perf_counter()
                call()
                times.append(time.perf_counter() - since)
            return statistics.median(times) * 1e6

        rounds = [(microseconds(bare), microseconds(guarded)) for _ in range(5)]
        self.figures["bare_launch_and_wait_us"] = [round(bare, 2) for bare, _ in rounds]
        self.figures["guarded_launch_and_wait_us"] = [round(guarded, 2) for _, guarded in rounds]
        self.figures["guard_us"] = round(statistics.median(guarded - bare for bare, guarded in rounds), 2)

    def test_the_cost_of_an_import(self) -> None:
        code = "import time; since = time.perf_counter(); import cuinstr; print(time.perf_counter() - since)"
        times = [float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout) for _ in range(11)]
        self.figures["import_ms"] = round(1e3 * statistics.median(times), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
