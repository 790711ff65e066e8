"""Numbers → plotly figures; returned, never shown."""

from explorer.figures.combined import timeline_and_memory
from explorer.figures.export import write_html
from explorer.figures.memory import memory
from explorer.figures.timeline import timeline

__all__ = ["memory", "timeline", "timeline_and_memory", "write_html"]
