"""Pictures of attention and of training (matplotlib, extra `plot`)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["attention_heatmap", "scores_by_length", "training_curves"]

# Fonts that hold Chinese, Japanese and Korean characters, the first of which that is there is used.
_WIDE_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Source Han Sans SC",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "SimHei",
    "Arial Unicode MS",
)


def attention_heatmap(
    weights: Any,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    *,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Draw which source tokens each target token looked at.

    Args:
        weights: float `[T, S]`, a row for each target token; rows sum to 1.
        source_tokens: S strings, along the top.
        target_tokens: T strings, down the left side.
        title: above the picture.
        ax: matplotlib axes to draw in; default a figure of its own, sized by the tokens.

    Returns:
        The axes; `.figure.savefig(path)` keeps the picture.

    Raises:
        ValueError: the shape does not fit the tokens.
    """
    weights = np.asarray(weights, "float32")
    if weights.shape != (len(target_tokens), len(source_tokens)):
        raise ValueError(
            f"weights must have a row for each of {len(target_tokens)} target tokens and a column for each "
            f"of {len(source_tokens)} source tokens, received shape {weights.shape}."
        )
    ax = ax or _axes(1.6 + 0.42 * len(source_tokens), 1.4 + 0.34 * len(target_tokens))
    image = ax.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    names = _fonts([*source_tokens, *target_tokens])
    ax.set_xticks(
        range(len(source_tokens)), source_tokens, rotation=60, ha="left", rotation_mode="anchor", **names
    )
    ax.set_yticks(range(len(target_tokens)), target_tokens, **names)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.set_xticks(np.arange(len(source_tokens) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(target_tokens) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.0)
    ax.tick_params(which="minor", length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.04, pad=0.03)
    bar.outline.set_visible(False)
    bar.set_label("attention weight")
    if title:
        ax.set_title(title, pad=12, **_fonts([title]))
    return ax


def training_curves(history: Any, metrics: Sequence[str] = ("loss",), *, ax: Any = None) -> Any:
    """Draw how metrics went from epoch to epoch, training and validation together.

    Args:
        history: what `fit` returns, or its `history` dict.
        metrics: names; "val_" + name is drawn beside it where there is one.
        ax: matplotlib axes; default a figure of its own.

    Returns:
        The axes.

    Raises:
        ValueError: a metric that the history does not have.
    """
    values: Mapping[str, Sequence[float]] = getattr(history, "history", history)
    ax = ax or _axes(6.4, 4.0)
    for number, name in enumerate(metrics):
        if name not in values:
            raise ValueError(f"metrics must be among {sorted(values)}, received {name!r}.")
        for key, style in ((name, "-"), (f"val_{name}", "--")):
            if key in values:
                epochs = range(1, len(values[key]) + 1)
                ax.plot(epochs, values[key], style, color=f"C{number}", label=key.replace("_", " "))
    ax.set_xlabel("epoch")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.grid(alpha=0.25)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.legend(frameon=False)
    return ax


def scores_by_length(bins: Mapping[str, Sequence[Any]], *, ax: Any = None) -> Any:
    """Draw how quality depends on the length of the source, a line with intervals for each system.

    Args:
        bins: name of a system to what `evaluate.bleu_by_length` returns.
        ax: matplotlib axes; default a figure of its own.

    Returns:
        The axes.

    Raises:
        ValueError: there is nothing to draw.
    """
    if not any(bins.values()):
        raise ValueError("bins must hold a system with at least one bin, received none.")
    ax = ax or _axes(6.8, 4.2)
    for number, (name, parts) in enumerate(bins.items()):
        lengths, color = [part.mean_length for part in parts], f"C{number}"
        ax.plot(lengths, [part.score.value for part in parts], "o-", color=color, label=name)
        lows, highs = [part.low for part in parts], [part.high for part in parts]
        ax.fill_between(lengths, lows, highs, color=color, alpha=0.15, linewidth=0)
    smallest = min(part.count for parts in bins.values() for part in parts)
    ax.set_xlabel(f"length of the source (bins of at least {smallest} sentences)")
    ax.set_ylabel("BLEU, with 95 % intervals")
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return ax


def _axes(width: float, height: float) -> Any:
    """Make a figure that needs no screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def _fonts(texts: Sequence[str]) -> dict[str, Any]:
    """Name a font for text that matplotlib's own cannot show, where there is one."""
    if all(ord(character) < 0x2E80 for text in texts for character in text):
        return {}
    from matplotlib import font_manager

    manager = font_manager.fontManager
    listed = {font.fname for font in manager.ttflist}
    for path in set(font_manager.findSystemFonts()) - listed:  # fonts that came after matplotlib's list
        manager.addfont(path)
    known = {font.name for font in manager.ttflist}
    found = [name for name in _WIDE_FONTS if name in known]
    return {"fontfamily": [*found[:1], "DejaVu Sans"]} if found else {}
