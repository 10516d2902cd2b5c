"""The CUDA driver through ctypes: as much of it as scripts/ptx-forms needs."""

from __future__ import annotations

import ctypes
import pathlib
import struct
import time
from typing import Any

NOT_READY = 600
TYPES = {"u8": (0, 1), "i32": (1, 4), "u32": (2, 4), "f32": (3, 4), "i64": (4, 8), "u64": (5, 8), "f64": (6, 8), "bf16": (7, 2)}
FILLS = ["zero", "const", "iota", "mod", "csr", "rand", "lower"]
GRID, BLOCK = [1024, 1, 1], [256, 1, 1]


class Fault(Exception):
    """A call of the driver that failed."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call}: error {code}")
        self.code = code


def bits(type_: str, text: str) -> int:
    if type_ == "f32":
        return int(struct.unpack("<I", struct.pack("<f", float(text)))[0])
    if type_ == "f64":
        return int(struct.unpack("<Q", struct.pack("<d", float(text)))[0])
    if type_ == "bf16":
        return int(struct.unpack("<I", struct.pack("<f", float(text)))[0]) >> 16
    return int(text) & (1 << 8 * TYPES[type_][1]) - 1


class Device:
    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        self.device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self.call("cuCtxSetCurrent", context)
        self.stream = self.new_stream(0)
        self.other = self.new_stream(-5)

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            raise Fault(name, code)

    def new_stream(self, priority: int) -> ctypes.c_void_p:
        stream = ctypes.c_void_p()
        self.call("cuStreamCreateWithPriority", ctypes.byref(stream), 1, priority)
        return stream

    def name(self) -> str:
        text = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", text, 100, self.device)
        return text.value.decode()

    def multiprocessors(self) -> int:
        number = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(number), 16, self.device)
        return number.value

    def load(self, path: pathlib.Path) -> ctypes.c_void_p:
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), path.read_bytes())
        return module

    def function(self, module: ctypes.c_void_p, name: str) -> ctypes.c_void_p:
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def symbol(self, module: ctypes.c_void_p, name: str) -> int:
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        self.call("cuModuleGetGlobal_v2", ctypes.byref(address), ctypes.byref(size), module, name.encode())
        return address.value

    def occupancy(self, function: ctypes.c_void_p, threads: int, shared: int) -> int:
        number = ctypes.c_int()
        self.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(number), function, threads, ctypes.c_size_t(shared))
        return number.value

    def memory(self, size: int) -> int:
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        return address.value

    def copy(self, to: int, source: int, size: int) -> None:
        self.call("cuMemcpyDtoDAsync_v2", ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(size), self.stream)

    def write(self, address: int, data: bytes, stream: ctypes.c_void_p | None = None) -> None:
        self.call("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(address), data, ctypes.c_size_t(len(data)), stream or self.stream)

    def read(self, address: int, size: int) -> bytes:
        data = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(address), ctypes.c_size_t(size))
        return data.raw

    def launch(self, function: ctypes.c_void_p, grid: list[int], block: list[int], shared: int, words: list[int]) -> None:
        values = [ctypes.c_uint64(word) for word in words]
        pointers = (ctypes.c_void_p * max(len(values), 1))(*[ctypes.addressof(value) for value in values])
        self.call("cuLaunchKernel", function, *grid, *block, shared, self.stream, pointers, None)

    def wait(self, limit: float) -> bool:
        """Whether the stream drained within so many seconds; raises what the context died of."""
        until = time.monotonic() + limit
        while True:
            code = self.library.cuStreamQuery(self.stream)
            if code == 0:
                return True
            if code != NOT_READY:
                raise Fault("cuStreamQuery", code)
            if time.monotonic() > until:
                return False

    def event(self) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def between(self, first: ctypes.c_void_p, last: ctypes.c_void_p) -> float:
        took = ctypes.c_float()
        self.call("cuEventElapsedTime_v2" if hasattr(self.library, "cuEventElapsedTime_v2") else "cuEventElapsedTime", ctypes.byref(took), first, last)
        return took.value


class Buffer:
    """A kernel's buffer, filled as its `//@ arg` line says."""

    def __init__(self, device: Device, support: ctypes.c_void_p, type_: str, count: int, how: str, numbers: list[str]) -> None:
        number, size = TYPES[type_]
        self.bytes, self.device = count * size, device
        self.pristine, self.address, self.expected = device.memory(self.bytes), device.memory(self.bytes), device.memory(self.bytes)
        words = [bits(type_, numbers[0])] if how == "const" else [int(text) for text in numbers]
        fill = device.function(support, "fill")
        order = FILLS.index("zero" if how == "table" else how)
        device.launch(fill, GRID, BLOCK, 0, [self.pristine, count, number, order, *(words + [0, 0, 0])[:3]])
        if how == "table":
            device.launch(device.function(support, "table"), GRID, BLOCK, 0, [self.pristine, count, words[0]])
        self.restore()

    def restore(self) -> None:
        self.device.copy(self.address, self.pristine, self.bytes)

    def expect(self) -> None:
        self.device.copy(self.expected, self.address, self.bytes)
