"""How every fuzz test is run: briefly and always alike, or for long and by chance behind `-m slow`."""

import gc
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, Phase, configuration, given, settings

MOST = timedelta(seconds=60)  # of one example: what takes longer hangs
# Examples take turns in one folder or one export, and the slowest of them load a model each.
_COMMON: dict[str, Any] = {
    "deadline": MOST,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "phases": set(Phase) - {Phase.explain},  # which traces every line, and is slow
}
settings.register_profile("bounded", derandomize=True, **_COMMON)
settings.register_profile("long", print_blob=True, **_COMMON)

Fuzz = Callable[..., Callable[[Callable[..., None]], None]]


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep what Hypothesis caches out of the checkout."""
    configuration.set_hypothesis_home_dir(tmp_path_factory.mktemp("hypothesis"))


LONG = [pytest.mark.slow, pytest.mark.timeout(7200)]


@pytest.fixture(params=[pytest.param(1, id="bounded"), pytest.param(60, id="long", marks=LONG)])
def times(request: pytest.FixtureRequest) -> int:
    """Give how many times as much to do as in the bounded run."""
    return request.param


@pytest.fixture
def fuzz(times: int) -> Fuzz:
    """Give a decorator that runs a function at once on many examples: `@fuzz(30, text=texts)`.

    The number is that of the bounded run, which draws the same examples every time.
    """
    profile = settings.get_profile("bounded" if times == 1 else "long")

    def decorate(count: int, /, **strategies: Any) -> Callable[[Callable[..., None]], None]:
        return lambda check: given(**strategies)(settings(profile, max_examples=count * times)(check))()

    return decorate


class Memory:
    """How much memory the process holds, in MB."""

    def __init__(self) -> None:
        self.start = self.held()

    @staticmethod
    def held() -> float:
        """Return what is held now."""
        gc.collect()
        return psutil.Process().memory_info().rss / 1e6

    @property
    def growth(self) -> float:
        """Return how much more it is than at first."""
        return self.held() - self.start


@pytest.fixture
def memory() -> Callable[[], Memory]:
    """Give a function that begins to watch the memory."""
    return Memory
