"""Further arguments of a schedule, read from what a person types."""

from __future__ import annotations

from explorer.errors import InputError, shown

_COUNTS = ("name", "n_ranks", "n_micro_batches", "n_chunks")
Options = tuple[tuple[str, int | float | str], ...]


def read_options(text: str) -> Options:
    """The names and values in ``"warm_up=6, dialect=torch"``.

    Raises:
        InputError: if a part is not of that form.
    """
    options: list[tuple[str, int | float | str]] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not (equals and name.isidentifier() and value):
            raise InputError(
                f"options read name=value, with commas between; got {shown(part)}; try warm_up=6", argument="options"
            )
        if name in _COUNTS or name in dict(options):
            why = "has a flag or field of its own" if name in _COUNTS else "is there twice"
            raise InputError(
                f"options are further arguments, each once; {name[:60]} {why}; leave it out", argument="options"
            )
        options.append((name, _value(value)))
    return tuple(options)


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
