"""The callback that saves checkpoints, and goes on from the last of them."""

import os

import keras

from keras_seq2seq.training import checkpoint_files as files
from keras_seq2seq.training.checkpoint_files import Checkpoint

__all__ = ["Checkpoints"]


class Checkpoints(keras.callbacks.Callback):
    """Save the state of a training run, keep a few checkpoints, and go on from the last one.

    If the directory holds checkpoints when `fit` begins, the run goes on where the last one was saved:
    weights, optimizer, step and schedule, loss scale, random streams, metrics, epoch, and place in the data.
    What was trained on in the current epoch is read and passed over, so the batches must come in the same
    order: those of `keras_seq2seq.data` with a seed do. Call `fit` as the first time, without
    `steps_per_epoch` and `initial_epoch`, and put this callback last, so that it sees what others log.

    A process that is killed loses the steps since the last save, and never leaves a broken checkpoint.

    Args:
        directory: for the checkpoints of this run alone.
        every: "epoch", or a number of batches, counted over all epochs.
        keep: how many of the last checkpoints to keep.
        batches: what `fit` gets, if it has a `seek` (those of `keras_seq2seq.data` have): its epochs then
            have the numbers of `fit`, also in a process that goes on.
        monitor: name of a value that epochs log; the checkpoint with the best one is kept, too, and every
            epoch is saved.
        mode: whether "min" or "max" is best.
        patience: end the training after so many epochs without a better `monitor`, those before a restart
            counted.

    Raises:
        ValueError: an argument out of range; when `fit` begins, checkpoints of another model or optimizer.

    Example:
        >>> x, model = np.ones((8, 4)), keras.Sequential([keras.layers.Dense(1)])
        >>> model.compile("adam", "mse")
        >>> saving = ks.training.Checkpoints("run", keep=2)  # give it `batches`, too, if they are of ks.data
        >>> history = model.fit(x, x[:, :1], epochs=3, verbose=0, callbacks=[saving])
        >>> [each.epoch for each in ks.training.checkpoints("run")]
        [2, 3]
    """

    def __init__(
        self, directory, every="epoch", *, keep=5, batches=None, monitor=None, mode="min", patience=None
    ):
        super().__init__()
        for name, value in (("every", every), ("keep", keep), ("patience", patience)):
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            if not (whole or (name, value) in (("every", "epoch"), ("patience", None))):
                raise ValueError(f"{name} must be an integer of at least 1, received {value!r}.")
        if patience is not None and monitor is None:
            raise ValueError("patience needs a monitor, received None.")
        files.ranked([], monitor, mode)
        self.directory = os.fspath(directory)
        self.every, self.keep, self.batches = every, keep, batches
        self.monitor, self.mode, self.patience = monitor, mode, patience
        self.state = Checkpoint()
        self._passed_over, self._metrics = 0, []

    def on_train_begin(self, logs=None):
        """Go on from the last checkpoint, if there is one."""
        files.remove_unfinished(self.directory)
        self.state, self._passed_over, self._metrics = Checkpoint(), 0, []
        found = files.checkpoints(self.directory)
        if not found:
            return
        self.state, self._metrics = files.restore(self.model, found[-1].path)
        # A run that had ended by its patience has nothing left to do.
        self.model._initial_epoch = self.params["epochs"] if self._is_over() else self.state.epoch
        if self.state.batch:
            self._pass_over(self.state.batch)

    def on_train_end(self, logs=None):
        """Let the next `fit` of this model begin where it is told to."""
        self.model._initial_epoch = None

    def _pass_over(self, count):
        """Let the first `count` batches of this `fit` be read and not trained on."""
        model, train, left = self.model, self.model.train_function, [count]

        def function(iterator):
            if left[0] <= 0:
                model.train_function = train
                return train(iterator)
            for _ in range(min(model.steps_per_execution, left[0])):
                batch = next(iterator)
            if left[0] == count:
                self._restore_metrics(batch)
            left[0] -= model.steps_per_execution
            return model.get_metrics_result()

        model.train_function = function
        self._passed_over = count

    def _restore_metrics(self, batch):
        """Put the metrics back, which Keras has not made yet unless there is a strategy."""
        if len(self.model.metrics_variables) != len(self._metrics):
            self.model._symbolic_build(data_batch=batch)
        for variable, value in zip(self.model.metrics_variables, self._metrics, strict=True):
            variable.assign(value)

    def on_epoch_begin(self, epoch, logs=None):
        """Find the place in the data."""
        if hasattr(self.batches, "seek"):
            self.batches.seek(epoch)

    def on_train_batch_end(self, batch, logs=None):
        """Count, and save if it is time."""
        if batch < self._passed_over:
            return
        before, after = self.state.batch, batch + 1
        step = self.state.step + after - before
        due = self.every != "epoch" and step // self.every > self.state.step // self.every
        self.state = Checkpoint("", step, self.state.epoch, after, self.state.logs)
        if due:
            self._save()

    def on_epoch_end(self, epoch, logs=None):
        """Note what was logged, save, and stop if nothing has become better for long."""
        self._passed_over = 0
        noted = {name: float(value) for name, value in (logs or {}).items()}
        if self.monitor is not None and self.monitor not in noted:
            raise ValueError(f"monitor must be one of {sorted(noted)}, received {self.monitor!r}.")
        self.state = Checkpoint("", self.state.step, epoch + 1, 0, [*self.state.logs, noted])
        if self.every == "epoch" or self.monitor is not None:
            self._save()
        if self._is_over():
            self.model.stop_training = True

    def _save(self):
        files.save(self.model, self.directory, self.state)
        found = files.checkpoints(self.directory)
        best = files.ranked(found, self.monitor, self.mode)[:1]
        for old in found[: -self.keep]:
            if old not in best:
                os.remove(old.path)

    def _is_over(self):
        """Say whether `patience` epochs have passed without a better value; NaN is never better."""
        if self.patience is None or not self.state.logs:
            return False
        values = [logs[self.monitor] for logs in self.state.logs]
        numbers = [value for value in values if value == value]
        if not numbers:
            return len(values) >= self.patience
        best = min(numbers) if self.mode == "min" else max(numbers)
        return len(values) - 1 - values.index(best) >= self.patience
