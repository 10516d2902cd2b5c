"""The GPU's clocks, as its driver tells them."""

from __future__ import annotations

import subprocess


def clocks() -> list[int] | None:
    """MHz of the first GPU's processors and memory; None where no driver tells."""
    command = ["nvidia-smi", "--query-gpu=clocks.sm,clocks.mem", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
        return [int(word) for word in said.splitlines()[0].split(",")]
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None
