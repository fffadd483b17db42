"""A corpus kept as TFRecord files: tokenized once and read many times, or spread over machines."""

import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from keras_seq2seq.data.blocks import BLOCK, Strings, in_blocks, string_tensors
from keras_seq2seq.data.chunks import blocks_of, filled, plain
from keras_seq2seq.data.epochs import Batches
from keras_seq2seq.data.lines import Path
from keras_seq2seq.data.making import check_tokenizers, make_batches
from keras_seq2seq.data.parallel import ParallelText
from keras_seq2seq.data.record_files import NamedDamage, blocks_in, written
from keras_seq2seq.data.report import Report
from keras_seq2seq.text import Tokenizer
from keras_seq2seq.text.integers import integer

_CARD = "records.json"
_FORMAT = 2


def write_records(
    directory: Path,
    text: ParallelText,
    source_tokenizer: Tokenizer | None = None,
    target_tokenizer: Tokenizer | None = None,
    *,
    files: int = 8,
) -> None:
    """Write a corpus into a directory of TFRecord files, for `Records`.

    With tokenizers the files hold ids, without they hold text, to be tokenized while it is read. Pairs
    keep their order; blank ones are counted and left out. The directory is written aside and renamed
    into place when it is whole. Memory does not depend on the size of the corpus.

    Args:
        directory: what to write; it must not exist.
        text: the pairs.
        source_tokenizer: of the source side; None writes text.
        target_tokenizer: of the target side; by default that of the source side.
        files: how many files to write, for as many readers.

    Raises:
        FileExistsError: if there is such a directory, or a file of that name.
        ValueError: if an argument is out of range.
    """
    files = integer("files", files)
    if source_tokenizer is None and target_tokenizer is not None:
        raise ValueError("source_tokenizer must be given if target_tokenizer is, got None.")
    tokenizers = None
    if source_tokenizer is not None:
        tokenizers = source_tokenizer, target_tokenizer or source_tokenizer
        check_tokenizers(source_tokenizer=tokenizers[0], target_tokenizer=tokenizers[1])
    name = os.fspath(directory).rstrip(os.sep)
    if os.path.lexists(name):
        raise FileExistsError(f"{name!r} exists already, choose another directory for records.")
    aside = f"{name}.{os.getpid()}.tmp"
    os.makedirs(aside)
    try:
        card = _write(aside, text, tokenizers, files)
        with open(os.path.join(aside, _CARD), "w", encoding="utf-8") as file:
            json.dump(card, file, indent=2)
        os.rename(aside, name)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


class Records:
    """A corpus that `write_records` wrote; `len(records)` is its number of pairs, blank ones among them.

    Args:
        directory: of the files.
        source_tokenizer: of the source side: the one that the ids are of, or any if the files hold text.
        target_tokenizer: of the target side; by default that of the source side.
        text: the corpus, if it is at hand, to make sure that it is the one that was written; it is read
            through once for that.

    Raises:
        FileNotFoundError: if there are no such files.
        ValueError: if the files are damaged, or were written with other tokenizers or of another text.
    """

    unit = "pairs"

    def __init__(
        self,
        directory: Path,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer | None = None,
        *,
        text: ParallelText | None = None,
    ):
        name = os.fspath(directory)
        card = _read_card(name)
        tokenizers = source_tokenizer, target_tokenizer or source_tokenizer
        check_tokenizers(source_tokenizer=tokenizers[0], target_tokenizer=tokenizers[1])
        for side, tokenizer, expected in zip(
            ("source", "target"), tokenizers, card["tokenizers"] or (None, None), strict=True
        ):
            if expected not in (None, tokenizer.fingerprint):
                raise ValueError(f"{name!r} was written with another {side} tokenizer than {tokenizer!r}.")
        if text is not None and text.fingerprint() != card["corpus"]:
            raise ValueError(f"{name!r} was written of another text than the one given.")
        self._files = [os.path.join(name, file) for file in card["files"]]
        for file, size in zip(self._files, card["sizes"], strict=True):
            _check_file(name, file, size)
        self._count = card["pairs"]
        self._holds_ids, self._tokenizers = card["tokenizers"] is not None, tokenizers
        self.report: Report | None = None

    def __len__(self) -> int:
        return self._count

    def blocks(self) -> tf.data.Dataset:
        """Give the ids in blocks of about a thousand pairs, made by operations of the graph alone.

        An element is: the ids of the sources one after the other, int32; the length of each source, int64;
        the same of the targets; how many pairs there were; how many of them were blank and left out.
        """
        files = tf.data.Dataset.from_tensor_slices(self._files)
        return blocks_in(files, self._tokenizers, self._holds_ids)

    def batches(self, *, service: str | None = None, **options: Any) -> Batches:
        """Give the batches that `ParallelText.batches` gives of the same text with the same options.

        With `service`, the address of the dispatcher of a tf.data service such as
        "grpc://10.0.0.1:5050", its workers read and tokenize the files, and this process makes batches
        of what they send. Each file is read by one worker, and each pair comes once an epoch if no
        worker fails meanwhile. Blocks then come in an order of their own: a seed does not repeat it, and
        an epoch cannot be gone on with. Workers find the files under the same names. Dispatcher and
        workers need the operations of TensorFlow Text, which the first import brings:

            >>> import keras_seq2seq.text
            >>> service = tf.data.experimental.service
            >>> server = service.DispatchServer()  # in one process, which then calls server.join()
            >>> config = service.WorkerConfig(dispatcher_address=server.target.removeprefix("grpc://"))
            >>> worker = service.WorkerServer(config)  # in each of the others, likewise
            >>> ks.data.write_records("records", ks.data.ParallelText("train.en", "train.de"), files=2)
            >>> records = ks.data.Records("records", ks.text.Bytes())
            >>> batches = records.batches(service=server.target, tokens_per_batch=256)
            >>> inputs, labels, weights = next(iter(batches))

        Raises:
            ValueError: if an option is out of range or no pair is kept.
        """
        if service is None:
            blocks = self.blocks()
        else:
            spread = tf.data.experimental.service.distribute(
                tf.data.experimental.service.ShardingPolicy.DYNAMIC, service
            )
            blocks = self.blocks().apply(spread)
        return make_batches(
            self,
            NamedDamage(plain(blocks.prefetch(8)), self._files, self._tokenizers, self._holds_ids),
            **options,
            tokenizers=self._tokenizers,
            reproducible=service is None,
        )


def _write(directory: str, text: ParallelText, tokenizers: Any, files: int) -> dict[str, Any]:
    """Write the files and give what is to be known of them."""
    total = -(-len(text) // BLOCK)
    names = [f"{number:05}-of-{min(files, total):05}.tfrecord" for number in range(min(files, total))]
    digest = hashlib.blake2b(digest_size=16)
    pairs = 0
    blocks = enumerate(_records(text, tokenizers, digest))
    for number, group in itertools.groupby(blocks, lambda block: block[0] * len(names) // total):
        with tf.io.TFRecordWriter(os.path.join(directory, names[number])) as writer:
            for _, (record, count) in group:
                writer.write(record)
                pairs += count
    if pairs != len(text):
        raise ValueError(f"The corpus had {len(text)} pairs and now has {pairs}.")
    return {
        "format": _FORMAT,
        "pairs": pairs,
        "files": names,
        "sizes": [os.path.getsize(os.path.join(directory, name)) for name in names],
        "corpus": digest.hexdigest(),
        "tokenizers": [each.fingerprint for each in tokenizers] if tokenizers else None,
    }


def _records(text: ParallelText, tokenizers: Any, digest: Any) -> Iterator[tuple[bytes, int]]:
    """Give each record and how many pairs it stands for; `digest` is fed with the text on the way."""

    def pairs() -> Iterator[Strings]:
        for pair in text.pairs():
            digest.update(ParallelText.entry(pair))
            yield pair

    if tokenizers:
        for *block, count, blank in blocks_of(pairs, tokenizers, BLOCK).as_numpy_iterator():
            yield written(block, int(count), int(blank)), int(count)
        return
    for block in in_blocks(pairs()):
        kept = filled(block)
        yield written(string_tensors(kept), len(block), len(block) - len(kept)), len(block)


def _read_card(directory: str) -> dict[str, Any]:
    path = os.path.join(directory, _CARD)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{directory!r} holds no records: {_CARD} is missing.")
    try:
        with open(path, encoding="utf-8") as file:
            card = json.load(file)
        good = card["format"] == _FORMAT and _is_whole(card)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path!r} does not describe records.") from error
    if not good:
        raise ValueError(f"{path!r} does not describe records of format {_FORMAT}.")
    return card


def _is_whole(card: dict[str, Any]) -> bool:
    """Tell whether a card holds what `_write` gives."""
    counts = [card["pairs"], *card["sizes"]]
    names = [card["corpus"], *card["files"], *(card["tokenizers"] or [])]
    return (
        all(type(count) is int and count > 0 for count in counts)
        and all(isinstance(name, str) for name in names)
        and isinstance(card["files"], list)
        and len(card["files"]) == len(card["sizes"]) > 0
        and (card["tokenizers"] is None or len(card["tokenizers"]) == 2)
    )


def _check_file(directory: str, path: str, size: int) -> None:
    """Refuse a file that is missing, or not as long as it was written."""
    name = os.path.basename(path)
    if not os.path.isfile(path):
        raise ValueError(f"{directory!r} is damaged: {name!r} is missing.")
    found = os.path.getsize(path)
    if found != size:
        raise ValueError(f"{directory!r} is damaged: {name!r} has {found} bytes, expected {size}.")
