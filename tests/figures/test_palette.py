"""Colours: told apart from the page and from each other, with text that can be read."""

import itertools

import numpy as np
import pytest

from explorer.core import Category, Kind
from explorer.figures.palette import (
    CATEGORY_COLORS,
    CAUSE_LOOKS,
    DARK,
    EITHER,
    KIND_COLORS,
    KIND_INKS,
    KIND_LETTERS,
    LIGHT,
    rank_color,
)

# Machado, Oliveira & Fernandes 2009, doi:10.1109/TVCG.2009.113, severity 1.0, on linear RGB
SIGHT = {
    "full": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


def linear(color):
    """(3,) linear RGB of #rrggbb."""
    part = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """WCAG 2.1's contrast ratio."""
    dark, light = sorted(linear(color) @ [0.2126, 0.7152, 0.0722] + 0.05 for color in (one, other))
    return light / dark


def lab(rgb):
    """(3,) CIE L*a*b* of linear RGB, white D65."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ np.clip(rgb, 0, 1) / [0.9505, 1, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_every_kind_and_category_has_a_colour():
    assert set(KIND_COLORS) == set(KIND_LETTERS) == set(KIND_INKS) == set(Kind)
    assert set(CATEGORY_COLORS) == set(Category)


@pytest.mark.parametrize("page", ["#ffffff", "#111111"])
def test_colours_stand_out_from_the_page(page):
    assert min(contrast(color, page) for color in (*KIND_COLORS.values(), *CATEGORY_COLORS.values())) >= 2.4
    assert contrast(EITHER.text, page) >= 3.9
    assert all(contrast(theme.text, theme.paper) >= 7 for theme in (LIGHT, DARK))


def test_letters_can_be_read_on_their_bars():
    assert all(contrast(KIND_INKS[kind], KIND_COLORS[kind]) >= 4.5 for kind in Kind if len(KIND_LETTERS[kind]) == 1)


@pytest.mark.parametrize("sight", SIGHT)
def test_compute_kinds_stay_apart_for_every_kind_of_sight(sight):
    seen = [lab(np.array(SIGHT[sight]) @ linear(KIND_COLORS[kind])) for kind in (Kind.F, Kind.B, Kind.I, Kind.W)]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) >= 20


def test_ranks_have_distinct_colours():
    for n_ranks in (1, 8, 9, 64):
        assert len({rank_color(rank, n_ranks) for rank in range(n_ranks)}) == n_ranks


@pytest.mark.parametrize("page", ["#ffffff", "#111111"])
def test_causes_stand_out_from_the_page(page):
    assert min(contrast(look.color, page) for look in CAUSE_LOOKS.values()) >= 2.4


@pytest.mark.parametrize("sight", SIGHT)
def test_families_of_causes_stay_apart_for_every_kind_of_sight(sight):
    seen = [lab(np.array(SIGHT[sight]) @ linear(color)) for color in {look.color for look in CAUSE_LOOKS.values()}]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) >= 15
