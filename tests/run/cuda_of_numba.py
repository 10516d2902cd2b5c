"""Numba's part for CUDA. Releases that are older than NumPy 2 ask it for a function that it lacks."""
import numpy as np

if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack
from numba import cuda  # noqa: F401 (what this is for)
