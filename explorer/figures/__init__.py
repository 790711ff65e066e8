"""Numbers → plotly figures; returned, never shown."""

from explorer.figures.combined import timeline_and_memory
from explorer.figures.compare import compare
from explorer.figures.compare_residuals import difference_chart, residual_chart
from explorer.figures.export import write_html
from explorer.figures.image import write_image
from explorer.figures.memory import memory
from explorer.figures.memory_stack import memory_stack
from explorer.figures.still import still_timeline
from explorer.figures.sweep import sweep_chart, sweep_lines
from explorer.figures.timeline import timeline

__all__ = [
    "compare",
    "difference_chart",
    "memory",
    "memory_stack",
    "residual_chart",
    "still_timeline",
    "sweep_chart",
    "sweep_lines",
    "timeline",
    "timeline_and_memory",
    "write_html",
    "write_image",
]
