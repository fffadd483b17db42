"""What a search is made of, checked before anything runs."""

__all__ = ["check_constraints", "check_strategy"]


def check_strategy(strategy):
    """Raise a TypeError for what is no strategy."""
    if isinstance(strategy, type) or not hasattr(strategy, "advance"):
        raise TypeError(
            f"strategy must be one of keras_seq2seq.search such as Beam(4), received {strategy!r}."
        )


def check_constraints(constraints):
    """Raise a TypeError for what is no list of callables, such as one constraint, which may be a tuple."""
    if callable(constraints) or not isinstance(constraints, (list, tuple)):
        raise TypeError(f"constraints must be a list of callables, received {constraints!r:.80}.")
    for each in constraints:
        if isinstance(each, type) or not callable(each):
            raise TypeError(f"constraints must be a list of callables, received {each!r:.80} in it.")
