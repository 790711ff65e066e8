"""`explorer lab`: JupyterLab with the app's notebook."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import webbrowser
from pathlib import Path
from types import FrameType

from explorer.cli.arguments import Commands
from explorer.errors import InputError, MissingError

NOTEBOOK = "00-explore.ipynb"
_EPILOG = "Options are jupyterlab's, behind the folder if one is named: explorer lab FOLDER --no-browser --port=9999"
_COPIES = "pipeline-explorer-notebooks"
_PATIENCE = 10.0  # seconds in which a server may end its kernels


def add(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser("lab", help="open the app in JupyterLab", description=__doc__, epilog=_EPILOG)
    parser.add_argument("folder", nargs="?", metavar="FOLDER", help=f"for copies of the notebooks ({_COPIES})")
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve on this machine only until interrupted; the server's own exit status."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise MissingError(
            'explorer lab needs JupyterLab; it is not installed; try pip install "pipeline-explorer[lab]"'
        )
    package = Path(__file__).resolve().parent.parent
    folder = notebooks_folder(package, Path.cwd(), arguments.folder)
    print(f"Notebooks are in {folder}", flush=True)
    return _serve([*command(has_browser=_has_browser()), *arguments.passed_on], folder)


def notebooks_folder(package: Path, here: Path, wanted: str | None) -> Path:
    """The folder to open: a clone's own notebooks, or copies of them that the user may edit.

    Args:
        package: the folder of this package.
        here: where copies go unless the user wants them elsewhere.
        wanted: by the user, or None.

    Raises:
        InputError: if the notebooks cannot be copied there.
        MissingError: if this installation has none.
    """
    clone, shipped = package.parent / "notebooks", package / "notebooks"
    in_clone = (clone / NOTEBOOK).is_file() and (package.parent / "pyproject.toml").is_file()
    if in_clone and wanted is None:
        return clone
    source = clone if in_clone else shipped
    if not (source / NOTEBOOK).is_file():
        raise MissingError(f"this installation has no notebook {NOTEBOOK}; install pipeline-explorer again")
    target = here / (wanted or _COPIES)
    try:
        _copy_missing(source, target)
    except OSError as error:
        raise InputError(
            f"explorer lab copies its notebooks into a folder it may write; got {str(target)!r} "
            f"({error.strerror}); name another: explorer lab FOLDER"
        ) from error
    return target


def command(*, has_browser: bool) -> list[str]:
    """The command line of the server: on loopback, at the app's notebook."""
    words = [sys.executable, "-m", "jupyterlab", "--ServerApp.ip=127.0.0.1"]
    words.append(f"--LabApp.default_url=/lab/tree/{NOTEBOOK}")
    if not has_browser:
        words.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        # in containers root is the only user there is; the server listens on loopback and asks for its token
        words.append("--allow-root")
    return words


def _copy_missing(source: Path, target: Path) -> None:
    """Copy what is not there yet: an edited notebook stays as it is."""
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.rglob("*")):
        copy = target / path.relative_to(source)
        if (
            path.is_dir()
            or copy.exists()
            or any(part.startswith((".", "__")) for part in path.parts[len(source.parts) :])
        ):
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def _has_browser() -> bool:
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def _serve(words: list[str], folder: Path) -> int:
    """Run the server in a session of its own, so that Ctrl-C ends it through us, without its question."""
    before = {number: signal.signal(number, _interrupt) for number in _ENDINGS}
    server = subprocess.Popen(words, cwd=folder, start_new_session=True)
    try:
        return server.wait()
    finally:
        _end(server)
        for number, handler in before.items():
            signal.signal(number, handler)


_ENDINGS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _end(server: subprocess.Popen[bytes]) -> None:
    """Ask the server to end itself and its kernels; make it, if it does not."""
    for number in _ENDINGS:
        signal.signal(number, signal.SIG_IGN)
    if server.poll() is None:
        server.terminate()
    try:
        server.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
