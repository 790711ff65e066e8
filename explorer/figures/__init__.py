"""Numbers → plotly figures; returned, never shown."""
