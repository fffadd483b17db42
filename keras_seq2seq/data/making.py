"""From blocks of ids to batches: what all corpora share."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_seq2seq.data.batching import TokenBatches
from keras_seq2seq.data.buckets import BucketRule, budget, limits_of
from keras_seq2seq.data.chunks import Chunks, Corpus
from keras_seq2seq.data.epochs import Batches
from keras_seq2seq.data.resampling import Resampler
from keras_seq2seq.text import SubwordSampling, Tokenizer


def check_tokenizers(**tokenizers: Any) -> None:
    """Refuse what is no tokenizer of ours, by the name of the argument."""
    for name, tokenizer in tokenizers.items():
        if not isinstance(tokenizer, Tokenizer):
            hint = "; ks.text.KerasHub takes KerasHub's" if hasattr(tokenizer, "detokenize") else ""
            raise ValueError(f"{name} must be a Tokenizer, got {tokenizer!r}{hint}.")


def make_batches(
    corpus: Corpus,
    blocks: tf.data.Dataset,
    *,
    tokens_per_batch: int | None = None,
    sentences_per_batch: int | None = None,
    max_length: int | None = None,
    max_source_length: int | None = None,
    max_target_length: int | None = None,
    buckets: Sequence[int | tuple[int, int]] | None = None,
    max_buckets: int = 6,
    width_multiple: int = 8,
    fixed_shapes: bool = False,
    shuffle: bool = True,
    shuffle_buffer: int = 100_000,
    seed: int | None = None,
    count: bool = True,
    sampling: SubwordSampling | None = None,
    tokenizers: Sequence[Tokenizer] = (),
    reproducible: bool = True,
) -> Batches:
    """Make batches of blocks, as `blocks_of` gives them; `ParallelText.batches` explains the options.

    `tokenizers` are those of the blocks; `reproducible=False` says that the blocks come in another order
    every time.
    """
    if sampling is not None and not isinstance(sampling, SubwordSampling):
        raise ValueError(f"sampling must be a SubwordSampling, got {sampling!r}.")
    tokens, sentences = budget(tokens_per_batch, sentences_per_batch)
    limits = limits_of((max_source_length, max_target_length), max_length, buckets, tokens)
    rule = BucketRule(tokens, sentences, limits, buckets, max_buckets, width_multiple)
    chunks = Chunks(corpus, blocks, 2, limits, shuffle_buffer)
    return Batches(
        TokenBatches(
            chunks,
            rule,
            fixed_shapes=fixed_shapes,
            shuffle=shuffle,
            seed=seed,
            count=count,
            reproducible=reproducible,
            resampler=Resampler(sampling, tokenizers, limits) if sampling else None,
        )
    )
