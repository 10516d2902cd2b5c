# verdict: compile error
"""No candidate: it has no model."""
