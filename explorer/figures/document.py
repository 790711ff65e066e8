"""A page that stands alone: one file, in its reader's light or dark."""

from __future__ import annotations

import html
from string import Template

_DOCUMENT = Template(
    """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>$title</title>
<style>
$style
</style>
</head>
<body>
$body
</body>
</html>
"""
)


def document(title: str, *, style: str, body: str) -> str:
    """The page; `title` is plain text, `style` and `body` are put in as they are."""
    return _DOCUMENT.substitute(title=html.escape(title), style=style, body=body)
