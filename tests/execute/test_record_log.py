"""The file in which a rank keeps its recording."""

from __future__ import annotations

import pytest

from explorer.execute.record_log import Log


def test_a_run_whose_file_another_has_begun_anew_ends_its_recording_and_leaves_the_others_alone(tmp_path):
    file = tmp_path / "rank-0.jsonl"
    first = Log(file, {"process": "one"})
    first.append({"step": 0})
    second = Log(file, {"process": "two"})
    second.append({"step": 0})
    with pytest.warns(UserWarning, match=r"recording ends: another run records in .*rank-0\.jsonl now"):
        first.append({"step": 1})
    first.append({"step": 2})  # and says so once
    second.append({"step": 1})
    assert file.read_text().splitlines() == ['{"process":"two"}', '{"step":0}', '{"step":1}']
