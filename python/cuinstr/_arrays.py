"""The bytes of arrays, wherever they lie, by the protocols that packages share; none of them is imported."""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

# DLDeviceType: what a host can read, and what the driver copies from.
_ON_HOST = (1, 3)
_ON_DEVICE = (2, 13)


class _Tensor(ctypes.Structure):
    """DLTensor, of dlpack.h."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def contents(array: Any) -> bytes:
    """The bytes of an array in C's order: of anything with a buffer, `__cuda_array_interface__` or `__dlpack__`."""
    try:
        return memoryview(array).tobytes()
    except (TypeError, ValueError, BufferError):
        pass
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        return _of_interface(interface)
    if hasattr(array, "__dlpack__"):
        return _of_dlpack(array)
    raise TypeError(
        f"a {type(array).__name__} has no bytes: give bytes, an array with a buffer (NumPy), or one that has __cuda_array_interface__ or __dlpack__"
    )


def _contiguous(shape: list[int], strides: list[int] | None, step: int) -> bool:
    """Whether elements lie behind each other in C's order; strides are in the same unit as the step from one to the next."""
    if strides is None or 0 in shape:
        return True
    expected = step
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


def _of_interface(interface: dict[str, Any]) -> bytes:
    shape, step = list(interface["shape"]), int(interface["typestr"][2:])
    strides = interface.get("strides")
    if not _contiguous(shape, None if strides is None else list(strides), step):
        raise ValueError("the array's elements do not lie behind each other: make a contiguous copy of it")
    # No stream means that nothing is to be waited for.
    return _from_device(int(interface["data"][0]), prod(shape) * step, interface.get("stream"))


def _of_dlpack(array: Any) -> bytes:
    kind, _ = array.__dlpack_device__()
    if kind not in _ON_HOST + _ON_DEVICE:
        raise TypeError(f"the array lies on a device of kind {int(kind)}, and neither on the host nor on a GPU of CUDA's")
    # On the legacy default stream of a GPU: what its producer queued comes before our copy.
    capsule = array.__dlpack__(stream=1) if kind == 2 else array.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # The capsule frees the tensor, since nobody takes it over.
    tensor = ctypes.cast(pointer(capsule, b"dltensor"), ctypes.POINTER(_Tensor)).contents
    shape = tensor.shape[: tensor.ndim]
    if not _contiguous(shape, tensor.strides[: tensor.ndim] if tensor.strides else None, 1):
        raise ValueError("the array's elements do not lie behind each other: make a contiguous copy of it")
    size = prod(shape) * ((tensor.bits * tensor.lanes + 7) // 8)
    address = (tensor.data or 0) + tensor.byte_offset
    return ctypes.string_at(address, size) if kind in _ON_HOST else _from_device(address, size, 1)


def _from_device(address: int, size: int, stream: int | None) -> bytes:
    """Copies from device memory, once the stream has come there."""
    driver = ctypes.CDLL("libcuda.so.1")
    into = ctypes.create_string_buffer(size)
    failed = driver.cuStreamSynchronize(ctypes.c_void_p(stream)) if stream is not None else 0
    if size and not failed:
        failed = driver.cuMemcpyDtoH_v2(into, ctypes.c_uint64(address), ctypes.c_size_t(size))
    if failed:
        raise RuntimeError(f"the driver does not give the array's bytes: error {failed}")
    return into.raw
