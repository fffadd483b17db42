"""What became of the pairs, or lines, of a corpus."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Report:
    """Counts of one pass over a corpus: how many pairs were read and why some were dropped.

    For text without a source side a pair is a line, `unit` says so, and `max_source_length` is 0.

    `str(report)` is a line such as "37 of 200 pairs dropped: 30 longer than 50 tokens, 7 blank".
    """

    pairs: int
    blank: int
    too_long: int
    max_source_length: int
    max_target_length: int
    unit: str = "pairs"

    @property
    def dropped(self) -> int:
        """Pairs that are in no batch."""
        return self.blank + self.too_long

    @property
    def kept(self) -> int:
        """Pairs that are in a batch, each in exactly one."""
        return self.pairs - self.dropped

    def __str__(self) -> str:
        limit = f"{self.max_target_length}"
        if self.max_source_length not in (0, self.max_target_length):
            limit = f"{self.max_source_length} source or {limit} target"
        counts = ((self.too_long, f"longer than {limit} tokens"), (self.blank, "blank"))
        reasons = ", ".join(f"{count} {reason}" for count, reason in counts if count)
        return f"{self.dropped} of {self.pairs} {self.unit} dropped" + (f": {reasons}" if reasons else "")
