"""Apps on models of a few small layers; all are closed afterwards."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import explorer as ex


@pytest.fixture
def open_app():
    """Opens an app on four layers with `last` in the end; all are closed afterwards."""
    opened = []

    def open_one(last=None, *, n_items=32, n_layers=4, layer=nn.Linear, backend="kernel", **settings):
        layers = [layer(8, 8) for _ in range(n_layers)]
        layers[-1] = last or layers[-1]
        batch = torch.ones(n_items, 8), torch.zeros(n_items, 8)
        opened.append(ex.explore(layers, batch=batch, loss=nn.functional.mse_loss, backend=backend, **settings))
        return opened[-1]

    yield open_one
    for app in opened:
        app.close()
        assert app._runner.join(10)
