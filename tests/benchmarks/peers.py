"""Other libraries' models of the sizes that are measured here, with random weights."""

from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["ctranslate2_tiny"]


def ctranslate2_tiny(
    folder: Path, vocabulary: int, workers: int, dim: int = 128, inner: int = 256, blocks: int = 4
) -> Any:
    """Return a translator of one worker on two threads, or of two on one each: post-norm, 4 heads, one matrix
    for all embeddings.
    """
    import ctranslate2
    from ctranslate2.specs import common_spec, transformer_spec

    rng = np.random.default_rng(0)
    activation = common_spec.Activation.RELU
    spec = transformer_spec.TransformerSpec.from_config(
        (blocks, blocks), 4, pre_norm=False, activation=activation
    )

    def linear(layer: Any, size: int, given: int = dim) -> None:
        layer.weight = rng.normal(0, given**-0.5, (size, given)).astype("float32")
        layer.bias = np.zeros(size, "float32")

    def norm(layer: Any) -> None:
        layer.gamma, layer.beta = np.ones(dim, "float32"), np.zeros(dim, "float32")

    embeddings = rng.normal(0, dim**-0.5, (vocabulary, dim)).astype("float32")
    for part in (spec.encoder, spec.decoder):
        own = part.embeddings[0] if isinstance(part.embeddings, list) else part.embeddings
        own.weight = embeddings
        part.position_encodings.encodings = np.zeros((512, dim), "float32")
        for layer in part.layer:
            attentions = [(layer.self_attention, [3 * dim, dim])]
            attentions += [(layer.attention, [dim, 2 * dim, dim])] if part is spec.decoder else []
            for attention, sizes in attentions:
                for each, size in zip(attention.linear, sizes, strict=True):
                    linear(each, size)
                norm(attention.layer_norm)
            linear(layer.ffn.linear_0, inner)
            linear(layer.ffn.linear_1, dim, inner)
            norm(layer.ffn.layer_norm)
    spec.decoder.projection.weight = embeddings
    spec.decoder.projection.bias = np.zeros(vocabulary, "float32")
    words = ["<pad>", "<unk>", "<s>", "</s>", *(f"w{i}" for i in range(vocabulary - 4))]
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.config.bos_token = spec.config.decoder_start_token = "<s>"
    spec.config.eos_token, spec.config.unk_token = "</s>", "<unk>"
    spec.validate()
    spec.optimize()
    folder.mkdir(parents=True)
    spec.save(str(folder))
    return ctranslate2.Translator(
        str(folder), device="cpu", inter_threads=workers, intra_threads=2 // workers
    )
