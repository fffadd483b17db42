"""Random numbers as a function of what they are for: the same on every backend, device and batch.

A counter is mixed by a hash whose every output bit depends on every input bit (the finaliser of MurmurHash3
with Wellons' constants), as counter-based generators do (Salmon et al. 2011).
"""

from keras import ops

__all__ = ["mix", "mix_halves", "uniforms"]

_GOLDEN = 0x9E3779B9  # 2^32 / golden ratio, odd: spreads counters over all bits


def _scramble(x):
    """Mix the bits of uint32."""
    for shift, factor in ((16, 0x21F0AAAD), (15, 0xD35A2D97)):
        x = ops.bitwise_xor(x, ops.bitwise_right_shift(x, ops.cast(shift, "uint32")))
        x = x * ops.cast(factor, "uint32")
    return ops.bitwise_xor(x, ops.bitwise_right_shift(x, ops.cast(15, "uint32")))


def mix(x, salt):
    """Return new int32 seeds from int32 `x`, other ones for each `salt`, a Python int."""
    return mix_halves(x, salt & 0xFFFFFFFF, (salt >> 32) & 0xFFFFFFFF)


def mix_halves(x, low, high):
    """Do as `mix` for a salt that comes as its two halves of 32 bits: integers, or uint32 as `x` is."""
    mixed = ops.cast(x, "uint32") * ops.cast(_GOLDEN, "uint32")
    for part in (low, high):
        mixed = _scramble(ops.bitwise_xor(mixed, ops.cast(part, "uint32")))
    return ops.cast(mixed, "int32")


def uniforms(seeds, samples, length):
    """Return numbers in [0, 1), a function of seed, sample and step alone.

    Args:
        seeds: int32 `[B]`.
        samples: W.
        length: L.

    Returns:
        float32 `[B, W, L]`.
    """
    bits = ops.reshape(ops.cast(seeds, "uint32"), (-1, 1, 1))
    sample = ops.reshape(ops.cast(ops.arange(samples), "uint32"), (1, -1, 1))
    step = ops.reshape(ops.cast(ops.arange(length), "uint32"), (1, 1, -1))
    # One after the other, so that seed, sample and step are not interchangeable; 0 would scramble to 0.
    for part in (ops.cast(_GOLDEN, "uint32"), sample, step):
        bits = _scramble((bits + part) * ops.cast(_GOLDEN, "uint32"))
    # 24 bits, so that no number rounds to 1.
    high = ops.bitwise_right_shift(bits, ops.cast(8, "uint32"))
    return ops.cast(ops.cast(high, "int32"), "float32") * (1.0 / (1 << 24))
