"""Old releases of OpenVINO, for the tests with the mark `releases`.

`pytest -m releases` installs their packages; any other selection of tests uses only those that are installed."""

from collections.abc import Iterator

import pytest

from benchmarks.releases import PACKAGES, NoRuntimeError, OldRuntime, is_installed

RELEASES = [release for release in PACKAGES if release < "2025"]


@pytest.fixture(scope="session", params=RELEASES)
def runtime(request: pytest.FixtureRequest) -> Iterator[OldRuntime]:
    release = request.param
    if "releases" not in request.config.getoption("markexpr") and not is_installed(release):
        pytest.skip(f"OpenVINO {release} is not installed; pytest -m releases does that")
    try:
        process = OldRuntime(release)
    except NoRuntimeError as error:
        pytest.skip(str(error))
    with process:
        yield process
