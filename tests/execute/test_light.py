"""What is there without torch."""

from __future__ import annotations

import subprocess
import sys

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import explorer as ex
print(list(ex.READY_MODELS), ex.Hook.__name__, ex.Stop.__name__, ex.Recorder().progress)
try:
    ex.execute
except ex.ExplorerError as error:
    print(type(error).__name__, error)
"""


def test_names_hooks_and_recorder_are_there_without_torch_and_a_run_says_what_it_lacks():
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "['mlp', 'conv', 'gpt'] Hook Stop 0.0",
        'MissingError a run needs torch; it is not installed; try pip install "torch>=2.12"',
    ]
