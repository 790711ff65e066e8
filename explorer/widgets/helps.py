"""What each control is for, by its label: shown when the pointer rests on that."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

HELP: Mapping[str, str] = MappingProxyType(
    {
        "Model": "What Run trains, cut into as many stages as the schedule has",
        "Schedule": "Who does which forward or backward when",
        "Options": "Further arguments of the schedule",
        "Ranks": "Devices in the pipeline",
        "Chunks a rank": "Stages that each rank holds",
        "Micro-batches": "Parts that a batch is cut into, which pass through the stages one behind the other",
        "Steps of a run": "Training steps that Run does",
        "Forward, ms": "A rank's whole share of the model forward, for one micro-batch",
        "Backward ÷ forward": "How many times as long the backward takes",
        "Latency, ms": "Time that an empty message takes from rank to rank",
        "Bandwidth": "Bytes a second between two ranks",
        "Message, MB": "Size of what a stage sends to the next for one micro-batch",
        "Warm-up": "How many forwards more each rank does first than the rank behind it",
        "W ÷ backward": "Share of a backward that is W, the weights' gradients, where a schedule splits it from I",
        "F with B ÷ both": "How long a forward begun together with a backward takes, as a share of both one by one",
        "Recompute ÷ F": "Forward run again before its backward, as a share of the forward; 0: activations are kept",
        "Recompute for": "Which parts of a split backward need the forward again",
        "Fixed, ms": "Time that every action takes besides, as for starting it",
        "Jitter": "Standard deviation of each action's time, as a share of it",
        "Seed": "Of the jitter: another number draws other times",
        "Slow rank": "The rank that is slower than the others",
        "Slow rank takes ×": "How many times as long everything takes on it; 1: as on the others",
        "Long micro-batch": "The micro-batch that is longer than the others",
        "Long one takes ×": "How many times as long it takes on every stage; 1: as the others",
        "Late action": "One action that takes longer once: stage, F or B, micro-batch",
        "Late by, ms": "How much longer that action takes",
        "Optimizer, ms": "A rank's optimizer step, behind the makespan",
        "Ranks a node": "How many neighbours share a node's one way in and one way out",
        "Links shared": "How messages that are on a link at once share it",
        "Messages": "How sends and receives meet: whether a rank waits at them, and in which order they pass",
        "Activations, MB": "What a micro-batch keeps of a rank's share from F to the end of its backward",
        "Kept for W": "Share of the activations that stays from the end of I to the end of W",
        "Rebuilt, MB": "What a backward holds besides while it has its forward again",
        "Parameters, MB": "Of a rank's share of the model; its gradients are as large",
        "Optimizer × param.": "What the optimizer keeps, as a multiple of the parameters",
        "Device memory, GB": "Of each rank's device; what needs more is told of",
    }
)
