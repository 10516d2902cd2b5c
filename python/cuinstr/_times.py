"""Times as people write them."""

from __future__ import annotations

import re
from typing import Union

Seconds = Union[float, str]
"""Seconds, or a text such as "2s", "500ms", "1.5s"."""

_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


def seconds(value: object, what: str) -> float:
    """The time in seconds; `what` names it in errors."""
    if isinstance(value, str):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(ns|us|ms|s|m)", value.strip())
        if match is None:
            raise ValueError(f"{what}={value!r}: write seconds as a number, or a text such as '2s' or '500ms'; units are ns, us, ms, s and m")
        return float(match[1]) * _UNITS[match[2]]
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError(f"{what} is seconds as a number, or a text such as '2s' or '500ms', not {type(value).__name__}")
    return float(value)
