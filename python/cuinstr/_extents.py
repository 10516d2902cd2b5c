"""Extents of grids and blocks."""

from __future__ import annotations

from collections.abc import Sequence


def extents(given: Sequence[int], what: str) -> tuple[int, int, int]:
    """All three of them; what is left out is one."""
    if not 1 <= len(given) <= 3:
        raise ValueError(f"a {what} has one to three extents, not {len(given)}")
    x, y, z = (*given, 1, 1)[:3]
    return x, y, z
