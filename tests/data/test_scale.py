"""A million pairs: memory follows the buffers, not the corpus."""

import pathlib

import psutil
import pytest

from keras_seq2seq.data import ParallelText, Records, write_records
from keras_seq2seq.text import Bytes

LINE = "some words that make a line of an ordinary length"


@pytest.mark.slow
def test_a_million_pairs_do_not_fill_memory(tmp_path: pathlib.Path) -> None:
    for name in ("a", "b"):
        with open(tmp_path / name, "w", encoding="utf-8") as file:
            file.writelines(f"{name} {number:07} {LINE}\n" for number in range(1_000_000))  # 500 MB as ids
    process = psutil.Process()
    before = process.memory_info().rss
    text = ParallelText(tmp_path / "a", tmp_path / "b")
    clean = text.clean(max_ratio=2).shard(2, 1)
    write_records(tmp_path / "records", clean, Bytes())
    records = Records(tmp_path / "records", Bytes())
    for corpus, tokenizers in ((text, [Bytes()]), (clean, [Bytes()]), (records, [])):
        batches = corpus.batches(*tokenizers, tokens_per_batch=4096, shuffle_buffer=10_000, count=False)
        assert sum(1 for _ in batches.take(50)) == 50
        assert process.memory_info().rss - before < 300e6
    assert (len(text), len(records)) == (1_000_000, 500_000)
