"""Run a cell over time, as one loop in the graph.

Legend: B batch, T length, G what a cell projects its input to, U units.
"""

from keras import ops

__all__ = ["run_cell", "scan_rows"]


def scan_rows(advance, states, xs, mask=None):
    """Carry states over the time axis; a masked step leaves them as they are.

    Args:
        advance: a function from (states, x `[B, G]`) to states.
        states: tuple of `[B, ...]`.
        xs: `[B, T, G]`.
        mask: bool `[B, T]`, True for real steps, or None.

    Returns:
        The states after all steps, and the states after each step, `[B, T, ...]`.
    """
    xs = ops.transpose(xs, (1, 0, 2))
    if mask is not None:
        # As one more column: a scan over several inputs of unknown length fails on TensorFlow.
        column = ops.cast(ops.expand_dims(ops.transpose(mask), -1), xs.dtype)
        xs = ops.concatenate([xs, column], axis=-1)

    def step(states, x):
        if mask is None:
            new = tuple(advance(states, x))
        else:
            real = x[:, -1:] > 0
            new = advance(states, x[:, :-1])
            new = tuple(ops.where(real, after, before) for after, before in zip(new, states, strict=True))
        return new, new

    last, every = ops.scan(step, tuple(states), xs)
    return tuple(last), tuple(ops.transpose(x, (1, 0, 2)) for x in every)


def run_cell(cell, x, states=None, mask=None, reverse=False, keep=None):
    """Run a cell over whole sequences; all inputs are projected in one product.

    Args:
        cell: a `RecurrentCell`.
        x: `[B, T, D]`.
        states: tuple of `[B, U]`; default zeros.
        mask: bool `[B, T]`, True for real steps, or None. Padding may stand anywhere.
        reverse: run from the end to the beginning.
        keep: `[B, U]`, multiplies the output wherever it goes back into the cell (recurrent dropout), or
            None.

    Returns:
        The states at each row's last real step, and the outputs `[B, T, U]`.
    """
    if states is None:
        zero = ops.zeros((ops.shape(x)[0], cell.units), dtype=x.dtype)
        states = (zero,) * cell.states
    projected = cell.project(x)
    if reverse:
        projected = ops.flip(projected, axis=1)
        mask = None if mask is None else ops.flip(mask, axis=1)

    def advance(states, x):
        return cell.advance(x, states if keep is None else (states[0] * keep, *states[1:]))

    last, every = scan_rows(advance, states, projected, mask)
    outputs = ops.flip(every[0], axis=1) if reverse else every[0]
    return last, outputs
