"""The process that workers are forked from: torch is imported there once, and nothing of the caller's ever runs in it.

It is started by `Nursery`, waits for one request at a time, and ends when its caller has: with the last end of their
socket gone there is nobody left to ask. Its workers end with it.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from explorer.errors import RunError

_START = "import sys; sys.path[:] = sys.argv[2:]; from explorer.execute.nursery import serve; serve(int(sys.argv[1]))"
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # read when torch is imported
_PATIENCE = 120.0  # seconds that importing torch may take on a busy machine
_MOMENT = 0.5  # seconds from a process's closing its files to its end
_MOST = 65536  # bytes of a request or an answer
_PR_SET_PDEATHSIG = 1


class Nursery:
    """Forks workers for one caller.

    Attributes:
        pid: of the process that forks.
        is_ready: whether it has torch, so that forking takes milliseconds.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.is_ready = False
        ours, theirs = socket.socketpair()
        self._socket = ours
        ours.settimeout(_PATIENCE)
        with theirs:
            paths = [path or str(Path.cwd()) for path in sys.path]
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, str(theirs.fileno()), *paths],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, **_ONE_THREAD},
                start_new_session=True,  # an interrupt is for the caller alone
            )
        self.pid = self._process.pid

    def wait(self) -> None:
        """Wait until torch is there.

        Raises:
            RunError: if there is nobody to fork from.
        """
        self._ask({"do": "end", "pids": [], "ending": []}, [])
        self.is_ready = True

    def fork(self, sockets: Sequence[socket.socket]) -> int:
        """A new worker's process id; it gets these sockets.

        Raises:
            RunError: if there is nobody to fork it.
        """
        return int(self._ask({"do": "fork"}, [one.fileno() for one in sockets])["pid"])

    def end(self, pids: Sequence[int], *, ending: Sequence[int] = ()) -> dict[int, int]:
        """End workers, whatever they do; process id → signal that had ended it before, or 0.

        Those that are `ending` by themselves are given a moment for it, so that their own signal is known.
        """
        answer = self._ask({"do": "end", "pids": list(pids), "ending": list(ending)}, [])
        return {int(pid): int(number) for pid, number in answer["signals"].items()}

    @property
    def alive(self) -> bool:
        """Whether it can still be asked."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it, and with it its workers."""
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def _ask(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        try:
            with self._lock:
                socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
                answer = self._socket.recv(_MOST)
        except OSError as error:
            self.close()
            raise RunError(
                f"ranks in processes need a process to fork from; it did not answer ({error}); run again"
            ) from error
        except BaseException:
            self.close()  # an answer that nobody has taken would be taken for the next one's
            raise
        if not answer:
            code = self._process.wait()
            raise RunError(
                f"ranks in processes need a process to fork from; it ended with code {code}; its last words are on "
                "the error stream; mend that, and run again"
            )
        return dict(json.loads(answer))


def serve(descriptor: int) -> None:
    """Answer requests until the caller is gone. Only ever called in the nursery's own process."""
    from explorer.execute import worker  # torch comes with it, so that workers need not import it

    gc.collect()
    gc.freeze()  # what is here stays, so that no worker looks through it
    with socket.socket(fileno=descriptor) as caller:
        while True:
            try:
                data, descriptors, _, _ = socket.recv_fds(caller, _MOST, 4)
            except InterruptedError:
                continue
            if not data:
                return
            request = json.loads(data)
            if request["do"] == "fork":
                pid = os.fork()
                if not pid:
                    caller.close()
                    _become(worker.main, descriptors)
                for one in descriptors:
                    os.close(one)
                answer: dict[str, Any] = {"pid": pid}
            else:
                answer = {"signals": {pid: _end(pid, pid in request["ending"]) for pid in request["pids"]}}
            try:
                caller.sendall(json.dumps(answer).encode())
            except BrokenPipeError:  # it was killed: what it asked for ends with this process
                return


def _become(main: Callable[[list[int]], None], descriptors: list[int]) -> None:
    """Run a worker in this new process, and never come back."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        die_with_parent()
        main(descriptors)
        code = 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def die_with_parent() -> None:
    """Ask the system to end this process when the one that forked it ends; it is Linux that can."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end(pid: int, is_ending: bool) -> int:
    """End a worker and take its status; the signal that had ended it before, or 0."""
    limit = time.monotonic() + (_MOMENT if is_ending else 0.0)
    try:
        while not (status := os.waitpid(pid, os.WNOHANG))[0]:
            if time.monotonic() >= limit:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return 0
            time.sleep(0.001)
    except ChildProcessError:
        return 0
    return os.WTERMSIG(status[1]) if os.WIFSIGNALED(status[1]) else 0
