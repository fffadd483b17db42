"""What `Seq2Seq` and `LanguageModel` share: they are decoded by the decoder that they hold."""

from typing import Any

__all__ = ["DecoderSteps"]


class DecoderSteps:
    """The part of `models.protocol.Decodable` that is the decoder's alone."""

    decoder: Any

    def step(self, token, index, carry, context):
        """Read one token for each row; see `models.protocol.Decodable`."""
        return self.decoder.step(token, index, carry, context)

    def reorder(self, carry, parent):
        """Continue the hypotheses that `parent` names; see `models.protocol.Decodable`."""
        return self.decoder.reorder(carry, parent)

    def grow(self, carry, context, slots):
        """Make room for `slots` tokens; see `models.protocol.Growing`."""
        return self.decoder.grow(carry, context, slots) if hasattr(self.decoder, "grow") else carry

    def _room(self, max_length, hypotheses, slots):
        """Return the options of the decoder's `start`; one that cannot grow is not asked for less room."""
        room = {"slots": slots} if slots is not None and hasattr(self.decoder, "grow") else {}
        return {"max_length": max_length, "hypotheses": hypotheses, **room}
