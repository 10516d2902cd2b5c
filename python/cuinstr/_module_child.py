"""What runs a module in KernelBench's form: a process that has imported torch, and forks itself for each module.

The supervisor (_modules.py) believes a candidate's process nothing: it sends inputs, takes the time, and has another process compare what comes back.
"""

from __future__ import annotations

import array
import ctypes
import importlib.util
import io
import json
import os
import pathlib
import signal
import socket
import struct
import sys
import traceback
from typing import Any

_HEAD = struct.Struct("<IQ")
# Cycles that the GPU is kept busy, so that work which does not wait for its inputs shows: some 20 ms.
_BUSY = 40_000_000


def send(stream: socket.socket, message: object, payload: bytes = b"") -> None:
    text = json.dumps(message).encode()
    stream.sendall(_HEAD.pack(len(text), len(payload)) + text)
    stream.sendall(payload)


def _exactly(stream: socket.socket, size: int) -> bytes:
    parts, left = [], size
    while left:
        part = stream.recv(min(left, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def receive(stream: socket.socket, most: int = 1 << 34) -> tuple[Any, bytes]:
    length, size = _HEAD.unpack(_exactly(stream, _HEAD.size))
    if length > 1 << 24 or size > most:
        raise ValueError("it sent something else than was asked for")
    return json.loads(_exactly(stream, length)), _exactly(stream, size)


def _bytes(tensor: Any) -> bytes:
    import torch

    flat = tensor.detach().to("cpu").contiguous().reshape(-1)
    return bytes(flat.view(torch.uint8).numpy()) if flat.numel() else b""


def _flat(value: Any) -> list[Any]:
    """The tensors of what a model gave."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in _flat(part)]
    if isinstance(value, dict):
        return [tensor for key in sorted(value) for tensor in _flat(value[key])]
    return [torch.tensor(value)]


def _described(tensors: list[Any]) -> list[tuple[str, list[int]]]:
    return [(str(tensor.dtype).removeprefix("torch."), list(tensor.shape)) for tensor in tensors]


def _tensors(told: list[tuple[str, list[int]]], payload: bytes) -> list[Any]:
    import torch

    tensors, rest = [], memoryview(bytearray(payload))
    for name, shape in told:
        kind = getattr(torch, name)
        if not isinstance(kind, torch.dtype):
            raise ValueError(f"{name} is no type of elements")
        size = torch.empty(0, dtype=kind).element_size() * int(torch.Size(shape).numel())
        part, rest = rest[:size], rest[size:]
        tensors.append(torch.frombuffer(part, dtype=kind).reshape(shape) if size else torch.empty(shape, dtype=kind))
    return tensors


def _difference(expected: list[Any], found: list[Any]) -> str | None:
    import torch

    if len(expected) != len(found):
        return f"{len(found)} outputs instead of {len(expected)}"
    for number, (wanted, got) in enumerate(zip(expected, found)):
        if wanted.dtype != got.dtype or wanted.shape != got.shape:
            return f"output {number} is {got.dtype} {tuple(got.shape)} instead of {wanted.dtype} {tuple(wanted.shape)}"
        exact = not wanted.is_floating_point()
        near = {torch.float16: 1e-2, torch.bfloat16: 1e-2, torch.float64: 1e-8}.get(wanted.dtype, 1e-4)
        fits = wanted == got if exact else torch.isclose(got, wanted, rtol=near, atol=near, equal_nan=True)
        if not bool(fits.all()):
            at = int((~fits).reshape(-1).nonzero()[0])
            values = got.reshape(-1)[at].item(), wanted.reshape(-1)[at].item()
            return f"output {number}: {int((~fits).sum())} of {fits.numel()} elements differ, the first is [{at}]: {values[0]} instead of {values[1]}"
    return None


class _Runner:
    """A module and its model."""

    def __init__(self, stream: socket.socket, path: str, is_reference: bool) -> None:
        import torch

        self._torch = torch
        self._stream = stream
        self._is_reference = is_reference
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        spec = importlib.util.spec_from_file_location("candidate", path)
        assert spec is not None and spec.loader is not None
        self._module = importlib.util.module_from_spec(spec)
        sys.modules["candidate"] = self._module
        spec.loader.exec_module(self._module)
        names = ["Model", "ModelNew"] if is_reference else ["ModelNew", "Model"]
        made = next((getattr(self._module, name) for name in names if hasattr(self._module, name)), None)
        if made is None:
            raise AttributeError("the module has neither ModelNew nor Model")
        self._made = made
        self._model: Any = None
        self._inputs: list[Any] = []
        self._expected: list[Any] = []

    def _make(self, blob: bytes) -> None:
        self._torch.manual_seed(0)
        with self._torch.no_grad():
            model = self._made(*self._torch.load(io.BytesIO(blob), weights_only=False))
        self._model = model.to(self._device) if hasattr(model, "to") else model

    def _sync(self) -> None:
        if self._device == "cuda":
            self._torch.cuda.synchronize()

    def _take(self, blob: bytes) -> None:
        """Inputs for the next run: new contents in the old memory, behind other work of the current stream."""
        fresh = self._torch.load(io.BytesIO(blob), weights_only=False)
        cuda = self._device == "cuda"
        is_tensor = [isinstance(value, self._torch.Tensor) for value in fresh]
        pinned = [value.pin_memory() if known and cuda else value for value, known in zip(fresh, is_tensor)]
        if cuda:
            self._torch.cuda._sleep(_BUSY)
        if len(self._inputs) != len(fresh):
            self._inputs = [value.to(self._device, non_blocking=True) if known else value for value, known in zip(pinned, is_tensor)]
            return
        for index, (value, known) in enumerate(zip(pinned, is_tensor)):
            if known and value.shape == self._inputs[index].shape:
                self._inputs[index].copy_(value, non_blocking=True)
            else:
                self._inputs[index] = value.to(self._device, non_blocking=True) if known else value
        self._pinned = pinned

    def _forward(self) -> Any:
        with self._torch.no_grad():
            return self._model(*self._inputs)

    def _serve_one(self, asked: dict[str, Any], payload: bytes) -> None:
        what = asked["do"]
        if what == "make":
            self._make(payload)
            send(self._stream, {"made": True})
        elif what == "run":
            self._take(payload)
            outputs = _flat(self._forward())
            early = [_bytes(tensor) for tensor in outputs]
            self._sync()
            late = [_bytes(tensor) for tensor in outputs]
            if self._is_reference:
                self._expected = [tensor.to("cpu") for tensor in outputs]
            send(self._stream, {"outputs": _described(outputs), "steady": early == late}, b"".join(late))
        elif what == "time":
            self._take(payload)
            self._sync()
            send(self._stream, {"ready": True})
            receive(self._stream)
            outputs = _flat(self._forward())
            self._sync()
            send(self._stream, {"done": True})
            send(self._stream, {"outputs": _described(outputs), "steady": True}, b"".join(_bytes(tensor) for tensor in outputs))
            if self._is_reference:
                self._expected = [tensor.to("cpu") for tensor in outputs]
        elif what == "inputs":
            # Only of the reference.
            self._torch.manual_seed(asked["seed"])
            given = self._module.get_init_inputs() if asked["init"] else self._module.get_inputs()
            blob = io.BytesIO()
            self._torch.save(list(given), blob)
            send(self._stream, {"inputs": True}, blob.getvalue())
        elif what == "compare":
            try:
                difference = _difference(self._expected, _tensors(asked["outputs"], payload))
            except (ValueError, RuntimeError, AttributeError, TypeError) as error:
                difference = f"its outputs are none: {error}"
            send(self._stream, {"difference": difference})
        elif what == "device":
            name = self._torch.cuda.get_device_name() if self._device == "cuda" else "cpu"
            send(self._stream, {"device": name, "torch": self._torch.__version__})

    def serve(self) -> None:
        while True:
            try:
                asked, payload = receive(self._stream)
            except EOFError:
                return
            try:
                self._serve_one(asked, payload)
            except Exception as error:
                last = traceback.extract_tb(error.__traceback__)
                line = next((frame.lineno for frame in reversed(last) if frame.filename.endswith("candidate.py")), None)
                send(self._stream, {"error": f"{type(error).__name__}: {error}"[:2000], "line": line})


def _be(stream: socket.socket, order: dict[str, Any]) -> None:
    """A fork's whole life."""
    if order["scratch"] is not None:
        from . import _namespace

        folder, missing = _namespace.enter(order["scratch"], order["visible"])
        # The first process of its own namespace: with it everything in there ends.
        if os.fork():
            os.wait()
            os._exit(0)
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        missing = missing or _namespace.hide_processes()
    else:
        missing, folder = [], order["folder"]
    for name in ("TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "HOME", "TORCHINDUCTOR_CACHE_DIR"):
        os.environ[name] = folder
    for name in ("PYTHONSTARTUP", "PYTHONPATH"):
        os.environ.pop(name, None)
    sys.path[:] = [path for path in sys.path if os.path.isdir(path)]
    send(stream, {"missing": missing})
    try:
        runner = _Runner(stream, os.path.join(folder, order["module"]), order["scratch"] is None)
    except BaseException as error:
        line = getattr(error, "lineno", None)
        frames = traceback.extract_tb(error.__traceback__)
        line = line or next((frame.lineno for frame in reversed(frames) if frame.filename.endswith("candidate.py")), None)
        send(stream, {"error": f"{type(error).__name__}: {error}"[:2000], "line": line})
        return
    send(stream, {"loaded": True})
    runner.serve()


def serve() -> None:
    """The process that forks: it is asked on its standard input for a process, and given the socket to it."""
    import torch  # noqa: F401

    control = socket.socket(fileno=0)
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, ancillary, _, _ = control.recvmsg(1 << 16, socket.CMSG_LEN(4))
        if not message:
            return
        descriptors = array.array("i")
        for _, _, data in ancillary:
            descriptors.frombytes(data[:4])
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setpgid(0, 0)
            control.close()
            os.dup2(null, 0)
            os.dup2(null, 2)
            try:
                _be(socket.socket(fileno=descriptors[0]), json.loads(message))
            finally:
                os._exit(0)
        os.close(descriptors[0])
        control.sendall(struct.pack("<i", child))


if __name__ == "__main__":
    serve()
