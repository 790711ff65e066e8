"""Execute a program for real: in this process on a virtual clock for each rank, or in a process for each rank."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

import torch

from explorer.core import Costs, Program
from explorer.errors import ExplorerError, RunError
from explorer.execute._torch import one_rank_group, quiet
from explorer.execute.checkpoint_folder import Start, start_of
from explorer.execute.checkpoint_state import check_type, type_of
from explorer.execute.checks import (
    Loss,
    check_backend,
    check_batch,
    check_clock,
    check_hooks,
    check_links,
    check_model,
    check_program,
    check_real,
    check_split_points,
    check_steps,
    check_timeout,
    count_labels,
)
from explorer.execute.core_time import core_time
from explorer.execute.cutting import cut
from explorer.execute.events import RunEnd, RunStart
from explorer.execute.fault_words import check_faults
from explorer.execute.faults import Fault
from explorer.execute.fit import fit
from explorer.execute.hooks import Hook, Hooks
from explorer.execute.joined import train_joined
from explorer.execute.keeper import keeper
from explorer.execute.losses import check_loss, own_copy
from explorer.execute.parity import Outcome, Parity, compare
from explorer.execute.parity_factors import Counts
from explorer.execute.parity_reference import Whole
from explorer.execute.parity_rounding import rounding_of
from explorer.execute.party import Alone, Party, joined
from explorer.execute.preflight_case import Case
from explorer.execute.preflight_look import advise, refuse
from explorer.execute.preflight_report import Report
from explorer.execute.processes import train_in_processes
from explorer.execute.recorder import Recorder
from explorer.execute.rehearsed import rehearsed
from explorer.execute.run import Run
from explorer.execute.session import Bench, Seeds
from explorer.execute.settings import alone, measured, random_state_kept
from explorer.execute.stages import Chain, CutModel, first_line
from explorer.execute.training import Job, train
from explorer.execute.traits import Watch
from explorer.execute.updates import MakeOptimizer, check_optimizer, make_optimizers

_TRAIN: Mapping[str, Callable[[Job, Bench, Hooks, Any], Outcome]] = {
    "kernel": lambda job, bench, hooks, _: train(job, bench, hooks),
    "processes": lambda job, bench, hooks, _: train_in_processes(job, bench, hooks),
    "torchrun": train_joined,
}


def execute(
    program: Program,
    model: Any,
    batch: Any,
    *,
    loss: Loss | None = None,
    optimizer: MakeOptimizer | None = None,
    n_steps: int = 1,
    backend: str = "kernel",
    links: Costs | None = None,
    split_points: Sequence[str] | None = None,
    hooks: Sequence[Hook] = (),
    clock: Callable[[], float] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    every: int = 1,
    keep_last: int = 3,
    resume: str | PathLike[str] | None = None,
    timeout: float = 30.0,
    faults: Sequence[Fault] = (),
) -> Run:
    """Run `program` on `model` for real, and say when what ran on which rank.

    The model is copied and cut into the program's stages, which torch's own pipeline runtime runs. In the kernel it
    runs them in a group of one rank: every forward and backward really happens, one at a time, in an order of
    dependency. Each measured duration is laid on its rank's virtual clock, messages on the link model. In processes
    each rank runs its stages in a process of its own, with real messages on a real clock; ranks without a core of
    their own then wait for each other's. A hidden warm-up comes before, a comparison with the unpipelined model after.

    The look at the model before and the comparison after happen in the process that calls this, whatever the backend:
    a forward of one micro-batch, and all steps with the model in one piece. So this process needs the memory for that,
    and code of yours that ends its process there, as a fault in C++ does, ends it too. In processes a first forward of
    code other than torch's is, on a CPU, tried in one of them before, and what ends it there is a RunError here; what
    only a backward, a later step or the whole batch would meet, it cannot find.

    A step's loss and gradients are the mean over its micro-batches; each stage has an optimizer of its own, whose
    update follows the step's last slot and is in no makespan.

    While it runs torch uses one thread in the calling thread and garbage is not collected within steps; both are put
    back, and so are random states. Asking glibc to keep freed memory is for good. A process executes one run at a
    time; a second one is refused.

    Args:
        program: any complete one of F, B, I and W, with one weight copy a stage.
        model: a list of layers, an nn.Sequential, or any nn.Module with `split_points`; it is left as it is.
        batch: (inputs, targets), tensors; inputs may be a tuple of them.
        loss: outputs and targets of a micro-batch → one number, averaged over the micro-batch.
        optimizer: parameters → torch optimizer, called once a stage; None to train nothing.
        n_steps: training steps over the same batch.
        backend: "kernel", this process, or "processes", one for each rank on this machine; or "torchrun", where each
            of the processes that torchrun has started, on any machines, calls this alike, and is a rank.
        links: whose latency, bandwidth and, if given, message_bytes the messages take in the kernel; None for free.
        split_points: names of the layers or submodules where a new stage begins.
        hooks: who hears of the run; a Recorder among them is the one the trace comes from. Under torchrun every rank's
            hear of all ranks, between two steps.
        clock: seconds now; None for wall time without what the thread waited while other programs had all cores;
            processes have the machine's own.
        timeout: seconds after which ranks in processes of which nothing is heard are given up; more than the longest
            operation takes.
        checkpoint: a folder for the state after a step: parameters, buffers and the optimizer's, by parameter name.
            Under torchrun rank 0 alone reads and writes, for all: it needs to be on its machine only.
        every: steps from one checkpoint to the next; the last step's is written in any case.
        keep_last: how many checkpoints stay.
        resume: a folder whose latest checkpoint, or a file, this run goes on from, at whatever ranks, chunks and
            schedule; the model gives names and shapes, the optimizer its settings.
        faults: to put into the run on purpose: SlowRank, DelayAction, DelayMessage, FailAction, KillRank; they are
            marks of its trace.

    Raises:
        InputError: if an argument is not as said above; ModelError where model, batch, loss or optimizer are at fault.
        ProgramError: if the program is incomplete, or holds what cannot run in a kernel.
        RunError: if a layer or the loss fails on the way, or a run is under way already; its `trace` holds what ran.
        RunStopped: if a hook stopped it.
        EngineError: if torch lacks what its pipeline runtime needs.

    Example:
        >>> import explorer as ex
        >>> ready = ex.ready_model("mlp", n_stages=4, n_micro_batches=8)
        >>> program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
        >>> run = ex.execute(program, ready.layers, ready.batch, loss=ready.loss)
        >>> bool(run.parity)
        True
    """
    begun = time.perf_counter()
    check_backend(backend)
    check_timeout(timeout)
    check_model(model)
    check_steps(n_steps)
    check_hooks(hooks)
    check_links(links)
    check_real(backend, links=links, clock=clock)
    check_split_points(split_points)
    check_clock(clock)
    check_program(program)
    check_optimizer(optimizer)
    chosen, (inputs, targets) = check_faults(faults, program, n_steps, backend), check_batch(batch, program, loss)
    recorder, listeners = _with_recorder(hooks)
    in_kernel = backend == "kernel"
    with alone(), torch.inference_mode(mode=False), _party(backend, program, model, timeout) as party:
        saved = {"every": every, "keep_last": keep_last, "n_steps": int(n_steps)}
        start = party.decide(lambda: start_of(checkpoint, resume, trains=program.has_backward, **saved))
        job = Job(program, inputs, targets, loss, optimizer, n_steps, links, timeout, begun)
        job = dataclasses.replace(job, optimizer_state=start.optimizer, saving=start.saving, faults=chosen)
        if backend == "processes":
            keeper().start()  # it imports torch while the model is looked at here
        group = one_rank_group() if in_kernel else contextlib.nullcontext()
        with measured(), group, quiet(), core_time() as own:
            job = rehearsed(job, model, split_points) if backend == "processes" else job
            bench, reference, report = _prepare(job, model, split_points, listeners, clock or own, backend, start)
            with _told(recorder, listeners, RunStart(program, n_steps, backend, "virtual" if in_kernel else "real")):
                outcome = _TRAIN[backend](job, bench, listeners, party)
                parity = party.decide(lambda: _check(job, reference, outcome, listeners))
    return dataclasses.replace(_run(recorder, bench.model, outcome, parity, report), first_step=start.first_step)


def _party(backend: str, program: Program, model: Any, timeout: float) -> contextlib.AbstractContextManager[Party]:
    """Who takes part."""
    if backend == "torchrun":
        return joined(program.n_ranks, model, timeout)
    return contextlib.nullcontext(Alone())


@contextlib.contextmanager
def _told(recorder: Recorder, hooks: Hooks, start: RunStart) -> Iterator[None]:
    """Tell of a run's beginning and end, and give what it fails of the trace until then."""
    error: BaseException | None = None
    try:
        hooks.run_start(start)
        yield
    except BaseException as raised:
        error = raised
        if isinstance(raised, RunError):
            raised.trace = recorder.trace()
        raise
    finally:
        hooks.run_end(RunEnd(error))


def _with_recorder(hooks: Sequence[Hook]) -> tuple[Recorder, Hooks]:
    """The caller's recorder or a new one, heard before all others."""
    recorder = next((hook for hook in hooks if isinstance(hook, Recorder)), None) or Recorder()
    return recorder, Hooks([recorder, *(hook for hook in hooks if hook is not recorder)])


def _prepare(
    job: Job,
    model: Any,
    split_points: Sequence[str] | None,
    hooks: Hooks,
    clock: Callable[[], float],
    backend: str,
    start: Start,
) -> tuple[Bench, Whole, Report]:
    """Cut two copies, and see whether their parts and the loss fit."""
    program = job.program
    copy, other = (
        cut(model, program.n_stages, split_points=split_points, sample=job.inputs[0]) for _ in ("run", "reference")
    )
    if start.resumed is not None:
        start.resumed.load_into(copy)
        start.resumed.load_into(other)
    with random_state_kept(), torch.set_grad_enabled(program.has_backward), Watch(copy) as watch:
        samples, output = fit(copy, job.inputs[0], program)
        if job.loss is not None and job.target is not None:
            check_loss(own_copy(job.loss), output, job.target, trains=program.has_backward)
    found = watch.traits
    report = advise(Case(program, copy, job.inputs, job.targets, own_copy(job.loss), samples, output, found, backend))
    refuse(report)
    del output
    made = make_optimizers(job.optimizer, other)  # one that cannot be made is told of before anything runs
    if start.resumed is not None:
        check_type(start.resumed, type_of(made.values()))
    seeds = Seeds(start.seed, start.first_step) if found.random else None
    for stage in (*copy.stages, *other.stages):
        if isinstance(stage, Chain):
            stage.pulse = hooks.pulse
    rounding = rounding_of(other, job.inputs, epsilon=found.epsilon, depth=found.depth)
    by_micro_batch = found.random or found.statistics
    batch = other, job.inputs, job.targets
    whole = Whole(*batch, own_copy(job.loss), job.optimizer, seeds, by_micro_batch, rounding, job.optimizer_state)
    return Bench(copy, samples, own_copy(job.loss), clock, seeds), whole, report


def _check(job: Job, reference: Whole, outcome: Outcome, hooks: Hooks) -> Parity:
    """Do the same with the model in one piece, and compare."""
    try:
        if job.program.has_backward:
            theirs, sentence = reference.train(job.n_steps, outcome.losses[0], hooks.pulse)
        else:
            theirs, sentence = reference.infer(job.n_steps, hooks.pulse)
    except ExplorerError:
        raise
    except Exception as error:
        fed, advice = "the same micro-batches", "mend it there"
        if not reference.by_micro_batch:
            fed, advice = "the whole batch at once", "let model and loss take any number of samples, as view(len(x), …)"
        raise RunError(
            f"a run is compared with the model in one piece; fed {fed}, that failed: {first_line(error)}; {advice}"
        ) from error
    return compare(outcome, theirs, sentence, rounding=reference.rounding, counts=_counts(job))


def _counts(job: Job) -> Counts:
    """What a wrong factor may be made of."""
    return Counts(len(job.inputs), sum(len(values[0]) for values in job.inputs), count_labels(job.targets))


def _run(recorder: Recorder, model: CutModel, outcome: Outcome, parity: Parity, report: Report) -> Run:
    trace = recorder.trace()
    return Run(
        trace=trace,
        predicted=recorder.predicted() or trace,
        losses=list(outcome.losses),
        gradients=outcome.gradients,
        outputs=outcome.output,
        parity=parity,
        parity_worst=parity.worst,
        reference=parity.reference,
        started=recorder.start,
        recording=recorder.recording,
        preflight=report,
        _state=model.state(),
    )
