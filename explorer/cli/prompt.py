"""An extension of the Jupyter server: what a kernel says goes to the browser at once.

The server leaves Nagle's algorithm on, so a kernel's second message waits until the browser has acknowledged the first,
and that takes it 40 ms and more. Each move of a slider is such a message: the first says that the kernel is busy.
The extension is switched on by installing the package into the environment of the server.
"""

from __future__ import annotations

from typing import Any

_SETTING = "kernel_websocket_connection_class"


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "explorer.cli.prompt"}]


def _load_jupyter_server_extension(app: Any) -> None:
    """Called by the server as it starts."""
    settings = app.web_app.settings
    if _SETTING in settings:
        settings[_SETTING] = without_delay(settings[_SETTING])


def without_delay(connection: type) -> type:
    """The class of connections between browser and kernel, whose sockets then wait for nothing."""

    def connect(self: Any) -> Any:
        self.websocket_handler.set_nodelay(True)
        return connection.connect(self)  # type: ignore[attr-defined]

    return type(connection.__name__, (connection,), {"connect": connect})
