"""What a search is made of, checked before anything runs."""

__all__ = ["check_constraints", "check_strategy"]


_PARTS = "width", "begin", "advance", "done", "open_rows", "tokens", "result"


def check_strategy(strategy):
    """Raise a TypeError for what is no strategy, or lacks a part of one."""
    if isinstance(strategy, type) or not hasattr(strategy, "advance"):
        raise TypeError(
            f"strategy must be one of keras_seq2seq.search such as Beam(4), received {strategy!r}."
        )
    lacking = [name for name in _PARTS if not hasattr(strategy, name)]
    if lacking:
        raise TypeError(
            f"strategy must have {', '.join(_PARTS)} as Greedy has, received {strategy!r:.80} "
            f"without {', '.join(lacking)}."
        )


def check_constraints(constraints):
    """Raise a TypeError for what is no list of callables, such as one constraint, which may be a tuple."""
    if callable(constraints) or not isinstance(constraints, (list, tuple)):
        raise TypeError(f"constraints must be a list of callables, received {constraints!r:.80}.")
    for each in constraints:
        if isinstance(each, type) or not callable(each):
            raise TypeError(f"constraints must be a list of callables, received {each!r:.80} in it.")
