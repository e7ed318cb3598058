import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for `builder` and the like

from inference_contract import _inference_keeps_its_contract, _watched_inference  # noqa: F401 - fixtures of all tests
from kernel_contract import _kernels_keep_their_contract, _watched_kernels  # noqa: F401 - fixtures of all tests
