"""A page that stands alone."""

from explorer.figures.document import document


def test_title_is_text_and_style_and_body_stay_as_they_are():
    page = document("</title>$body", style="p { color: red }", body="<p>costs $title</p>")
    head, body = page.split("<body>")
    assert "<title>&lt;/title&gt;$body</title>" in head
    assert "<style>\np { color: red }\n</style>" in head
    assert body.startswith("\n<p>costs $title</p>\n</body>")
