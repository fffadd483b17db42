"""NumPy references in float64, written from the papers and sharing no code with the library."""

import math
from collections.abc import Sequence

import numpy as np

__all__ = [
    "Weights",
    "alibi_slopes",
    "attention",
    "log_softmax",
    "multi_head",
    "randomize",
    "rotary",
    "sinusoids",
    "softmax",
    "t5_bucket",
]

Weights = dict[str, np.ndarray]


def randomize(layer, scale: float = 0.3, seed: int = 0) -> None:
    """Draw every variable anew, so that zeros, ones and symmetries of the start cannot hide a fault.

    Vectors keep their start and get noise; matrices are all noise, so nothing depends on how they started.
    """
    generator = np.random.default_rng(seed)
    for variable in layer.trainable_variables:
        noise = generator.normal(0.0, scale, variable.shape)
        variable.assign(noise if len(variable.shape) > 1 else np.asarray(variable) + noise)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def log_softmax(x: np.ndarray) -> np.ndarray:
    x = np.asarray(x, "float64")
    top = x.max(-1, keepdims=True)
    return x - top - np.log(np.exp(x - top).sum(-1, keepdims=True))


def attention(q, k, v, mask=None, bias=None) -> tuple[np.ndarray, np.ndarray]:
    """Attend with `[..., T, K]`, `[..., S, K]`; a query that may attend to nothing gets zeros."""
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if bias is not None:
        scores = scores + bias
    if mask is None:
        mask = np.ones(scores.shape, bool)
    mask = np.broadcast_to(mask, scores.shape)
    weights = np.where(mask, softmax(np.where(mask, scores, -1e30)), 0.0)
    return weights @ v, weights


def multi_head(x, key, value, weights: Weights, heads: int, groups: int, mask=None, bias=None, rotate=None):
    """Project, attend head by head and project back.

    `weights` has query, key, value and output as `[Din, Dout]`, and their biases as query_bias and so on.
    """

    def project(name: str, inputs: np.ndarray, parts: int) -> list[np.ndarray]:
        out = inputs @ weights[name] + weights.get(f"{name}_bias", 0.0)
        return np.split(out, parts, axis=-1)  # each [B, T, K]

    q, k, v = project("query", x, heads), project("key", key, groups), project("value", value, groups)
    if rotate is not None:
        q, k = [rotate(head) for head in q], [rotate(head) for head in k]
    contexts, scores = [], []
    for h in range(heads):
        group = h // (heads // groups)
        context, weight = attention(q[h], k[group], v[group], mask, None if bias is None else bias[:, h])
        contexts.append(context)
        scores.append(weight)
    output = np.concatenate(contexts, -1) @ weights["output"] + weights.get("output_bias", 0.0)
    return output, np.stack(scores, 1)  # [B, T, D], [B, H, T, S]


def sinusoids(length: int, size: int, base: float = 10000.0) -> np.ndarray:
    """Vaswani et al. 2017, section 3.5, the published columns with all sines first."""
    table = np.zeros((length, size))
    for p in range(length):
        for column in range(size):
            angle = p / base ** (2 * (column // 2) / size)
            table[p, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return np.concatenate([table[:, 0::2], table[:, 1::2]], -1)


def rotary(x: np.ndarray, positions: Sequence[int], base: float = 10000.0) -> np.ndarray:
    """Su et al. 2021: each pair (i, i + K/2) as a complex number, times exp(i * position * frequency)."""
    half = x.shape[-1] // 2
    pairs = x[..., :half] + 1j * x[..., half:]
    frequency = np.array([base ** (-2 * i / x.shape[-1]) for i in range(half)])
    turned = pairs * np.exp(1j * np.asarray(positions)[:, None] * frequency)
    return np.concatenate([turned.real, turned.imag], -1)


def alibi_slopes(heads: int) -> list[float]:
    """Press et al. 2022, the published code's recursion."""

    def power_of_two(n: int) -> list[float]:
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(heads).is_integer():
        return power_of_two(heads)
    closest = 2 ** math.floor(math.log2(heads))
    return power_of_two(closest) + alibi_slopes(2 * closest)[0::2][: heads - closest]


def t5_bucket(distance: int, bidirectional: bool, buckets: int = 32, maximum: int = 128) -> int:
    """Raffel et al. 2020: the bucket of key position - query position."""
    offset = 0
    if bidirectional:
        buckets //= 2
        offset = buckets if distance > 0 else 0
        n = abs(distance)
    else:
        n = max(-distance, 0)
    exact = buckets // 2
    if n < exact:
        return offset + n
    # In float32, as the published code computes it: powers of two lie exactly on a border.
    log = np.log(np.float32(n) / exact) / np.float32(math.log(maximum / exact))
    return offset + min(exact + int(np.float32(log * (buckets - exact))), buckets - 1)
