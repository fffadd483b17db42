"""Decoder-only models: the same contract as `Seq2Seq`, without a source."""

import keras

from keras_seq2seq.models.decoder_steps import DecoderSteps
from keras_seq2seq.models.token_training import TokenTraining

__all__ = ["LanguageModel"]


@keras.saving.register_keras_serializable(package="keras_seq2seq")
class LanguageModel(DecoderSteps, TokenTraining):
    """A decoder as a Keras model.

    Input: `target` int32 `[B, T]` (BOS first, 0 is padding). Output: logits, float32 `[B, T, V]`.

    Args:
        decoder: a layer called as `decoder(target)` that returns logits, with
            `start(target, max_length=, hypotheses=)`, `step` and `reorder` as `models.protocol` has them.
    """

    def __init__(self, decoder, **kwargs):
        target = keras.Input((None,), dtype="int32", name="target")
        super().__init__({"target": target}, decoder(target), **kwargs)
        self.decoder = decoder

    def start(self, inputs, max_length, hypotheses=1, slots=None):
        """Read the prompts; see `models.protocol`."""
        return self.decoder.start(inputs["target"], **self._room(max_length, hypotheses, slots))

    def get_config(self):
        """Return the decoder."""
        return {"name": self.name, "decoder": keras.saving.serialize_keras_object(self.decoder)}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Rebuild the model from its decoder."""
        config = dict(config)
        decoder = keras.saving.deserialize_keras_object(config.pop("decoder"), custom_objects=custom_objects)
        return cls(decoder, **config)
