"""The quality of translations, measured while a model is trained."""

import os

import keras

from keras_seq2seq import evaluate
from keras_seq2seq.training.files import written_aside

__all__ = ["TranslationQuality"]


class TranslationQuality(keras.callbacks.Callback):
    """Translate a development set with the real search, and log BLEU and chrF.

    `val_bleu` and `val_chrf` go into the logs of the epoch, so that the progress bar, `History`, `CSVLogger`,
    `TensorBoard`, `EarlyStopping`, `ModelCheckpoint` and `Checkpoints` see them, if they stand behind this
    callback in the list (`History` and the progress bar always do). An epoch without a measurement of its
    own repeats the last one, as `CSVLogger` wants the same columns in every epoch; before the first it is 0.

    With a moving average, put `keras.callbacks.SwapEMAWeights(swap_on_epoch=True)` before it.

    Args:
        translator: a `Translator` that holds the model that is trained; its strategy is the search.
        sources: strings to translate.
        references: for each of them a reference, or a list of them.
        every: measure every so many epochs, and after the last one.
        every_steps: measure every so many batches instead, counted over all epochs.
        tokenize: how BLEU splits text into words; see `evaluate.bleu`.
        monitor: "val_bleu" or "val_chrf", which tells what is best.
        best: path, ending in .weights.h5, for the weights with the best `monitor` so far.
        patience: stop after so many measurements without a better one.
        samples: how many sentences to show with each measurement: source, reference and translation.
        show: what is called with the text to show.

    Raises:
        ValueError: an argument out of range, or not one reference for each source.
    """

    def __init__(
        self,
        translator,
        sources,
        references,
        *,
        every=1,
        every_steps=None,
        tokenize="13a",
        monitor="val_bleu",
        best=None,
        patience=None,
        samples=0,
        show=print,
    ):
        super().__init__()
        for name, value, least in (
            ("every", every, 1),
            ("every_steps", every_steps, 1),
            ("patience", patience, 1),
            ("samples", samples, 0),
        ):
            if value is not None and (not isinstance(value, int) or value < least):
                raise ValueError(f"{name} must be an integer of at least {least}, received {value!r}.")
        if monitor not in ("val_bleu", "val_chrf"):
            raise ValueError(f'monitor must be "val_bleu" or "val_chrf", received {monitor!r}.')
        if best is not None and not os.fspath(best).endswith(".weights.h5"):
            raise ValueError(f"best must end in .weights.h5, received {os.fspath(best)!r}.")
        self.translator, self.tokenize, self.monitor = translator, tokenize, monitor
        self.sources, self.references = list(sources), list(references)
        evaluate.scores(self.sources, self.references, tokenize=tokenize)  # sooner than after an epoch
        self.every, self.every_steps, self.patience = every, every_steps, patience
        self.best = None if best is None else os.fspath(best)
        self.samples, self.show = samples, show
        self._start()

    def _start(self):
        self.values = {"val_bleu": 0.0, "val_chrf": 0.0}
        self.best_value, self.waited, self._batches = None, 0, 0

    def on_train_begin(self, logs=None):
        """Forget an earlier run, and see that the translator has this model."""
        if self.translator.model is not self.model:
            raise ValueError("translator must hold the model that is trained, received one with another.")
        self._start()

    def on_train_batch_end(self, batch, logs=None):
        """Measure if `every_steps` says so."""
        if self.every_steps is None:
            return
        before, self._batches = self._batches, self._batches + self.model.steps_per_execution
        if self._batches // self.every_steps > before // self.every_steps:
            self._measure(f"step {self._batches}")

    def on_epoch_end(self, epoch, logs=None):
        """Measure if it is time, and put the values into the logs."""
        last = epoch + 1 == self.params.get("epochs")
        if self.every_steps is None and ((epoch + 1) % self.every == 0 or last):
            self._measure(f"epoch {epoch + 1}")
        if logs is not None:
            logs.update(self.values)

    def _measure(self, when):
        found = self.translator(self.sources)
        scores = evaluate.scores(found, self.references, tokenize=self.tokenize)
        self.values = {"val_bleu": scores.bleu.value, "val_chrf": scores.chrf.value}
        if self.samples:
            self.show(self._sample_text(when, found))
        value = self.values[self.monitor]
        if self.best_value is None or value > self.best_value:
            self.best_value, self.waited = value, 0
            if self.best is not None:
                with written_aside(self.best) as unfinished:
                    self.model.save_weights(unfinished)
        else:
            self.waited += 1
            if self.patience is not None and self.waited >= self.patience:
                self.model.stop_training = True

    def _sample_text(self, when, found):
        bleu, chrf = self.values.values()
        lines = [f"\n{when}: BLEU {bleu:.2f}, chrF {chrf:.2f}"]
        for source, reference, text in list(zip(self.sources, self.references, found, strict=True))[
            : self.samples
        ]:
            expected = reference if isinstance(reference, str) else reference[0]
            lines += [f"  source       {source}", f"  reference    {expected}", f"  translation  {text}"]
        return "\n".join(lines)
