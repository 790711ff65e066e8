"""The usual wrong factors of gradients and losses, by the mistake behind each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

_CLOSE = 2e-3  # relative; closer than any two factors that are told apart


@dataclass(frozen=True)
class Counts:
    """What a wrong factor may be made of.

    Attributes:
        n_micro_batches: in a step.
        n_rows: of the batch.
        n_tokens: labels in the batch.
        n_replicas: data-parallel copies.
    """

    n_micro_batches: int = 1
    n_rows: int = 0
    n_tokens: int = 0
    n_replicas: int = 1


class Factor(NamedTuple):
    """A number that gradients are wrong by.

    Attributes:
        value: it.
        words: what it equals, or "".
        advice: what is to be looked for.
    """

    value: float
    words: str
    advice: str

    def sentence(self, what: str) -> str:
        """What is wrong by it, and what would do."""
        if self.value < 0:
            return f"{what} have the other sign, and {-self.value:.4g} times the size; {self.advice}"
        size, way = (self.value, "large") if self.value > 1 else (1 / self.value, "small")
        words = f" = {self.words}" if self.words else ""
        return f"{what} are {size:.6g}{words} times too {way}; {self.advice}"


def recognise(ratio: float, counts: Counts) -> Factor:
    """What a ratio of ours to the reference comes from; without words if it is none of the usual."""
    known = [
        (value, words, advice) for value, words, advice in _usual(counts) if math.isclose(value, ratio, rel_tol=_CLOSE)
    ]
    if not known:
        return Factor(ratio, "", "look for a factor on the loss, or for gradients that are left from before")
    value = known[0][0]
    words = " = ".join(dict.fromkeys(words for _, words, _ in known if words))
    return Factor(value, words, ", or ".join(dict.fromkeys(advice for _, _, advice in known)))


def _usual(counts: Counts) -> list[tuple[float, str, str]]:
    m, t, n, d = counts.n_micro_batches, counts.n_tokens, counts.n_rows, counts.n_replicas
    twice = "they are divided twice: set scale_grads=False where the loss is divided already"
    kept = "kept gradients are divided again in every step: zero_grad() in each, or scale_grads=False"
    found: list[tuple[float, str, str]] = [
        (2, "", "backward ran twice or the step before was kept: zero_grad() before each step"),
        (1 / 2, "", "something is halved: an average over two where a sum is meant"),
        (-1, "", "the loss is maximised"),
    ]
    if m > 1:
        found += [
            (m, "number of micro-batches", "divide each micro-batch's loss by n_micro_batches, or scale_grads=True"),
            (1 / m, "number of micro-batches", f"{twice}, or zero_grad() before eval(), which divides what it finds"),
            (m**2, "number of micro-batches squared", "the loss is multiplied where it should be divided"),
            (
                1 / m**2,
                "number of micro-batches squared",
                "loss, gradients and optimizer each divide: keep one of them",
            ),
            (1 + 1 / m, "1 + 1/number of micro-batches", kept),
            ((1 + 1 / m) / 2, "2 ÷ (1 + 1/number of micro-batches)", kept),
        ]
    summed = 'the loss sums (reduction="sum") and is divided only after backward: divide it before'
    for count, words in ((t, "number of tokens"), (n, "number of rows")):
        if count:
            found += [
                (count, words, summed),
                (1 / count, words, "the loss is an average already and is divided again"),
                (count / m, f"{words} of a micro-batch", 'the loss sums (reduction="sum"): use reduction="mean"'),
                (m / count, f"{words} of a micro-batch", "the loss is an average already and is divided again"),
            ]
    if d > 1:
        found += [
            (d, "number of replicas", "they are summed over data-parallel replicas: average them"),
            (1 / d, "number of replicas", "they are averaged over replicas that each hold a share: sum them"),
        ]
    return found
