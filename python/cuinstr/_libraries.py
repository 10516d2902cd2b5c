"""Where libraries of NVIDIA's lie that the loader does not find by itself."""

from __future__ import annotations

import importlib.util
import pathlib


def libraries() -> list[str]:
    """Folders in which NVIDIA's own wheels keep libraries: NVRTC's among them."""
    try:
        found = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return []
    places = found.submodule_search_locations or [] if found is not None else []
    return [str(folder) for place in places for folder in sorted(pathlib.Path(place).glob("*/lib")) if any(folder.glob("libnvrtc.so*"))]
