"""No candidate: it has no model."""
