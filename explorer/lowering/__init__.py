"""Program → Program: the backward cut in two, sends and receives added, and their order checked or changed by hand."""

from explorer.lowering.add import add_messages
from explorer.lowering.check import check_messages
from explorer.lowering.edit import Edit, Edits, move
from explorer.lowering.groups import group_messages, one_group_per_peer
from explorer.lowering.report import Cure, MessageReport
from explorer.lowering.split import split_backward
from explorer.lowering.updates import add_updates

__all__ = [
    "Cure",
    "Edit",
    "Edits",
    "MessageReport",
    "add_messages",
    "add_updates",
    "check_messages",
    "group_messages",
    "move",
    "one_group_per_peer",
    "split_backward",
]
