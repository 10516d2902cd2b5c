"""The package over the stand-in driver (runtime/stand-in), which the loader finds as libcuda.so.1: guards, streams, pools, without a GPU."""

from __future__ import annotations

import asyncio
import ctypes
import faulthandler
import functools
import gc
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
from array import array
from collections.abc import Callable
from typing import Any

import cuinstr
from cuinstr import _arrays, _handles, checkpoint, snapshot

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 8 .b8 cuinstr_control_v1[1192];
.visible .global .align 4 .u32 cuinstr_flag_v1;
.visible .global .align 16 .b8 cuinstr_pause_v1[48];
.visible .entry blocks(.param .u64 slots, .param .u64 nanoseconds, .param .u64 counts) { ret; }
.visible .entry empty() { ret; }
.visible .entry spin() { ret; }
.visible .entry spin_on(.param .u64 memory) { ret; }
.visible .entry work(.param .u64 nanoseconds) { ret; }
.visible .entry takes(.param .u64 memory) { ret; }
\0"""

DRIVER = ctypes.CDLL("libcuda.so.1")
# A test that hangs says where.
faulthandler.dump_traceback_later(1800, exit=True)
# Seconds that nothing takes on a machine that is merely busy.
LONG = 300.0
# A stop takes as long as a busy machine lets it.
guarded = functools.partial(cuinstr.guard, grace=LONG)


def call(name: str, *arguments: Any) -> None:
    failed = getattr(DRIVER, name)(*arguments)
    assert failed == 0, f"{name}: {failed}"


def command(text: str) -> int:
    """A command for the stand-in; see runtime/stand-in/src/control.rs."""
    DRIVER.cuinstr_stand_in.restype = ctypes.c_int64
    return int(DRIVER.cuinstr_stand_in(text.encode()))


def wait_until(is_so: Callable[[], object], what: str) -> None:
    until = time.monotonic() + LONG
    while not is_so():
        assert time.monotonic() < until, what
        time.sleep(0.001)


def made(package: str, name: str, **members: object) -> Any:
    """An object of another package's type."""
    return type(name, (), {"__module__": package, **members})()


def children() -> set[int]:
    """The processes that this one has started, but for those that have ended."""
    found = set()
    for process in pathlib.Path("/proc").iterdir():
        try:
            state, parent, *_ = (process / "stat").read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            # No process, or one that has gone meanwhile.
            continue
        if int(parent) == os.getpid() and state != "Z":
            found.add(int(process.name))
    return found


class OnStandIn(unittest.TestCase):
    handle = ctypes.c_void_p()

    @classmethod
    def setUpClass(cls) -> None:
        context = ctypes.c_void_p()
        call("cuInit", 0)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        call("cuCtxSetCurrent", context)
        call("cuModuleLoadData", ctypes.byref(cls.handle), PTX)

    def setUp(self) -> None:
        assert self.handle.value is not None
        self.module = self.handle.value

    def stream(self) -> int:
        stream = ctypes.c_void_p()
        call("cuStreamCreate", ctypes.byref(stream), 1)
        assert stream.value is not None
        return stream.value

    def launch(self, name: str, stream: int = 0) -> None:
        function = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(function), self.handle, name.encode())
        call("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, ctypes.c_void_p(stream), None, None)


    def launch_blocks(self, stream: int, counts: int, milliseconds: int) -> None:
        """Launches 60 blocks that count in a word each at this address, four at a time, and take so long."""
        function = ctypes.c_void_p()
        words = [ctypes.c_uint64(word) for word in (4, milliseconds * 1_000_000, counts)]
        places = (ctypes.c_void_p * 3)(*(ctypes.addressof(word) for word in words))
        call("cuModuleGetFunction", ctypes.byref(function), self.handle, b"blocks")
        call("cuLaunchKernel", function, 10, 3, 2, 32, 1, 1, 0, ctypes.c_void_p(stream), places, None)


class Guarding(OnStandIn):
    def test_a_guard_stops_or_lets_end_and_takes_texts_for_times(self) -> None:
        with guarded(self.module, timeout=LONG) as guard:
            self.launch("empty")
        assert guard.outcome is not None
        self.assertTrue(guard.outcome.completed)
        with self.assertRaises(cuinstr.Stopped):
            with guarded(self.module, timeout="20ms"):
                self.launch("spin")
        with self.assertRaisesRegex(ValueError, "2 hours"):
            guarded(self.module, timeout="2 hours")

    def test_ptx_with_polls_is_stopped_as_rewritten_source_is(self) -> None:
        plain = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry spin()\n{\n$L:\n\tbra $L;\n}\n"
        handle = ctypes.c_void_p()
        call("cuModuleLoadData", ctypes.byref(handle), cuinstr.instrument(plain, path="spin.ptx").text.encode() + b"\0")
        with self.assertRaises(cuinstr.NotInstrumented):
            plain_handle = ctypes.c_void_p()
            call("cuModuleLoadData", ctypes.byref(plain_handle), plain.encode() + b"\0")
            cuinstr.attach(plain_handle.value, kind="module")
        function = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(function), handle, b"spin")
        with self.assertRaises(cuinstr.Stopped) as stopped:
            with guarded(handle.value, timeout="20ms"):
                call("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, None, None, None)
        self.assertIn("deadline", str(stopped.exception))

    def test_what_is_not_waited_for_is_polled_and_waited_for_later(self) -> None:
        stream = self.stream()
        with guarded(self.module, stream, timeout=None, raises=False, wait=False) as guard:
            with self.assertRaisesRegex(cuinstr.Failure, "once it is left"):
                guard.poll()
            self.launch("spin", stream)
        self.assertIsNone(guard.poll())
        self.assertIsNone(guard.wait("10ms"))
        guard.cancel()
        outcome = guard.wait()
        assert outcome is not None
        self.assertEqual((outcome.why, guard.poll(), guard.outcome), ("cancelled", outcome, outcome))
        with guarded(self.module, timeout=0.02, wait=False) as guard:
            self.launch("spin")
        with self.assertRaises(cuinstr.Stopped):
            wait_until(guard.poll, "it is not stopped")

    def test_a_launch_is_paused_and_its_parts_run_elsewhere(self) -> None:
        # Short blocks may all have run before this thread gets on.
        for milliseconds in (2, 20, 200):
            parts = self.paused_and_resumed(milliseconds)
            if parts > 1:
                break
        self.assertGreater(parts, 1)
        with self.assertRaisesRegex(ValueError, "known grid"):
            with guarded(self.module, self.stream(), timeout=LONG, pausable=True):
                pass

    def paused_and_resumed(self, milliseconds: int) -> int:
        """Pauses a launch of 60 blocks again and again, and gives how often it was paused."""
        stream, other = self.stream(), self.stream()
        counts = (ctypes.c_uint32 * 60)()

        def launch(on: int) -> None:
            self.launch_blocks(on, ctypes.addressof(counts), milliseconds)

        with guarded(self.module, stream, timeout=LONG, grid=(10, 3, 2), block=(32,), pausable=True, wait=False) as guard:
            launch(stream)
        parts = 0
        while (outcome := guard.pause(LONG)).paused:
            parts += 1
            self.assertEqual((outcome.done or 0) + (outcome.left or 0), 60)
            self.assertEqual(sum(counts), outcome.done)
            with guard.resume(other):
                launch(other)
            time.sleep(2 * milliseconds / 1000)
        self.assertTrue(outcome.completed, f"{outcome}, {parts} parts")
        self.assertEqual(list(counts), [1] * 60)
        return parts

    def test_a_launch_is_paused_once_and_what_runs_is_not_resumed(self) -> None:
        stream, other = self.stream(), self.stream()
        counts = (ctypes.c_uint32 * 60)()
        with guarded(self.module, stream, timeout=LONG, grid=(10, 3, 2), block=(32,), pausable=True, raises=False, wait=False) as guard:
            self.launch_blocks(stream, ctypes.addressof(counts), 200)
        with self.assertRaisesRegex(cuinstr.Failure, "only a launch that is paused"):
            with guard.resume(other):
                self.fail("it runs")
        first = guard.pause(LONG)
        self.assertTrue(first.paused)
        again = guard.pause(LONG)
        self.assertEqual((again.paused, again.done, again.left), (True, first.done, first.left))
        # Blocks that are left of one that is cancelled never run.
        guard.cancel()
        outcome = guard.wait()
        assert outcome is not None
        self.assertEqual((outcome.why, sum(counts)), ("cancelled", first.done))

    EXITS = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
from test_stand_in import LONG, OnStandIn, guarded

OnStandIn.setUpClass()
host = OnStandIn()
host.setUp()
stream, counts = host.stream(), (ctypes.c_uint32 * 60)()
with guarded(host.module, stream, timeout=LONG, grid=(10, 3, 2), block=(32,), pausable=True, wait=False) as guard:
    host.launch_blocks(stream, ctypes.addressof(counts), 200)
print(guard.pause(LONG).paused)
"""

    def test_a_program_may_exit_while_its_launch_is_paused(self) -> None:
        here = pathlib.Path(__file__).parent
        done = subprocess.run([sys.executable, "-c", self.EXITS, here], capture_output=True, text=True, timeout=LONG)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "True\n", ""))

    def test_an_event_loop_goes_on_while_a_guard_is_awaited(self) -> None:
        async def main() -> None:
            ticks: list[str] = []

            async def tick() -> None:
                while True:
                    ticks.append("tick")
                    await asyncio.sleep(0.005)

            ticking = asyncio.create_task(tick())
            with guarded(self.module, timeout=0.1, raises=False, wait=False) as guard:
                self.launch("spin")
            self.assertEqual((await guard).why, "deadline")
            with self.assertRaises(cuinstr.Stopped):
                async with guarded(self.module, timeout=0.05):
                    self.launch("spin")

            async def endless() -> None:
                async with guarded(self.module, timeout=None):
                    self.launch("spin")

            # A task that is cancelled ends its kernel. Before, the loop goes on as long as somebody waits for the kernel.
            task = asyncio.create_task(endless())
            wanted, until = len(ticks) + 5, time.monotonic() + LONG
            while len(ticks) < wanted or command("running") == 0:
                self.assertFalse(task.done())
                self.assertLess(time.monotonic(), until)
                await asyncio.sleep(0.005)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            ticking.cancel()

        asyncio.run(main())
        self.assertEqual(command("running"), 0)

    def test_other_threads_run_while_the_driver_blocks(self) -> None:
        command("block cuStreamBatchMemOp_v2 1")
        released = threading.Event()

        def release() -> None:
            wait_until(lambda: command("blocked"), "nothing is blocked")
            command("release")
            released.set()

        thread = threading.Thread(target=release)
        thread.start()
        with guarded(self.module, timeout=LONG):
            self.launch("empty")
        thread.join()
        self.assertTrue(released.is_set())

    def test_nothing_launched_names_the_stream(self) -> None:
        other = self.stream()
        with self.assertRaisesRegex(cuinstr.NotLaunched, rf"looked at the stream that the guard was given \(handle {other:#x}\)"):
            with guarded(self.module, other, timeout=1.0):
                pass
        with self.assertRaisesRegex(cuinstr.NotLaunched, "looked at the legacy default stream: give it the stream that you launch on"):
            with guarded(self.module, timeout=1.0):
                pass

    def test_what_was_attached_is_guarded_on_its_packages_stream(self) -> None:
        stream = self.stream()
        of_cupy = made("cupy.cuda.function", "Module", ptr=self.module)
        extension = types.ModuleType("extension")
        attached = cuinstr.attach(of_cupy)
        cupy = types.SimpleNamespace(cuda=types.SimpleNamespace(get_current_stream=lambda: types.SimpleNamespace(ptr=stream)))
        torch = types.SimpleNamespace(
            cuda=types.SimpleNamespace(is_initialized=lambda: True, current_stream=lambda: types.SimpleNamespace(cuda_stream=stream))
        )
        for name, package, modules in [("cupy", cupy, [of_cupy, attached, self.module]), ("torch", torch, [cuinstr.attach(self.module, kind="module")])]:
            sys.modules[name] = package  # type: ignore[assignment]
            try:
                for module in modules:
                    with guarded(module, timeout=LONG) as guard:
                        self.launch("empty", stream)
                    assert guard.outcome is not None
                    self.assertTrue(guard.outcome.completed)
                    # A launch in another stream may end as well; where nothing is launched the guard says where it looked.
                    whose = {"cupy": "CuPy", "torch": "PyTorch"}[name]
                    with self.assertRaisesRegex(cuinstr.NotLaunched, rf"looked at {whose}'s current stream \(handle {stream:#x}\)"):
                        with guarded(module, timeout=1.0):
                            pass
                self.assertEqual(_handles.of_stream(None, extension)[0], stream if name == "torch" else 0)
                torch.cuda.is_initialized = lambda: False
                self.assertEqual(_handles.of_stream(None, extension)[0], 0)
                torch.cuda.is_initialized = lambda: True
            finally:
                del sys.modules[name]

    def test_two_packages_with_streams_of_their_own_are_told_apart_by_the_caller(self) -> None:
        one, two = self.stream(), self.stream()
        sys.modules["cupy"] = types.SimpleNamespace(cuda=types.SimpleNamespace(get_current_stream=lambda: types.SimpleNamespace(ptr=one)))  # type: ignore[assignment]
        current = types.SimpleNamespace(is_initialized=lambda: True, current_stream=lambda: types.SimpleNamespace(cuda_stream=two))
        sys.modules["torch"] = types.SimpleNamespace(cuda=current)  # type: ignore[assignment]
        try:
            with self.assertRaisesRegex(ValueError, "give the guard the stream"):
                with guarded(self.module, timeout=1.0):
                    self.fail("it is armed")
        finally:
            del sys.modules["cupy"], sys.modules["torch"]


class Extensions(unittest.TestCase):
    SOURCE = """
    static int cuinstr_control_v1[298];
    extern "C" int cudaGetSymbolAddress(void** to, const void* of) { return *to = (char*)of + 4096, of == cuinstr_control_v1 ? 0 : 13; }
    extern "C" void* PyInit_extension() { return cuinstr_control_v1; }
    """

    def load(self, folder: str, sources: list[str]) -> Any:
        paths = []
        for number, source in enumerate(sources):
            path = pathlib.Path(folder) / f"{number}.cpp"
            path.write_text(source)
            paths.append(str(path))
        library = pathlib.Path(folder) / "extension.so"
        subprocess.run(["g++", "-shared", "-fPIC", "-O1", *paths, "-o", str(library)], check=True)
        module = types.ModuleType("package.extension")
        module.__file__ = str(library)
        loaded = ctypes.CDLL(str(library))
        loaded.PyInit_extension.restype = ctypes.c_void_p
        return module, loaded

    def test_its_control_block_is_found_by_the_runtime_that_it_is_linked_with(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            module, loaded = self.load(folder, [self.SOURCE])
            self.assertEqual(_handles.of_module(module), ("control", loaded.PyInit_extension() + 4096))

    def test_what_can_not_be_found_is_said(self) -> None:
        other = "static int cuinstr_control_v1[298]; void* other() { return cuinstr_control_v1; }"
        for sources, error, says in [
            (['extern "C" void PyInit_extension() {}'], cuinstr.NotInstrumented, "it has no symbol cuinstr_control_v1"),
            ([self.SOURCE, other], cuinstr.Failure, "has 2 units with kernels"),
            ([self.SOURCE.replace("cudaGetSymbolAddress", "none")], cuinstr.Failure, "holds a CUDA runtime of its own"),
        ]:
            with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(error, says):
                _handles.of_module(self.load(folder, sources)[0])


class Pooling(OnStandIn):
    def task(self, kernel: str = "empty", arguments: tuple[Any, ...] = (), timeout: Any = LONG) -> cuinstr.Task:
        return cuinstr.Task(PTX, kernel, (1,), (32,), arguments, timeout=timeout, grace=LONG)

    def test_futures_and_any_number_of_tasks(self) -> None:
        taken = 0

        def endless() -> Any:
            nonlocal taken
            for _ in itertools.count():
                taken += 1
                yield self.task()

        with cuinstr.Pool(2, spares=0) as pool:
            futures = [pool.submit(self.task()), pool.submit(self.task("spin", timeout="20ms"))]
            self.assertEqual([future.result().outcome.kind for future in futures], ["completed", "stopped"])
            results = list(itertools.islice(pool.map(endless()), 20))
            self.assertTrue(all(isinstance(result, cuinstr.Result) for result in results))
            self.assertLess(taken, 30)
            memory = cuinstr.InOut(array("I", [7, 8]))
            (contents,) = pool.run(self.task("takes", (memory,))).outputs
            self.assertEqual(contents, array("I", [7, 8]).tobytes())
        with self.assertRaisesRegex(cuinstr.Failure, "the pool is closed"):
            pool.submit(self.task())

    def test_closing_ends_what_runs_and_what_waits(self) -> None:
        before = children()
        pool = cuinstr.Pool(1, spares=1)
        self.assertGreater(len(children() - before), 0)
        runs = pool.submit(self.task("spin", timeout=None))
        waits = pool.submit(self.task())
        wait_until(lambda: pool._all[0].is_busy, "the task does not begin")
        pool.close()
        self.assertEqual(runs.result(LONG).outcome.why, "cancelled")
        self.assertTrue(waits.cancelled())
        del pool, runs, waits
        wait_until(lambda: not children() - before, "a process is left")

    def test_a_cancel_while_memory_is_on_its_way_holds(self) -> None:
        with cuinstr.Pool(1, spares=0) as pool:
            # It takes a while to get there.
            memory = cuinstr.In(bytes(64 << 20))
            future = pool.submit(self.task("spin_on", (memory,), timeout=None))
            wait_until(lambda: pool._all[0].is_busy, "the task does not begin")
            self.assertFalse(future.done())
            pool._all[0].cancel()
            self.assertEqual(future.result(LONG).outcome.why, "cancelled")

    def test_a_forked_child_leaves_its_parents_workers_alone(self) -> None:
        with cuinstr.Pool(1, spares=0) as pool:
            workers = pool._all[:]
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    pool.run(self.task())
                except cuinstr.Failure as failure:
                    status = 0 if "forked" in str(failure) else 2
                workers.clear()
                pool._all.clear()
                pool._idle = None  # type: ignore[assignment]
                gc.collect()
                os._exit(status)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            self.assertTrue(pool.run(self.task()).outcome.completed)
            self.assertEqual(pool.losses, 0)

    def test_workers_import_nothing_from_the_folder_that_they_are_started_in(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("cuinstr.py", "queue.py", "pathlib.py"):
                (pathlib.Path(folder) / name).write_text(f"raise SystemExit('{name} of the current folder')\n")
            program = "import sys; sys.path[:] = [path for path in sys.path if path]\nimport cuinstr\nwith cuinstr.Pool(1, spares=0) as pool: print(pool.losses)\n"
            environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(cuinstr.__file__).parents[1])}
            done = subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, timeout=LONG)
            self.assertEqual((done.stdout, done.stderr), ("0\n", ""))


class Checkpoints(unittest.TestCase):
    """This very process, suspended and resumed by a helper, which asks the stand-in."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.facts = pathlib.Path(folder.name) / str(os.getpid())
        before = os.environ.get("CUINSTR_STAND_IN")
        os.environ["CUINSTR_STAND_IN"] = f"processes {folder.name}"
        self.addCleanup(lambda: os.environ.pop("CUINSTR_STAND_IN") if before is None else os.environ.update(CUINSTR_STAND_IN=before))
        self.know()
        self.process = checkpoint.Process(os.getpid())

    def know(self, **facts: int) -> None:
        self.facts.write_text("".join(f"{word} {number}\n" for word, number in facts.items()))

    def test_the_four_steps(self) -> None:
        process = self.process
        self.assertEqual((process.pid, process.state, process.restore_thread_id), (os.getpid(), "running", os.getpid()))
        process.lock(timeout_ms=100)
        self.assertEqual(process.state, "locked")
        process.checkpoint()
        self.assertEqual(process.state, "checkpointed")
        process.restore(gpu_mapping={})
        process.unlock()
        self.assertEqual(process.state, "running")
        self.know(state=9)
        self.assertEqual(process.state, "state-9")

    def test_a_context_manager_suspends_and_resumes(self) -> None:
        with self.process as process:
            self.assertEqual(process.state, "checkpointed")
        self.assertEqual(self.process.state, "running")
        with self.assertRaises(KeyError), self.process:
            raise KeyError
        self.assertEqual(self.process.state, "running")

    def test_errors_have_types(self) -> None:
        for pid, kind in [(0, ValueError), (2**70, ValueError), (2**31 - 1, ProcessLookupError), ("7", TypeError), (True, TypeError)]:
            with self.assertRaises(kind):
                checkpoint.Process(pid)  # type: ignore[arg-type]
        process = self.process
        with self.assertRaisesRegex(checkpoint.WrongState, "is running"):
            process.unlock()
        for timeout in (-1, 2**32):
            with self.assertRaises(ValueError):
                process.lock(timeout)
        self.know(busy=1)
        with self.assertRaisesRegex(TimeoutError, "is busy.* is running now"):
            process.suspend(timeout_ms=20)
        self.know(managed=1)
        with self.assertRaisesRegex(checkpoint.NotCheckpointable, "cudaMallocManaged"):
            process.suspend()
        self.know(state=3)
        with self.assertRaises(checkpoint.Lost):
            process.resume()
        self.facts.unlink()
        with self.assertRaises(checkpoint.NotCuda):
            process.state  # noqa: B018

    def test_a_mapping_takes_uuids_in_any_form(self) -> None:
        wrong = "GPU-00000000-0000-0000-0000-00000000000"
        for mapping in ({wrong: wrong}, {b"GPU": b"GPU"}, {"MIG-1": "MIG-1"}):
            self.process.suspend()
            with self.assertRaisesRegex(ValueError, "is no UUID"):
                self.process.resume(mapping)
            self.process.resume()
        zero = "GPU-00000000-0000-0000-0000-000000000000"
        for name in (zero, zero.encode(), bytes(16)):
            self.process.suspend()
            self.process.resume({name: name})
        self.assertEqual(self.process.state, "running")


class Snapshots(OnStandIn):
    RESTORE = "import sys, cuinstr.snapshot as s; ledger = s.Ledger.restore(sys.argv[1]); print(ledger.names(), ledger.memory('some'))"

    def test_memory_comes_back_in_another_process(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "snapshot"
            ledger = snapshot.Ledger()
            memory = ledger.allocate("some", 1000)
            call("cuMemcpyHtoD_v2", ctypes.c_uint64(memory.address), b"kept", ctypes.c_size_t(4))
            self.assertEqual(_arrays.contents(memory)[:5], b"kept\0")
            with self.assertRaises(KeyError):
                ledger.allocate("some", 1)
            with self.assertRaises(OSError):
                ledger.save(pathlib.Path(folder) / "no" / "folder")
            self.assertEqual(ledger.save(path), path.stat().st_size)
            done = subprocess.run([sys.executable, "-c", self.RESTORE, path], capture_output=True, text=True, timeout=LONG)
            self.assertEqual((done.stdout, done.stderr), (f"['some'] {memory!r}\n", ""))
            # Here its address is taken.
            with self.assertRaisesRegex(cuinstr.Failure, "this process has something else"):
                snapshot.Ledger.restore(path)
            path.write_bytes(path.read_bytes()[:-1])
            with self.assertRaisesRegex(cuinstr.Failure, "its end is missing"):
                snapshot.Ledger.restore(path)


    GOES_ON = """
import ctypes, sys
sys.path.insert(0, sys.argv[2])
from cuinstr import snapshot
from test_stand_in import LONG, OnStandIn, call

ledger = snapshot.Ledger.restore(sys.argv[1])
OnStandIn.setUpClass()
host = OnStandIn()
host.setUp()
paused, counts = ledger.take_paused("long"), ledger.memory("counts")
stream, other = host.stream(), host.stream()
with paused.guard(host.module, stream, wait=False) as guard:
    host.launch_blocks(stream, counts.address, 1)
while guard.pause(LONG).paused:
    with guard.resume(other):
        host.launch_blocks(other, counts.address, 1)
found = (ctypes.c_uint32 * 60)()
call("cuMemcpyDtoH_v2", found, ctypes.c_uint64(counts.address), ctypes.c_size_t(240))
print(paused, list(found) == [1] * 60)
"""

    def test_a_paused_launch_goes_on_in_another_process(self) -> None:
        ledger, stream = snapshot.Ledger(), self.stream()
        counts = ledger.allocate("counts", 240)
        with guarded(self.module, stream, timeout=LONG, grid=(10, 3, 2), block=(32,), pausable=True, wait=False) as guard:
            self.launch_blocks(stream, counts.address, 200)
            with self.assertRaisesRegex(cuinstr.Failure, "only a launch that is paused"):
                ledger.put_paused("long", guard)
        outcome = guard.pause(LONG)
        self.assertTrue(outcome.paused)
        ledger.put_paused("long", guard)
        with self.assertRaisesRegex(cuinstr.Failure, "only a launch that is paused"):
            ledger.put_paused("other", guard)
        with self.assertRaises(KeyError):
            ledger.take_paused("other")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "snapshot"
            ledger.save(path)
            here = pathlib.Path(__file__).parent
            done = subprocess.run([sys.executable, "-c", self.GOES_ON, path, here], capture_output=True, text=True, timeout=LONG)
        self.assertEqual((done.stdout, done.stderr), (f"Paused({outcome.left} blocks of (10, 3, 2)) True\n", ""))


class Arrays(OnStandIn):
    def test_arrays_of_any_kind_are_bytes(self) -> None:
        self.assertEqual(_arrays.contents(array("H", [1, 2])), array("H", [1, 2]).tobytes())
        self.assertEqual(_arrays.contents(memoryview(b"abcdef")[::2]), b"ace")
        address = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(6))
        call("cuMemcpyHtoD_v2", address, b"device", ctypes.c_size_t(6))
        interface = {"shape": (2, 3), "typestr": "|u1", "data": (address.value, False), "version": 3, "stream": 1}
        self.assertEqual(_arrays.contents(made("numba", "Array", __cuda_array_interface__=interface)), b"device")
        strided = {**interface, "strides": (1, 2)}
        with self.assertRaisesRegex(ValueError, "make a contiguous copy"):
            _arrays.contents(made("numba", "Array", __cuda_array_interface__=strided))
        with self.assertRaisesRegex(TypeError, "a object has no bytes"):
            _arrays.contents(object())

    def test_dlpack_on_host_and_device(self) -> None:
        address = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(8))
        call("cuMemcpyHtoD_v2", address, b"xxdlpack", ctypes.c_size_t(8))
        host = ctypes.create_string_buffer(b"xxdlpack")
        capsules = ctypes.pythonapi.PyCapsule_New
        capsules.restype, capsules.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        for device, place in [(1, ctypes.addressof(host)), (2, address.value)]:
            shape, strides = (ctypes.c_int64 * 2)(3, 1), (ctypes.c_int64 * 2)(1, 7)
            tensor = _arrays._Tensor(place, device, 0, 2, 1, 16, 1, shape, strides, 2)
            asked: list[object] = []

            def capsule(_: object, stream: int | None = None, tensor: Any = tensor, asked: list[object] = asked) -> Any:
                asked.append(stream)
                return capsules(ctypes.addressof(tensor), b"dltensor", None)

            packed = made("torch", "Tensor", __dlpack__=capsule, __dlpack_device__=lambda _, device=device: (device, 0))
            self.assertEqual((_arrays.contents(packed), asked), (b"dlpack", [1 if device == 2 else None]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
