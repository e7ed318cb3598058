"""The contract of ``infer`` is held in all tests (see inference_contract.py); here, that its breaches are found."""

import inference_contract
import numpy as np
from inference_contract import watched_infer

from ovir.core.tensor_types import TensorType, constant_type
from ovir.ops.base.operator import Operator
from ovir.ops.base.traits import ALL


class Reader(Operator):
    type = "Reader"
    opset = 1
    value_inputs = (1,)

    def infer(self, data: TensorType, shape: TensorType) -> TensorType:
        return data.with_value(data.value)


def test_a_value_that_is_read_and_not_declared_is_a_fault() -> None:
    known = constant_type(np.zeros(2, np.float32))
    watched_infer(Reader.infer)(Reader(), known, known)
    assert inference_contract.faults == ["Reader-1 reads the value of input 0: value_inputs is (1,)"]
    inference_contract.faults.clear()


def test_declared_value_inputs() -> None:
    op = Reader()
    assert [op.reads_value(i) for i in range(3)] == [False, True, False]

    class All(Reader):
        value_inputs = ALL

    assert all(All().reads_value(i) for i in range(3))
