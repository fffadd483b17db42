"""Subword regularization: the same text cut into other pieces each time."""

import dataclasses
import math
import threading
from collections.abc import Sequence
from typing import Any

import sentencepiece

_SEEDING = threading.Lock()  # SentencePiece has one seed for the whole process


@dataclasses.dataclass(frozen=True)
class SubwordSampling:
    """How to draw the pieces of a text at random, for `batches` to train on.

    Args:
        alpha: for unigram models the inverse temperature: segmentations are drawn by their probability
            to this power. For BPE models the probability to leave out a merge.
        nbest_size: among how many of the best segmentations a unigram model draws; -1 draws among all.

    Raises:
        ValueError: if a number is out of range.

    Source: Kudo 2018, https://aclanthology.org/P18-1007; Provilkov et al. 2020 (BPE),
    https://aclanthology.org/2020.acl-main.170.
    """

    alpha: float = 0.1
    nbest_size: int = -1

    def __post_init__(self) -> None:
        if not 0 < self.alpha < math.inf:
            raise ValueError(f"alpha must be above 0, got {self.alpha!r}.")
        if self.nbest_size != -1 and self.nbest_size < 2:
            raise ValueError(f"nbest_size must be -1 or at least 2, got {self.nbest_size!r}.")

    def draw(self, processor: Any, texts: Sequence[str], seed: int) -> list[list[int]]:
        """Cut texts at random; the same seed gives the same pieces in any process.

        SentencePiece's generators belong to threads, and take the seed when a thread begins.
        """
        drawn: list[list[int]] = []

        def run() -> None:
            options = {"alpha": self.alpha, "nbest_size": self.nbest_size}
            drawn.extend(processor.encode(list(texts), enable_sampling=True, num_threads=1, **options))

        with _SEEDING:
            sentencepiece.set_random_generator_seed(seed % 2**31)
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
        return drawn
