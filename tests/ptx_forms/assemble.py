"""Compiles PTX into the folder of prepared files."""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import struct
import subprocess
import tempfile
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]


def tool(name: str) -> str:
    home = os.environ.get("CUDA_HOME") or str(ROOT / ".cuda")
    return str(pathlib.Path(home) / "bin" / name)


def call(*command: str) -> str:
    done = subprocess.run(["nice", *command], capture_output=True, text=True, check=False)
    if done.returncode < 0:
        raise RuntimeError(f"{' '.join(command)}: ended by signal {-done.returncode}")
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[:400]}")
    return done.stderr + done.stdout


def assemble(ptx: str, arch: str, into: pathlib.Path) -> dict[str, Any]:
    """The cubin's file name, and what ptxas says of it.

    Builds of the same PTX share a file. So it appears there in one step: another build may be reading it.
    """
    name = hashlib.sha256(ptx.encode()).hexdigest()[:16] + ".cubin"
    with tempfile.TemporaryDirectory(dir=into) as folder:
        source, out = pathlib.Path(folder) / "kernel.ptx", pathlib.Path(folder) / "kernel.cubin"
        source.write_text(ptx)
        said = call(tool("ptxas"), f"-arch={arch}", "-v", "-O3", str(source), "-o", str(out))
        image = out.read_bytes()
        code = machine_code(image, str(into / name))
        out.replace(into / name)

    def total(pattern: str) -> int:
        return sum(int(number) for number in re.findall(pattern, said))

    return {
        "cubin": name,
        "registers": total(r"Used (\d+) registers"),
        "static": total(r"(\d+) bytes smem"),
        "spilled": total(r"(\d+) bytes spill stores"),
        "code": code,
    }


def machine_code(image: bytes, shown: str) -> int:
    """Bytes of a cubin's functions."""
    try:
        at, size, count, names = *struct.unpack_from("<Q", image, 0x28), *struct.unpack_from("<HHH", image, 0x3A)
        sections = [struct.unpack_from("<IIQQQQ", image, at + number * size) for number in range(count)]
        return sum(section[5] for section in sections if image[sections[names][4] + section[0] :].startswith(b".text."))
    except (struct.error, IndexError):
        # ptxas reports success on a full disk.
        raise RuntimeError(f"{shown}: ptxas wrote {len(image)} bytes, which are no whole cubin. Is the disk full? Free some space, then run this again") from None
