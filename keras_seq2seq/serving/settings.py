"""How a translator cuts, batches and compiles: plain values, checked once."""

from dataclasses import dataclass
from typing import Any, Self

__all__ = ["Settings"]

_LONGEST = 1024  # ids of a source or a translation, unless the model or the user says otherwise


@dataclass(frozen=True)
class Settings:
    """The settings of a translator; `Translator` says what each of them means."""

    max_length: int
    max_source_length: int
    length_factor: float
    length_offset: int
    batch_size: int
    tokens_per_batch: int
    jit_compile: bool

    def __post_init__(self) -> None:
        for name in ("max_length", "max_source_length", "length_offset", "batch_size", "tokens_per_batch"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1, received {value!r}.")
        if not self.length_factor >= 0:
            raise ValueError(f"length_factor must be at least 0, received {self.length_factor!r}.")
        if not isinstance(self.jit_compile, bool):
            raise ValueError(f"jit_compile must be True or False, received {self.jit_compile!r}.")

    @classmethod
    def for_model(
        cls, model: Any, *, max_length: int | None, max_source_length: int | None, **others: Any
    ) -> Self:
        """Fill in the two lengths, which learned positions limit.

        Raises:
            ValueError: a length that is larger than the number of the model's learned positions.
        """
        return cls(
            max_length=_within("max_length", max_length, position_limit(getattr(model, "decoder", None))),
            max_source_length=_within(
                "max_source_length", max_source_length, position_limit(getattr(model, "encoder", None))
            ),
            **others,
        )


def position_limit(part: Any) -> int | None:
    """Return for how many positions an encoder or decoder has learned encodings, or None for no limit."""
    embedding = getattr(part, "embedding", None)
    return getattr(getattr(embedding, "positions", None), "max_length", None)


def _within(name: str, value: int | None, limit: int | None) -> int:
    if value is None:
        return min(_LONGEST, limit or _LONGEST)
    if limit is not None and isinstance(value, int) and value > limit:
        raise ValueError(f"{name} must be at most {limit}, the model's learned positions, received {value}.")
    return value
