"""Programs from data and back: torch's CSV, tables, and drawings in text."""

from explorer.io.files import load, save
from explorer.io.frame import from_frame
from explorer.io.grid import from_grid, to_grid

__all__ = ["from_frame", "from_grid", "load", "save", "to_grid"]
