"""A GPT by characters: embedding, transformer blocks, head; trained on the source of Python's standard library."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from explorer.execute.models.ready import ReadyModel, count_parameters, seeded
from explorer.execute.models.text import read_text


class _Shape(NamedTuple):
    width: int
    heads: int
    length: int  # characters in a sequence
    sequences: int  # in a micro-batch
    blocks: int  # in a stage


_SHAPES = {"small": _Shape(64, 2, 64, 8, 1), "medium": _Shape(192, 6, 64, 4, 2), "large": _Shape(512, 8, 64, 4, 3)}
_LARGEST = 50_000_000


class Embedding(nn.Module):
    """Characters and their places as vectors."""

    def __init__(self, n_characters: int, width: int, length: int) -> None:
        super().__init__()
        self.characters = nn.Embedding(n_characters, width)
        self.places = nn.Parameter(torch.randn(length, width) * 0.02)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """(sequences, length) whole numbers → (sequences, length, width)."""
        return self.characters(tokens) + self.places[: tokens.shape[1]]  # type: ignore[no-any-return]


class Attention(nn.Module):
    """Each place looks at those before it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        # without bias: a key's has no effect on the result, and so a gradient of rounding noise alone
        self.look = nn.Linear(width, 3 * width, bias=False)
        self.merge = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(sequences, length, width) → the same shape."""
        n, length, width = x.shape
        query, key, value = self.look(x).view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.merge(seen.transpose(1, 2).reshape(n, length, width))  # type: ignore[no-any-return]


class Block(nn.Module):
    """Attention and a small MLP, each added to what came in."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before_attention, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.before_mlp = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(sequences, length, width) → the same shape."""
        x = x + self.attention(self.before_attention(x))
        return x + self.mlp(self.before_mlp(x))  # type: ignore[no-any-return]


def build(n_stages: int, n_micro_batches: int, size: str) -> ReadyModel:
    """A layer a stage; the first also embeds, the last also names the next character."""
    shape = _SHAPES[size]
    blocks = max(min(shape.blocks, _LARGEST // (12 * shape.width**2 * n_stages)), 1)
    n = shape.sequences * n_micro_batches
    text = read_text(n * (shape.length + 1))
    characters = sorted(set(text))
    place = {character: index for index, character in enumerate(characters)}
    tokens = torch.tensor([place[character] for character in text]).view(n, shape.length + 1)
    with seeded():
        stages = [nn.Sequential(*(Block(shape.width, shape.heads) for _ in range(blocks))) for _ in range(n_stages)]
        stages[0].insert(0, Embedding(len(characters), shape.width, shape.length))
        stages[-1].append(nn.Linear(shape.width, len(characters)))
    count = count_parameters(stages) / 1e6
    return ReadyModel(
        "gpt",
        list(stages),
        (tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()),
        next_character_loss,
        lambda parameters: torch.optim.Adam(parameters, lr=2e-3),
        f"A GPT of {n_stages * blocks} blocks, {count:.1f} million parameters, that learns the source of Python's "
        f"standard library by characters.",
    )


def next_character_loss(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean cross entropy of (sequences, length, characters) against (sequences, length)."""
    return nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())
