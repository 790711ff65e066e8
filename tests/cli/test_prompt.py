"""The server's extension: switched on by the installation, and doing what it says."""

import subprocess
import sys

import pytest

from explorer.cli import prompt

pytestmark = pytest.mark.slow


class Handler:
    nodelay = False

    def set_nodelay(self, value):
        self.nodelay = value


class Connection:
    def __init__(self, handler):
        self.websocket_handler = handler

    def connect(self):
        return "connected"


class App:
    def __init__(self, settings):
        self.web_app = type("WebApp", (), {"settings": settings})()


def test_connections_wait_for_nothing():
    app = App({"kernel_websocket_connection_class": Connection})
    prompt._load_jupyter_server_extension(app)
    connection = app.web_app.settings["kernel_websocket_connection_class"](handler := Handler())
    assert connection.connect() == "connected"
    assert handler.nodelay


def test_a_server_of_another_kind_is_left_alone():
    app = App({})
    prompt._load_jupyter_server_extension(app)
    assert app.web_app.settings == {}


def test_the_installation_switches_it_on():
    command = [sys.executable, "-m", "jupyter", "server", "extension", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "explorer.cli.prompt" in line]
    assert any("enabled" in line for line in lines), done.stdout + done.stderr
    assert any("OK" in line for line in lines), done.stdout + done.stderr
