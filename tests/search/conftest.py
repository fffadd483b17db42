"""The three kinds of models, made once for all tests of the search."""

import families
import pytest


@pytest.fixture(scope="session", params=families.NAMES)
def family(request: pytest.FixtureRequest) -> families.Family:
    return families.make(request.param)
