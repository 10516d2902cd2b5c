"""Times as callers give them."""

from __future__ import annotations

from . import _native


def seconds(time: float | str | None) -> float | None:
    """Seconds, of a number of them or of a text such as "2s" or "500ms"."""
    if time is None or isinstance(time, (int, float)):
        return time
    if isinstance(time, str):
        return _native.seconds(time)
    raise TypeError(f"a time is a number of seconds or a text such as '2s', not {type(time).__name__}")
