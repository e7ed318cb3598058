"""``ovir.map`` with the executors of dask, loky and mpi4py."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.worker_inputs import DIGITS, ONES, Killer, Slow, assert_all, counter, digits

import ovir
from ovir.workers.executors import open_executor

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings(
        "ignore::pytest.PytestUnraisableExceptionWarning"  # distributed leaves sockets open when a connection fails
    ),
]
EXPECTED = ovir.compile_model(DIGITS)([np.concatenate([one["image"] for one in digits(10)])])[0]


@pytest.fixture(scope="module")
def dask() -> Iterator[Any]:
    """Provide the executor of a cluster of two processes on this machine."""
    pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    with open_executor(dask="local", workers=2) as executor:
        show_tests(executor)
        yield executor


def show_tests(executor: Any) -> None:
    """Let the workers of dask import worker_inputs.py."""
    executor._client.run(sys.path.append, str(Path(__file__).parents[1]))


def test_a_worker_of_dask_that_is_killed_in_the_middle_loses_nothing(dask: Any) -> None:
    found = []
    for result in ovir.map(DIGITS, digits(500), dask, ordered=False):
        found.append(result)
        if len(found) == 100:
            os.kill(min(dask._client.run(os.getpid).values()), signal.SIGKILL)
    assert_all(iter(found), EXPECTED, 500)


def test_only_inputs_that_kill_workers_of_dask_are_named(dask: Any, tmp_path: Path) -> None:
    inputs: list[Any] = [Slow(i % 10, 0.01) for i in range(12)]  # dask also blames those that wait for a dead worker
    inputs[2] = inputs[3] = Killer(str(tmp_path), 99)
    results = list(ovir.map(DIGITS, inputs, dask, on_error="return"))
    assert [i for i, result in enumerate(results) if isinstance(result, ovir.MapError)] == [2, 3]
    assert "OVIR807" in str(results[2])


def test_sessions_of_dask_share_their_state(dask: Any) -> None:
    results = ovir.map(counter(), [ONES] * 6, dask, session=[0, 1, 0, 2, 0, 1])
    assert [result[0][0] for result in results] == [1, 1, 2, 1, 3, 2]


def test_compiled_models_can_be_submitted_to_dask(dask: Any) -> None:
    compiled = ovir.compile_model(DIGITS)
    found = dask.submit(lambda model, inputs: model(inputs)[0], compiled, digits(1)[0]).result()
    np.testing.assert_allclose(found, EXPECTED[:1], atol=1e-5)


def test_a_scheduler_is_found_by_its_address(dask: Any) -> None:
    with open_executor(dask=dask._client.scheduler.address) as executor:
        assert_all(ovir.map(DIGITS, digits(5), executor), EXPECTED, 5)


def test_a_scheduler_that_does_not_answer_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    monkeypatch.setattr("ovir.workers.executors._PATIENCE", 0.5)
    with (
        pytest.raises(ovir.RunError, match=r"no scheduler of dask answers at tcp://127\.0\.0\.1:9"),
        open_executor(dask="tcp://127.0.0.1:9"),
    ):
        pass


def test_a_cluster_without_workers_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    monkeypatch.setattr("ovir.workers.executors._PATIENCE", 0.5)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", silence_logs=50) as cluster,
        open_executor(dask=cluster.scheduler_address) as executor,
        pytest.raises(ovir.RunError, match="has no workers"),
    ):
        ovir.map(DIGITS, digits(2), executor)


def test_a_cluster_that_loses_its_workers_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    monkeypatch.setattr("ovir.workers.executors._MOST_IDLE", 0.5)
    monkeypatch.setattr("ovir.workers.tasks._LONG", 0.5)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
        open_executor(dask=cluster.scheduler_address) as executor,
    ):
        show_tests(executor)
        results = ovir.map(DIGITS, [Slow(digit, 0.1) for digit in range(100)], executor)
        next(results)
        cluster.scale(0)
        with pytest.raises(ovir.RunError, match="has lost all its workers"):
            list(results)


def test_loky(tmp_path: Path) -> None:
    loky = pytest.importorskip("loky", reason="loky is not installed")
    executor = loky.get_reusable_executor(2, env={"PYTHONPATH": os.pathsep.join(sys.path)})
    inputs: list[Any] = digits(30)
    inputs[4] = Killer(str(tmp_path), 1, 4)
    assert_all(ovir.map(DIGITS, inputs, executor), EXPECTED, 30)
    executor.shutdown(kill_workers=True)


MPI = """
import sys
import numpy as np
from mpi4py.futures import MPIPoolExecutor
import ovir

if __name__ == "__main__":
    images = np.load(sys.argv[2])["image"]
    with MPIPoolExecutor() as executor:
        results = list(ovir.map(sys.argv[1], [images[i : i + 1] for i in range(10)] * 3, executor))
    print([int(result[0].argmax()) for result in results] == 3 * list(range(10)))
"""


def test_mpi(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    mpiexec = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if mpiexec is None:
        pytest.skip("there is no MPI runtime: no program mpiexec")
    script = tmp_path / "script.py"
    script.write_text(MPI)
    command = [mpiexec, "-n", "3", sys.executable, "-m", "mpi4py.futures", str(script)]
    files = [str(DIGITS), str(DIGITS.with_name("digits_input.npz"))]
    done = subprocess.run([*command, *files], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "True\n", done.stderr


# --------------------------------------------------------------------------- machines that share no files


def test_workers_that_cannot_reach_the_model_get_its_content(tmp_path: Path) -> None:
    for suffix in (".xml", ".bin"):
        (tmp_path / f"m{suffix}").write_bytes(DIGITS.with_suffix(suffix).read_bytes())
    with ovir.map(tmp_path / "m.xml", digits(10), workers=2) as results:
        path = Path(results._tasks._function.path)
        (path.parent / "elsewhere").mkdir()
        path.unlink()
        assert_all(results, EXPECTED, 10)
