"""The table of the module of each operation, by which modules are imported when a model uses them."""

import subprocess
import sys

from ovir.ops import find


def test_an_operation_that_no_opset_has_is_not_found() -> None:
    assert find("Swirl", 1) is None
    assert find("Gather", 2) is None


def test_a_module_is_imported_when_its_operation_is_asked_for() -> None:
    code = (
        "import sys; from ovir.ops import resolve\n"
        "print('ovir.ops.roi_pooling' in sys.modules, resolve('roipooling', 'opset2').__name__)\n"
        "print('ovir.ops.roi_pooling' in sys.modules, 'ovir.ops.ctc' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "ROIPooling", "True", "False"]
