"""Encoder-decoder models: a functional graph for training, `start` and `step` for search."""

import keras
from keras import ops

from keras_seq2seq.layers.masks import padding_mask
from keras_seq2seq.models.decoder_steps import DecoderSteps
from keras_seq2seq.models.token_training import TokenTraining

__all__ = ["Seq2Seq"]


@keras.saving.register_keras_serializable(package="keras_seq2seq")
class Seq2Seq(DecoderSteps, TokenTraining):
    """An encoder and a decoder as one Keras model.

    Inputs: `source` int32 `[B, S]`, `target` int32 `[B, T]` (BOS first, 0 is padding). Output: logits,
    float32 `[B, T, V]`; position t predicts the token after `target[:, t]` (teacher forcing).

    Args:
        encoder: a layer from `source` to a memory (any structure of tensors).
        decoder: a layer called as `decoder(target, memory, memory_mask)` that returns logits, with
            `start(target, memory, memory_mask, max_length=, hypotheses=)`, `step` and `reorder` as
            `models.protocol` has them. If its `embedding` is None it gets the encoder's.
    """

    def __init__(self, encoder, decoder, **kwargs):
        if getattr(decoder, "embedding", encoder) is None:
            decoder.embedding = encoder.embedding
        source = keras.Input((None,), dtype="int32", name="source")
        target = keras.Input((None,), dtype="int32", name="target")
        logits = decoder(target, encoder(source), padding_mask(source))
        super().__init__({"source": source, "target": target}, logits, **kwargs)
        self.encoder = encoder
        self.decoder = decoder

    def start(self, inputs, max_length, hypotheses=1, slots=None):
        """Encode the sources and read the prompts; see `models.protocol`."""
        source = inputs["source"]
        memory = self.encoder(source, training=False)
        room = self._room(max_length, hypotheses, slots)
        return self.decoder.start(inputs["target"], memory, padding_mask(source), **room)

    @property
    def has_alignment(self):
        """Whether `align` works: there is attention to the source."""
        return hasattr(self.decoder, "align") and getattr(self.decoder, "attention", self) is not None

    def align(self, inputs, hypotheses=1, **options):
        """Return where each target position looks in the source.

        Args:
            inputs: `source` int32 `[B, S]` and `target` int32 `[B*W, T]`, as in training.
            hypotheses: W, targets for each source; row b*W + w belongs to source b.
            options: of the decoder's `align`, such as `layer`.

        Returns:
            Attention weights, float32 `[B*W, H, T, S]`: row t belongs to the token that position t predicts.
        """
        source = inputs["source"]
        memory, mask = self.encoder(source, training=False), padding_mask(source)
        if hypotheses > 1:
            memory, mask = keras.tree.map_structure(
                lambda part: ops.repeat(part, hypotheses, axis=0), (memory, mask)
            )
        return self.decoder.align(inputs["target"], memory, mask, **options)

    def get_config(self):
        """Return the two parts; a shared embedding is written once, with the encoder."""
        serialize = keras.saving.serialize_keras_object
        return {"name": self.name, "encoder": serialize(self.encoder), "decoder": serialize(self.decoder)}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Rebuild the model from its two parts."""
        load = keras.saving.deserialize_keras_object
        config = dict(config)
        encoder = load(config.pop("encoder"), custom_objects=custom_objects)
        decoder = load(config.pop("decoder"), custom_objects=custom_objects)
        return cls(encoder, decoder, **config)
