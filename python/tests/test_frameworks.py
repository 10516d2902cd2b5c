"""Triton, Numba and CuPy with kernels that can be stopped, over the stand-in driver. What is not installed is skipped; none of it needs a GPU."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import tempfile
import unittest
import warnings
from typing import Any
from unittest import mock

# Triton links its launcher with the driver's library, and looks for the library there.
os.environ.setdefault("TRITON_LIBCUDA_PATH", os.environ.get("LD_LIBRARY_PATH", "").partition(":")[0])
FOLDER = tempfile.TemporaryDirectory()
os.environ["TRITON_CACHE_DIR"] = os.path.join(FOLDER.name, "triton")

import cuinstr  # noqa: E402
from cuinstr import _handles, _late  # noqa: E402

KERNELS = '''
import triton
import triton.language as tl

@triton.jit
def spin(memory, SIZE: tl.constexpr):
    while tl.load(memory) == 0:
        tl.store(memory + 1, tl.load(memory + 1) + 1)

@triton.jit
def ends(memory, SIZE: tl.constexpr):
    tl.store(memory + tl.arange(0, SIZE), 1)
'''


def has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


class Pointer:
    """What Triton takes for an array: memory of the stand-in's device."""

    dtype = "int32"

    def __init__(self) -> None:
        place = ctypes.c_uint64()
        assert ctypes.CDLL("libcuda.so.1").cuMemAlloc_v2(ctypes.byref(place), 4096) == 0
        self._place = place.value

    def data_ptr(self) -> int:
        return self._place


@unittest.skipUnless(has("triton"), "no Triton")
class WithTriton(unittest.TestCase):
    """Triton's own compiler, launcher and hooks; only what it asks PyTorch for is said here."""

    kernels: Any

    @classmethod
    def setUpClass(cls) -> None:
        from triton.backends.compiler import GPUTarget
        from triton.backends.nvidia import driver as nvidia
        from triton.runtime import driver

        library = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        assert library.cuInit(0) == 0 and library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert library.cuCtxSetCurrent(context) == 0

        class Utils:
            """What Triton's own module asks the driver."""

            def get_device_properties(self, device: int) -> dict[str, int]:
                return {"max_shared_mem": 1 << 17}

            def load_binary(self, name: str, code: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
                module, function = ctypes.c_void_p(), ctypes.c_void_p()
                assert library.cuModuleLoadData(ctypes.byref(module), code) == 0
                assert library.cuModuleGetFunction(ctypes.byref(function), module, name.encode()) == 0
                return module.value or 0, function.value or 0, 32, 0, 1024

        class Driver:
            utils = Utils()
            launcher_cls = nvidia.CudaLauncher

            def get_current_device(self) -> int:
                return 0

            def get_current_stream(self, device: int) -> int:
                return 0

            def get_current_target(self) -> Any:
                return GPUTarget("cuda", 90, 32)

        driver.set_active(Driver())
        path = os.path.join(FOLDER.name, "kernels.py")
        with open(path, "w") as file:
            file.write(KERNELS)
        spec = importlib.util.spec_from_file_location("kernels", path)
        assert spec is not None and spec.loader is not None
        cls.kernels = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(cls.kernels)

    def test_1_a_guard_of_what_was_compiled_before_says_that_it_has_no_polls(self) -> None:
        with self.assertRaises(cuinstr.NotInstrumented), cuinstr.guard(self.kernels.ends, timeout=1):
            self.kernels.ends[(1,)](Pointer(), 32)

    def test_2_a_function_is_guarded_and_stopped(self) -> None:
        cuinstr.triton.install()
        cuinstr.triton.install()
        with cuinstr.guard(self.kernels.spin, timeout=0.2, raises=False, grace=300.0) as guard:
            self.kernels.spin[(1,)](Pointer(), 32)
        assert guard.outcome is not None and guard.outcome.stopped
        with cuinstr.guard(self.kernels.ends, timeout=100.0) as guard:
            # Others may be launched in between; nobody guards these.
            self.kernels.ends[(1,)](Pointer(), 64)
        assert guard.outcome is not None and guard.outcome.completed
        self.assertEqual(_late.waiting(), [])

    def test_3_a_compiled_kernel_is_guarded(self) -> None:
        cuinstr.triton.install()
        compiled = self.kernels.spin.warmup(Pointer(), 128, grid=(1,))
        image = _handles.image_of(compiled) or b""
        # Its sites name the Python file.
        self.assertTrue(b"cuinstr_control_v1" in image and b"kernels.py" in image)
        with self.assertRaises(cuinstr.Stopped), cuinstr.guard(compiled, timeout=0.2, grace=300.0):
            compiled[(1, 1, 1)](Pointer(), 128)

    def test_4_a_guard_is_for_one_kernel_that_is_launched(self) -> None:
        cuinstr.triton.install()
        with self.assertRaisesRegex(cuinstr.NotLaunched, r"cuinstr.triton.install\(\)"), cuinstr.guard(self.kernels.ends, timeout=1.0):
            pass
        with self.assertRaisesRegex(cuinstr.Failure, "compiled to several"), cuinstr.guard(self.kernels.ends, timeout=1.0):
            self.kernels.ends[(1,)](Pointer(), 256)
            self.kernels.ends[(1,)](Pointer(), 512)
        with self.assertRaises(ValueError):
            cuinstr.guard(self.kernels.ends, 0, timeout=1.0).__enter__()
        self.assertEqual(_late.waiting(), [])

    def test_5_the_cache_keeps_both_kinds_apart(self) -> None:
        cuinstr.triton.install()
        from triton.backends.compiler import GPUTarget
        from triton.backends.nvidia.compiler import CUDABackend

        number = CUDABackend(GPUTarget("cuda", 90, 32)).hash()
        self.assertTrue(number.endswith(_late.digest()), number)


@unittest.skipUnless(has("cupy"), "no CuPy")
class WithCupy(unittest.TestCase):
    """CuPy's own compiler, with an NVRTC that is none: a real one needs a device to know its architecture."""

    def test_what_nvrtc_makes_gets_polls_and_a_key_of_its_own(self) -> None:
        from cupy.cuda import compiler

        ptx = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() {\n$L: bra $L;\n}\n\0"
        given = []

        class Program:
            def __init__(self, *words: Any, **named: Any) -> None:
                given.append(named["method"])

            def compile(self, options: Any, log: Any) -> tuple[bytes, None]:
                given.append(options[-2] if options[-1].startswith("--device") else options[-1])
                return ptx, None

        before = compiler._get_cupy_cache_key()
        compiler._NVRTCProgram, compiler._get_nvrtc_version = Program, lambda: (12, 0)
        cuinstr.cupy.install()
        cuinstr.cupy.install()
        made, _ = compiler.compile_using_nvrtc("", (), "90", cache_in_memory=True)
        self.assertIn(b"cuinstr_control_v1", made)
        self.assertEqual(given, ["ptx", "-arch=compute_90"])
        self.assertNotEqual(compiler._get_cupy_cache_key(), before)


@unittest.skipUnless(has("numba"), "no Numba")
class WithNumba(unittest.TestCase):
    """Numba's own code libraries, with a linker that keeps what it is given."""

    def test_a_kernel_is_linked_of_ptx_with_polls(self) -> None:
        from numba.cuda import codegen, dispatcher

        cuinstr.numba.install()
        cuinstr.numba.install()
        ptx = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() {\n$L: bra $L;\n}\n"
        given: list[str] = []

        class Linker:
            info_log = ""
            lto = False

            def __init__(self, *words: Any, **named: Any) -> None:
                pass

            def add_ptx(self, text: bytes, name: str = "") -> None:
                given.append(text.decode())

            def complete(self) -> bytes:
                return b"made"

        for is_optimised in (False, True):
            library = codegen.CUDACodeLibrary.__new__(codegen.CUDACodeLibrary)
            library._cubin_cache, library._linkerinfo_cache, library._linking_files = {}, {}, set()
            library._lto, library._max_registers, library._entry_name, library._name = is_optimised, None, "k", "k"
            library.needs_cudadevrt = False
            library.get_asm_strs = library.get_lto_ptx = lambda cc=None: [ptx]
            if is_optimised:
                library.get_lto_ptx = lambda cc=None: ptx
            codegen.driver._Linker = Linker
            with warnings.catch_warnings(), mock.patch.object(codegen.driver, "ObjectCode", None, create=True):
                warnings.simplefilter("error")
                self.assertEqual(library.get_cubin((9, 0)), b"made")
        self.assertEqual(["cuinstr_control_v1" in text for text in given], [True, True])

        # What was optimised as a whole, the driver compiles as a whole, where it knows that version of PTX.
        class Driver:
            def __init__(self, version: int) -> None:
                self.version = version

            def cuDriverGetVersion(self, to: Any) -> int:
                to._obj.value = self.version
                return 0

        class ObjectCode:
            @staticmethod
            def from_ptx(text: bytes, name: str = "") -> bytes:
                return b"PTX: " + text

        for version, written, is_taken in [(13010, "9.1", True), (13000, "9.1", False), (12080, "8.7", True), (12080, "8.8", False), (12080, "7.0", True)]:
            given.clear()
            library._cubin_cache = {}
            library.get_lto_ptx = lambda cc=None, written=written: ptx.replace("7.0", written)
            known = mock.patch.multiple(codegen.driver, create=True, ObjectCode=ObjectCode, _Linker=Linker)
            with known, mock.patch("ctypes.CDLL", lambda name, version=version: Driver(version)):
                made = library.get_cubin((9, 0))
            self.assertEqual((made.startswith(b"PTX: "), len(given)), (is_taken, int(not is_taken)), f"{version} {written}")
        self.assertTrue(hasattr(dispatcher._Kernel.launch, "__wrapped__"))

    def test_a_kernel_belongs_to_what_compiled_it_or_took_it_from_the_cache(self) -> None:
        belongs = cuinstr.numba._belongs
        fresh, cached = mock.Mock(py_func=has), mock.Mock(spec=[])
        owner, other = mock.Mock(py_func=has, overloads={(): cached}), mock.Mock(py_func=len, overloads={})
        self.assertEqual([belongs(owner, kernel) for kernel in (fresh, cached, owner)], [True, True, True])
        self.assertEqual([belongs(other, kernel) for kernel in (fresh, cached)], [False, False])


if __name__ == "__main__":
    unittest.main()
