"""Pages that open without a network."""

import re

import pytest

import explorer as ex
from explorer.errors import InputError
from explorer.figures import write_html


def figure():
    return ex.timeline(ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=3)))


def test_page_loads_nothing_and_offers_no_upload(tmp_path):
    text = write_html(figure(), tmp_path / "page.html").read_text(encoding="utf-8")
    head, _, rest = text.partition("<body>")
    assert re.search(r"<(script|link|img|iframe)[^>]+(src|href)\s*=", head + rest[-20000:]) is None
    assert '"showSendToCloud": false' in text
    assert '"displaylogo": false' in text
    assert "prefers-color-scheme: dark" in text


def test_page_title_is_text(tmp_path):
    page = write_html(figure(), tmp_path / "page.html", title="</title><img src=x onerror=alert(1)> µ")
    assert "<title>&lt;/title&gt;&lt;img src=x onerror=alert(1)&gt; µ</title>" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", ["missing/page.html", ".", "nul\0.html"])
def test_path_that_cannot_be_written_is_refused(tmp_path, path):
    with pytest.raises(ex.ExplorerError, match=r"a page needs a path that can be written"):
        write_html(figure(), f"{tmp_path}/{path}")


def test_what_is_no_figure_and_what_is_no_path_are_refused(tmp_path):
    trace = ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2))
    with pytest.raises(InputError, match=r"a page shows a plotly figure; got Trace; draw one with explorer.timeline"):
        ex.write_html(trace, tmp_path / "page.html")
    for path in (None, 3, tmp_path, tmp_path / "absent" / "page.html"):
        with pytest.raises(InputError, match=r"a page needs a path that can be written; got .*; try a file"):
            ex.write_html(ex.timeline(trace), path)
