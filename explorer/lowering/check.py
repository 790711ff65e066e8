"""Whether a program's messages hang."""

from __future__ import annotations

from explorer.core import (
    RULE_WORDS,
    MessageRule,
    Program,
    chain_of,
    find_circle,
    graph_of,
    is_message,
    meetings_of,
    told,
)
from explorer.errors import ProgramError
from explorer.lowering.cures import cures_of
from explorer.lowering.report import MessageReport


def check_messages(program: Program, messages: MessageRule = "rendezvous") -> MessageReport:
    """Whether `program` hangs where sends and receives meet by the rule `messages`, and what would cure it.

    Args:
        program: with messages (`add_messages` adds them); one of messages alone is fine too.
        messages: "rendezvous": a rank stands at each message until its other end is posted. "buffered": a send is
            over at once. "ordered": a rank's messages leave it for one stream, where they block one another in
            order. "two_streams": as ordered, sends and receives apart. "coalesced": as rendezvous, but a slot's
            messages move together or not at all.

    Raises:
        InputError: if there is no such rule.
        ProgramError: if the program is incomplete, has no messages, or one of them has but one end.

    Example:
        >>> import explorer as ex
        >>> program = ex.add_messages(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2))
        >>> ex.check_messages(program, "ordered").ranks
        (0, 1, 0)
    """
    meetings = meetings_of(program, messages)
    if not is_message(program).any() and len(graph_of(program).messages):
        raise ProgramError("this checks the order of messages; the program has none; add them with add_messages")
    circle = find_circle(meetings)
    if not circle:
        sentence = f"{program.name} does not hang {RULE_WORDS[messages]}"
        return MessageReport(messages, False, (), (), None, sentence, lambda: iter(()))
    cure = next(cures_of(meetings, circle), None)
    advice = f"cure, checked: {cure.text}" if cure else "no reordering, buffer or second stream cures it"
    return MessageReport(
        messages=messages,
        hangs=True,
        chain=chain_of(meetings, circle),
        awaited=tuple(str(program.slot(link.awaited)) for link in circle),
        cure=cure,
        sentence=f"{program.name} hangs {RULE_WORDS[messages]}: {told(meetings, circle)}; {advice}",
        look=lambda: cures_of(meetings, circle),
    )
