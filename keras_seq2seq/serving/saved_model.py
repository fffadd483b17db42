"""Export: a translator or a generator as one SavedModel, text to text, under the next version number.

```
BASE/<version>/
  saved_model.pb  fingerprint.pb  variables/  assets/
  assets.extra/model.json          versions, signatures, settings, vocabulary sizes, fingerprint
  assets.extra/tf_serving_warmup_requests    on request
```

A version is written aside, loaded, compared with what is in memory, and only then renamed into place.
"""

import dataclasses
import errno
import json
import os
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import tensorflow as tf

from keras_seq2seq.serving.buckets import XLABuckets
from keras_seq2seq.serving.files import aside, explained, sync, sync_entry
from keras_seq2seq.serving.graph import module_of
from keras_seq2seq.serving.graph_ops import custom_ops
from keras_seq2seq.serving.metadata import fingerprint, strategy_config, versions
from keras_seq2seq.serving.seeds import for_export
from keras_seq2seq.serving.served import Functions, Served, check_n_best, tokenizers
from keras_seq2seq.serving.verification import SAMPLES, verify
from keras_seq2seq.serving.warmup import Warmup, check_warmup, write_warmup

__all__ = ["export"]


def export(
    served: Served,
    base_dir: str | os.PathLike[str],
    *,
    version: int | None = None,
    n_best: int | None = None,
    xla: XLABuckets | bool = False,
    warmup: Warmup | bool = False,
    samples: Sequence[str] = SAMPLES,
) -> str:
    """Write a translator or a generator as a SavedModel to `base_dir/<version>`.

    Signatures of a translator (strings, float32, int32, and int64 for seeds; every input is a vector
    `[None]`, and B may be 0):

    - `serving_default`, `translate`: `text` -> `translation` `[B]`, `score` `[B]`
    - `translate_n_best`: `text` -> `translations` `[B, N]`, `scores` `[B, N]`, best first
    - `translate_with_prefix`: `text`, `prefix` -> `translation`, which begins with `prefix`, `score`
    - `sample`: `text`, `seed` -> `translation`, `score`: one sample, see `Translator.sample`
    - `score`: `source`, `target` -> `score`, log P(target | source), and `token_count`, EOS counted

    Signatures of a generator:

    - `serving_default`, `generate`: `text` -> `completion` `[B]`, without the text, `score` `[B]`
    - `generate_n_best`: `text` -> `completions` `[B, N]`, `scores` `[B, N]`, best first
    - `sample`: `text`, `seed` -> `completion`, `score`: one sample, see `Generator.sample`
    - `score`: `text` -> `score`, log P(text), and `token_count`; see `Generator.score`

    A row never depends on the others. Where the strategy is `Sampling`, the signatures without `seed` answer
    each text as if it were alone, always the same: by the strategy's seed, or by 0 if that is None.

    Args:
        served: a `Translator` or a `Generator`; its strategy and limits become part of the graph.
        base_dir: the directory of all versions, which is made if need be. No version in it is ever changed.
        version: a number of 1 or more that is not taken; default: one more than the highest there is.
        n_best: N; default: the strategy's width.
        xla: compile the searches by XLA, for `XLABuckets()` or others; other shapes, and translations with a
            prefix, go without. TF Serving runs such an export only if it was started with
            `--xla_cpu_compilation_enabled=true`.
        warmup: write requests that TF Serving runs before it serves the version: `Warmup()` or others.
        samples: texts that the export must answer as `served` does.

    Returns:
        The path of the new version.

    Raises:
        TypeError: `xla` or `warmup` of another kind.
        ValueError: `version` or `n_best` out of range, a version that exists, or a warm-up that cannot be.
        ImportError: `warmup` without the extra `serving` of this package.
        RuntimeError: an export that does not do what `served` does; nothing is left of it.
        OSError: a directory that cannot be written.
    """
    base = os.fspath(base_dir)
    n_best = served.strategy.width if n_best is None else n_best
    check_n_best(n_best, served.strategy)
    if version is not None and (isinstance(version, bool) or not isinstance(version, int) or version < 1):
        raise ValueError(f"version must be an integer of at least 1, received {version!r}.")
    buckets, requests = _buckets(xla), check_warmup(warmup)
    served = _portable(served)
    functions = served.functions(n_best, buckets)
    with explained(base), aside(base) as work:
        _refuse_taken(base, version)
        path = os.path.join(work, "model")
        _write(served, functions, path, buckets, requests)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # samples may be cut as any text may
            verify(path, served, functions, samples)
        sync(path)
        return _publish(path, base, version)


def _buckets(xla: Any) -> XLABuckets | None:
    if isinstance(xla, XLABuckets):
        return xla
    if not isinstance(xla, bool):
        raise TypeError(f"xla must be True, False or XLABuckets, received {xla!r}.")
    return XLABuckets() if xla else None


def _portable(served: Served) -> Served:
    """Switch off XLA, which stock TF Serving has switched off, and give sampling a seed."""
    if served.settings.jit_compile:
        served = served.with_settings(dataclasses.replace(served.settings, jit_compile=False))
    strategy = for_export(served.strategy)
    return served if strategy == served.strategy else served.with_strategy(strategy)


def _write(
    served: Served, functions: Functions, path: str, xla: XLABuckets | None, warmup: Warmup | None
) -> None:
    signatures, module = functions.signatures(), module_of(served)
    _check_variables(signatures, module)
    tf.saved_model.save(module, path, signatures)
    card = {
        "kind": served.KIND,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "signatures": {name: _described(function) for name, function in signatures.items()},
        "strategy": strategy_config(served.strategy),
        "settings": dataclasses.asdict(served.settings),
        "vocabulary_sizes": {
            side: getattr(served, name).vocabulary_size for side, name in served.SIDES.items()
        },
        "custom_ops": custom_ops(path),
        "xla": None if xla is None else dataclasses.asdict(xla),
        "warmup": None if warmup is None else dataclasses.asdict(warmup),
        "fingerprint": fingerprint(served.model, list(tokenizers(served).values())),
    }
    os.mkdir(os.path.join(path, "assets.extra"))
    with open(os.path.join(path, "assets.extra", "model.json"), "w", encoding="utf-8") as file:
        file.write(json.dumps(card, indent=2) + "\n")
    if warmup is not None:
        write_warmup(warmup, served, signatures, path)


def _check_variables(signatures: dict[str, Any], module: Any) -> None:
    """Make sure that the module holds every variable that a function uses; see `module_of`."""
    # A variable of tf.distribute holds one for each replica.
    replicas = [part for variable in module.variables_ for part in getattr(variable, "values", ())]
    held = {id(variable) for variable in [*module.variables_, *replicas]}
    for name, function in signatures.items():
        for variable in function.graph.variables:
            if id(variable) not in held:
                raise RuntimeError(
                    f"signature {name!r} uses {variable.name}, which is no variable of the model."
                )


def _described(function: Any) -> dict[str, Any]:
    """Return the inputs and outputs of a signature: name to dtype and shape."""

    def specs(tensors: dict[str, Any]) -> dict[str, Any]:
        return {
            name: {"dtype": spec.dtype.name, "shape": spec.shape.as_list()} for name, spec in tensors.items()
        }

    inputs = {spec.name: spec for spec in function.structured_input_signature[0]}
    return {"inputs": specs(inputs), "outputs": specs(function.structured_outputs)}


def _publish(path: str, base: str, version: int | None) -> str:
    """Rename a finished version into place: under its number, or under the next one that is free."""
    while True:
        _refuse_taken(base, version)
        number = version or 1 + max((int(name) for name in os.listdir(base) if name.isdecimal()), default=0)
        target = os.path.join(base, str(number))
        try:
            os.rename(path, target)
        except OSError as error:
            # Somebody else took the number in between; rename never replaces a directory with content.
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
        else:
            sync_entry(base)
            return target


def _refuse_taken(base: str, version: int | None) -> None:
    if version is not None and os.path.lexists(os.path.join(base, str(version))):
        raise ValueError(f"version {version} exists in {base!r}, and no version is ever changed.")
