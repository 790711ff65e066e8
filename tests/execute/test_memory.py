"""Bytes held, in units of what one micro-batch leaves on a stage."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import explorer as ex
from explorer.core import Category

MSE = nn.functional.mse_loss
ROWS, WIDTH, FLOAT = 2, 8, 4
# a stage of Linear and Tanh keeps its input and Tanh's output; Linear's weight is a parameter
UNIT = 2 * ROWS * WIDTH * FLOAT
PARAMETERS = (WIDTH * WIDTH + WIDTH) * FLOAT


@pytest.mark.parametrize(("name", "held"), [("1f1b", [4, 3, 2, 1]), ("gpipe", [8, 8, 8, 8]), ("naive", [1, 1, 1, 1])])
def test_activation_peaks_are_the_micro_batches_in_flight(name, held, make_layers, batch):
    program = ex.schedule(name, n_ranks=4, n_micro_batches=8)
    run = ex.execute(program, make_layers(4), batch, loss=MSE, n_steps=2)
    peaks = run.peak_activation_bytes.tolist()
    assert peaks[:3] == [UNIT * n for n in held[:3]]
    # the last stage also keeps what the loss saved: the targets and no more
    assert peaks[3] == held[3] * (UNIT + ROWS * WIDTH * FLOAT)
    assert run.trace.peak_in_flight.tolist() == held


def test_every_step_gives_back_what_it_took(split_program, make_layers, batch):
    trace = ex.execute(split_program, make_layers(2), batch, loss=MSE, n_steps=2).trace
    for category in (Category.ACTIVATIONS, Category.WEIGHT_GRADIENTS):
        for step in (0, 1):
            rows = (trace.memory.category == category) & (trace.memory.step == step)
            assert rows.any()
            assert trace.memory.delta[rows].sum() == 0


def test_the_prediction_of_a_run_knows_what_its_optimizers_keep(program, make_layers, batch):
    run = ex.execute(program, make_layers(2), batch, loss=MSE, optimizer=torch.optim.Adam, n_steps=3)
    assert run.predicted.costs.optimizer_bytes.sum() == 2 * (2 * PARAMETERS + 2 * FLOAT)
    # gradients are there from the start of a modelled step, in the run from the first backward on
    assert ex.peak_bytes(run.predicted).tolist() == pytest.approx(ex.peak_bytes(run.trace).tolist(), rel=0.1)


def test_parameters_gradients_and_optimizer_state_are_counted(program, make_layers, batch):
    adam = torch.optim.Adam
    memory = ex.execute(program, make_layers(2), batch, loss=MSE, optimizer=adam, n_steps=2).trace.memory
    last = memory.take((memory.step == 1) & (memory.rank == 1))

    def held(category):
        return int(last.delta[last.category == category].sum())

    assert held(Category.PARAMETERS) == PARAMETERS
    assert held(Category.GRADIENTS) == PARAMETERS
    assert held(Category.OPTIMIZER) == 2 * PARAMETERS + 2 * FLOAT  # two moments, and a step count a tensor


def test_gradients_wait_between_input_and_weight_part(split_program, make_layers, batch):
    memory = ex.execute(split_program, make_layers(2), batch, loss=MSE).trace.memory
    waiting = memory.take((memory.category == Category.WEIGHT_GRADIENTS) & (memory.rank == 0))
    # stage 0 leaves all its work to W, and keeps the gradient of its output for it
    assert sorted(set(waiting.delta.tolist())) == [-4 * WIDTH * FLOAT, 4 * WIDTH * FLOAT]


def test_calibrated_costs_know_the_bytes(program, make_layers, batch):
    costs = ex.execute(program, make_layers(2), batch, loss=MSE).trace.costs
    message = 4 * WIDTH * FLOAT
    # the last stage has targets besides its own input and output
    assert costs.activation_bytes.tolist() == [2 * message, 3 * message]
    assert costs.parameter_bytes.tolist() == [PARAMETERS] * 2
    assert costs.message_bytes.tolist() == [4 * WIDTH * FLOAT] * 2
