"""How a translator or a generator cuts, batches and compiles: plain values, checked once."""

import math
from dataclasses import dataclass
from typing import Any, Self

__all__ = ["GeneratorSettings", "Settings", "position_limit"]

_LONGEST = 1024  # ids of a source, a translation or a prompt, unless the model or the user says otherwise
_NEW = 256  # ids of a completion, likewise


@dataclass(frozen=True)
class Settings:
    """The settings of a translator; `Translator` says what each of them means."""

    max_length: int
    max_source_length: int
    length_factor: float
    length_offset: int
    min_length: int
    min_length_factor: float
    forbidden_tokens: tuple[int, ...]
    no_repeat_ngram: int
    batch_size: int
    tokens_per_batch: int
    jit_compile: bool

    def __post_init__(self) -> None:
        for name in ("max_length", "max_source_length", "length_offset", "batch_size", "tokens_per_batch"):
            _check_count(name, getattr(self, name))
        for name in ("length_factor", "min_length_factor"):
            factor = getattr(self, name)
            if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 0 <= factor < math.inf:
                raise ValueError(f"{name} must be a finite number of at least 0, received {factor!r}.")
        _check_least("min_length", self.min_length, "max_length", self.max_length)
        _check_count("no_repeat_ngram", self.no_repeat_ngram, 0)
        _check_flag("jit_compile", self.jit_compile)

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


@dataclass(frozen=True)
class GeneratorSettings:
    """The settings of a generator; `Generator` says what each of them means."""

    max_new_tokens: int
    max_prompt_length: int
    min_new_tokens: int
    forbidden_tokens: tuple[int, ...]
    no_repeat_ngram: int
    score_eos: bool
    batch_size: int
    tokens_per_batch: int
    jit_compile: bool

    def __post_init__(self) -> None:
        for name in ("max_new_tokens", "batch_size", "tokens_per_batch"):
            _check_count(name, getattr(self, name))
        _check_count("max_prompt_length", self.max_prompt_length, 0)
        _check_least("min_new_tokens", self.min_new_tokens, "max_new_tokens", self.max_new_tokens)
        _check_count("no_repeat_ngram", self.no_repeat_ngram, 0)
        _check_flag("score_eos", self.score_eos)
        _check_flag("jit_compile", self.jit_compile)

    @property
    def window(self) -> int:
        """The most tokens of a prompt with its completion, and of a text that is scored."""
        return self.max_prompt_length + self.max_new_tokens

    @classmethod
    def for_model(
        cls, model: Any, *, max_new_tokens: int | None, max_prompt_length: int | None, **others: Any
    ) -> Self:
        """Fill in the two lengths, whose sum learned positions limit: half of them are for the prompt.

        Raises:
            ValueError: lengths whose sum is larger than the number of the model's learned positions.
        """
        limit = position_limit(getattr(model, "decoder", None))
        new, prompt = max_new_tokens, max_prompt_length
        if new is None:
            room = _NEW if limit is None else limit // 2 if prompt is None else limit - prompt
            new = max(min(_NEW, room), 1)
        if prompt is None:
            prompt = _LONGEST if limit is None else max(min(_LONGEST, limit - new), 0)
        settings = cls(max_new_tokens=new, max_prompt_length=prompt, **others)
        if limit is not None and settings.window > limit:
            raise ValueError(
                f"max_prompt_length + max_new_tokens must be at most {limit}, the model's learned positions, "
                f"received {prompt} + {new}."
            )
        return settings


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


def _check_count(name: str, value: Any, least: int = 1) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, received {value!r}.")


def _check_least(name: str, value: Any, most_name: str, most: int) -> None:
    _check_count(name, value, 0)
    if value > most:
        raise ValueError(f"{name} must be at most {most_name}={most}, received {value}.")


def _check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, received {value!r}.")
