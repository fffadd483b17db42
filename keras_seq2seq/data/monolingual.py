"""Text without a source side, for language models: as one stream, or line by line."""

import io
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Self

from keras_seq2seq.data.batching import TokenBatches
from keras_seq2seq.data.buckets import BucketRule, budget, limits_of
from keras_seq2seq.data.chunks import Chunks, blocks_of
from keras_seq2seq.data.epochs import Batches
from keras_seq2seq.data.lines import Path, cut, expand, read_text, read_texts
from keras_seq2seq.data.making import check_tokenizers
from keras_seq2seq.data.report import Report
from keras_seq2seq.data.windows import ConsecutiveBlocks, RandomBlocks, stream_of
from keras_seq2seq.text import Tokenizer
from keras_seq2seq.text.integers import integer

_PIECE = 1 << 15  # characters of a piece, at least

Read = Callable[[], Iterator[str]]  # the lines, each with its end


class Text:
    """A text, read from files whenever it is needed; `len(text)` is its number of characters.

    The files are read through once at the start and never kept in memory. Line feeds are part of the
    text, and are the only line ends: CR LF counts as one. A byte order mark is dropped, and invalid
    UTF-8 becomes U+FFFD. A file without a line feed at its end gets one if another file follows.

    Args:
        path: of the text, a pattern such as "part-*.txt.gz", or a list of them, which are read one
            after the other; gzip if a name ends in .gz. What a pattern finds is sorted.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a gzip file is damaged, or there is no text at all.
    """

    def __init__(self, path: Path | Sequence[Path]):
        paths = expand(path)
        self._use(lambda: read_texts(paths), ", ".join(map(str, paths)))

    @classmethod
    def from_string(cls, text: str) -> Self:
        """Take a text that is in memory; the same rules hold for it."""
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {text!r}.")
        content = text.encode("utf-8", "surrogatepass")
        made = cls.__new__(cls)
        made._use(lambda: read_text(io.BytesIO(content)), "text")
        return made

    def split(self, share: float) -> tuple[Self, Self]:
        """Cut the text in two: the first `int(share * len(text))` characters, and the rest.

        The cut is where it is, in the middle of a line, too.

        Raises:
            ValueError: if a part would be empty.
        """
        if not isinstance(share, (int, float)) or not math.isfinite(share):
            raise ValueError(f"share must be a number from 0 to 1, got {share!r}.")
        place = int(share * len(self))
        if not 0 < place < len(self):
            raise ValueError(f"share must leave text on both sides of {len(self)} characters, got {share}.")
        parts = type(self).__new__(type(self)), type(self).__new__(type(self))
        read = self._read
        parts[0]._use(lambda: cut(read(), 0, place), "the first part")
        parts[1]._use(lambda: cut(read(), place, len(self)), "the second part")
        return parts

    def _use(self, read: Read, name: str) -> None:
        characters = lines = 0
        for line in read():
            characters += len(line)
            lines += 1
        if not characters:
            raise ValueError(f"There is no text in {name}.")
        self._read, self._length = read, characters
        self._lines = _Lines(read, lines)

    def __len__(self) -> int:
        return self._length

    @property
    def report(self) -> Report | None:
        """What became of the lines in `batches`; None before."""
        return self._lines.report

    def lines(self) -> Iterator[str]:
        """Iterate over the lines, without their ends."""
        return (line.removesuffix("\n") for line in self._read())

    def pieces(self) -> Iterator[str]:
        """Iterate over the text in long pieces of whole lines, line feeds and all.

        `"".join(text.pieces())` is the text. A vocabulary for `blocks` is learnt from these.
        """
        parts, size = [], 0
        for line in self._read():
            parts.append(line)
            size += len(line)
            if size >= _PIECE:
                yield "".join(parts)
                parts, size = [], 0
        if parts:
            yield "".join(parts)

    def blocks(
        self,
        tokenizer: Tokenizer,
        block_length: int,
        batch_size: int,
        *,
        shuffle: bool = True,
        steps: int | None = None,
        bos_share: float = 0.1,
        seed: int | None = None,
    ) -> Batches:
        """Give the text as one stream of ids, cut into blocks; one iteration is one epoch.

        A batch is `({"target": int32 [B,T]}, labels int32 [B,T], weights float32 [B,T])` with B =
        `batch_size` and T = `block_length`, always. The stream is BOS and the ids of all the text; a
        block is T ids of it, and its labels are the ids that follow each. Weights sum to 1 over the
        batch. There is no EOS: the end of a text that was cut off somewhere means nothing.

        With `shuffle` a block begins anywhere, drawn with replacement. Prompts begin with BOS, and a
        model would hardly know BOS if it stood at the start of the text alone. So in a share of these
        blocks BOS takes the place of the first id: it comes to mean "a text begins here, wherever
        that is", and the model can be given any part of a text, or nothing, after BOS.

        Without it the blocks follow each other, each character is a label once, and the last block
        ends in pads and the last batch in empty rows (BOS alone), both of weight 0. For validation.

        The text is tokenized here, once, in pieces of whole lines; the ids are in a temporary file, not in
        memory. Some tokenizers drop line feeds, or add a space at the start of a piece.

        Args:
            tokenizer: of the text.
            block_length: ids of a block, T.
            batch_size: blocks of a batch, B.
            shuffle: True draws blocks for training, False goes through the text for validation.
            steps: batches of an epoch of drawn blocks; None makes as many as hold the text once.
            bos_share: how many of the drawn blocks begin with BOS, from 0 to 1.
            seed: the same seed draws the same blocks in any process; None differs every time.

        Raises:
            ValueError: if an argument is out of range, or the text has not enough ids for a drawn block.

        Source: Karpathy, https://github.com/karpathy/nanoGPT (`get_batch`), but for BOS.
        """
        check_tokenizers(tokenizer=tokenizer)
        shape = integer("batch_size", batch_size), integer("block_length", block_length)
        steps = None if steps is None else integer("steps", steps)
        seed = None if seed is None else integer("seed", seed, 0)
        if not isinstance(bos_share, (int, float)) or not 0 <= bos_share <= 1:
            raise ValueError(f"bos_share must be from 0 to 1, got {bos_share!r}.")
        if steps is not None and not shuffle:
            raise ValueError(f"steps must be None without shuffle, got {steps}.")
        stream = stream_of(tokenizer, self.pieces())
        if not shuffle:
            return Batches(ConsecutiveBlocks(stream, shape))
        steps = steps or -(-(len(stream) - 1) // (shape[0] * shape[1]))
        return Batches(RandomBlocks(stream, shape, steps, seed, bos_share))

    def batches(
        self,
        tokenizer: Tokenizer,
        *,
        tokens_per_batch: int | None = None,
        sentences_per_batch: int | None = None,
        max_length: int | None = None,
        buckets: Sequence[int] | None = None,
        max_buckets: int = 6,
        width_multiple: int = 8,
        fixed_shapes: bool = False,
        shuffle: bool = True,
        shuffle_buffer: int = 100_000,
        seed: int | None = None,
        count: bool = True,
    ) -> Batches:
        """Give each line as an example, between BOS and EOS; one iteration is one epoch.

        A batch is `({"target": int32 [B,T]}, labels int32 [B,T], weights float32 [B,T])`, padded with
        id 0. Targets are BOS and tokens, labels tokens and EOS. Weights are 0 on pads and sum to 1 over
        the batch. Blank lines and those that are too long are dropped and counted in `text.report`.

        All else is as in `ParallelText.batches`, and so are the arguments: B times T is at most
        `tokens_per_batch`, `max_length` counts the EOS, and `buckets` are the widths T.

        Raises:
            ValueError: if an argument is out of range or no line is kept.
        """
        check_tokenizers(tokenizer=tokenizer)
        tokens, sentences = budget(tokens_per_batch, sentences_per_batch)
        _, limit = limits_of((None, None), max_length, buckets, tokens)
        limits = 0, limit
        rule = BucketRule(tokens, sentences, limits, buckets, max_buckets, width_multiple)
        shuffle_buffer = integer("shuffle_buffer", shuffle_buffer)
        blocks = blocks_of(self._lines.pairs, (tokenizer,), shuffle_buffer)
        chunks = Chunks(self._lines, blocks, 1, limits, shuffle_buffer)
        return Batches(
            TokenBatches(chunks, rule, fixed_shapes=fixed_shapes, shuffle=shuffle, seed=seed, count=count)
        )


class _Lines:
    """The lines of a text as a corpus of single strings."""

    unit = "lines"

    def __init__(self, read: Read, count: int):
        self._read, self._count = read, count
        self.report: Report | None = None

    def __len__(self) -> int:
        return self._count

    def pairs(self) -> Iterator[tuple[str]]:
        """Iterate over the lines, without their ends."""
        return ((line.removesuffix("\n"),) for line in self._read())
