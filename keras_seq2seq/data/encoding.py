"""How text becomes rows of ids: the one rule for training and for serving.

A source is its tokens and EOS. A target is BOS, its tokens and EOS; a forced prefix leaves out EOS.
All functions run in eager mode and in any graph.
"""

from typing import Any

import tensorflow as tf

from keras_seq2seq.text import BOS_ID, EOS_ID, PAD_ID, Tokenizer
from keras_seq2seq.text.integers import integer


def encode_sources(tokenizer: Tokenizer, texts: Any, max_length: int | None = None) -> Any:
    """Turn text into the source of a batch.

    Args:
        tokenizer: the tokenizer of the source side.
        texts: strings `[B]`.
        max_length: ids to keep per row, the EOS among them; a longer text is cut and still ends in EOS.

    Returns:
        int32 `[B, S]`, pads at the end; S is the longest row. Empty text is EOS alone.
    """
    return source_rows(tokenizer, texts, max_length).to_tensor(PAD_ID)


def encode_prefixes(tokenizer: Tokenizer, texts: Any, max_length: int | None = None) -> Any:
    """Turn text into forced target prefixes: int32 `[B, P]`, BOS first, pads at the end, no EOS.

    `max_length` is the number of ids to keep per row, the BOS among them. Empty text is BOS alone.
    """
    return prefix_rows(tokenizer, texts, max_length).to_tensor(PAD_ID)


def source_rows(tokenizer: Tokenizer, texts: Any, max_length: int | None = None) -> Any:
    """Give the rows of `encode_sources` as ragged int32 `[B, None]`: tokens, EOS."""
    return _add(_cut(tokenizer.tokenize(texts), max_length), after=EOS_ID)


def prefix_rows(tokenizer: Tokenizer, texts: Any, max_length: int | None = None) -> Any:
    """Give the rows of `encode_prefixes` as ragged int32 `[B, None]`: BOS, tokens."""
    return _add(_cut(tokenizer.tokenize(texts), max_length), before=BOS_ID)


def target_rows(tokenizer: Tokenizer, texts: Any) -> Any:
    """Give ragged int32 `[B, None]`: BOS, tokens, EOS.

    The inputs of training are all but the last id of a row, its labels all but the first.
    """
    return _add(tokenizer.tokenize(texts), before=BOS_ID, after=EOS_ID)


def _cut(rows: Any, max_length: int | None) -> Any:
    """Leave room for one control token in `max_length` ids."""
    if max_length is None:
        return rows
    return rows[:, : integer("max_length", max_length) - 1]


def _add(rows: Any, before: int | None = None, after: int | None = None) -> Any:
    count = rows.nrows(out_type=tf.int32)
    parts = [tf.fill([count, 1], before)] if before is not None else []
    parts.append(rows)
    if after is not None:
        parts.append(tf.fill([count, 1], after))
    return tf.concat(parts, axis=1)
