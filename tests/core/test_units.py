"""Amounts in words."""

from __future__ import annotations

import math

import pytest

from explorer.core.units import bytes_in_words, bytes_to_type


@pytest.mark.parametrize(
    ("amount", "words", "typed"),
    [
        (17_179_869_184, "16 GiB", "17179869184 (16 GiB)"),
        (-3 * 2**20, "-3 MiB", "-3145728 (-3 MiB)"),
        (1536.5, "1.5 KiB", "1537 (1.5 KiB)"),  # never less than what was asked for
        (80, "80 bytes", "80"),
        (0, "0 bytes", "0"),
        (math.inf, "inf GiB", "inf"),
    ],
)
def test_bytes_are_said_in_a_unit_and_typed_whole(amount: float, words: str, typed: str) -> None:
    assert bytes_in_words(amount) == words
    assert bytes_to_type(amount) == typed
