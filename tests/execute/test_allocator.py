"""Memory by an allocator's counter, with a counter made of what autograd holds: there is no GPU here."""

from __future__ import annotations

import numpy as np
from torch import nn

import explorer as ex
from explorer.core import Category
from explorer.execute.allocator import Allocated
from explorer.execute.session import Bench


def test_changes_belong_to_the_action_that_made_them():
    counter = iter([100, 150, 150, 120, 90])
    allocated = Allocated([0, 1], lambda: next(counter))
    allocated.start()
    allocated.keep(0, 3, ())  # +50 by stage 0's forward
    allocated.keep(1, 3, ())  # nothing
    allocated.grew(10)
    allocated.let_go(1, 3)  # −30 in all, of which +10 are gradients: 40 were let go
    allocated.let_go(0, 3)
    changes = [(c.at_end, c.category, c.rank, c.stage, c.micro_batch, c.delta) for c in allocated.changes()]
    held = Category.ACTIVATIONS
    assert changes == [(False, held, 0, 0, 3, 50), (True, held, 1, 1, 3, -40), (True, held, 0, 0, 3, -30)]
    assert allocated.changes() == []


def test_a_run_by_the_allocator_holds_as_many_micro_batches_as_by_autograd(monkeypatch):
    """The counter is autograd's own count of bytes, so both ways must come to the same peaks."""
    layers, inputs, targets = _model_and_batch()
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    reference = ex.execute(program, layers, (inputs, targets), loss=nn.functional.mse_loss)

    def follower(bench, ranks):
        return _Counted(ranks, _Saved(bench, ranks))

    monkeypatch.setattr(Bench, "follower", follower)
    run = ex.execute(program, layers, (inputs, targets), loss=nn.functional.mse_loss)
    np.testing.assert_array_equal(run.peak_activation_bytes, reference.peak_activation_bytes)
    assert run.peak_activation_bytes[0] > run.peak_activation_bytes[1] > 0


class _Saved:
    """What autograd holds, as one number."""

    def __init__(self, bench, ranks):
        from explorer.execute.activations import Activations

        self.activations = Activations(ranks, bench.model.storages())
        self.total = 0

    def __call__(self):
        self.total += sum(change.delta for change in self.activations.changes())
        return self.total


class _Counted(Allocated):
    """An allocator whose counter is `saved`; autograd is watched for it, and nothing else."""

    def __init__(self, ranks, saved):
        super().__init__(ranks, saved)
        self._saved = saved

    def saving(self, stage, micro_batch):
        return self._saved.activations.saving(stage, micro_batch)

    def grew(self, size):
        """The counter knows no gradients."""

    def keep(self, stage, micro_batch, tensors):
        self._saved.activations.keep(stage, micro_batch, tensors)
        super().keep(stage, micro_batch, tensors)

    def let_go(self, stage, micro_batch):
        self._saved.activations.let_go(stage, micro_batch)
        super().let_go(stage, micro_batch)


def _model_and_batch():
    import torch

    generator = torch.Generator().manual_seed(0)
    layers = [nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(4)]
    return layers, torch.randn(8, 8, generator=generator), torch.randn(8, 8, generator=generator)
