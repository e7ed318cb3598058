"""Write the .bin and .npz files next to the hand-written models in examples/xml.

The expected outputs are literals, so that they test the kernels instead of being made by them. Keys are the Parameter
names for inputs, and out0 for the first Result.

    python examples/write_samples.py [--output-dir DIR]
"""

import argparse
from pathlib import Path

import numpy as np

from ovir.core.arrays import Array


def f32(values: object) -> Array:
    return np.array(values, dtype=np.float32)


def i64(values: object) -> Array:
    return np.array(values, dtype=np.int64)


# The weights of each model: its constants in the order of their offsets.
WEIGHTS: dict[str, list[Array]] = {
    "gather_1_spec.bin": [i64(1)],
    "gather_1_small.bin": [i64(1)],
    "dynamic_shapes.bin": [i64([0, 1]), i64(0), i64([-1])],
    "broken/axis_out_of_range.bin": [i64(5)],
}

# Model -> inputs, expected outputs.
SAMPLES: dict[str, tuple[dict[str, Array], dict[str, Array]]] = {
    "gather_elements_example1": (
        {"data": f32([[1, 2], [3, 4]]), "indices": i64([[0, 1], [0, 0]])},
        {"out0": f32([[1, 4], [1, 2]])},
    ),
    "gather_elements_example2": (
        {"data": f32([[1, 7], [4, 3]]), "indices": i64([[1, 1, 0], [1, 0, 1]])},
        {"out0": f32([[7, 7, 1], [3, 4, 3]])},
    ),
    "gather_elements_example3": (
        {"data": f32([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), "indices": i64([[1, 0, 1], [1, 2, 0]])},
        {"out0": f32([[4, 2, 6], [4, 8, 3]])},
    ),
    "gather_1_small": (
        {
            "data": f32([[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]]),
            "indices": i64([[2, 0], [1, 1]]),
        },
        {
            "out0": f32(
                [
                    [[[5, 6], [1, 2]], [[3, 4], [3, 4]]],
                    [[[11, 12], [7, 8]], [[9, 10], [9, 10]]],
                ]
            )
        },
    ),
    # One image of two channels, each 3 by 4: rows are joined, values keep their order.
    "dynamic_shapes": (
        {
            "data": f32(
                [
                    [
                        [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]],
                        [[12, 13, 14, 15], [16, 17, 18, 19], [20, 21, 22, 23]],
                    ]
                ]
            )
        },
        {
            "out0": f32(
                [
                    [
                        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
                        [12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23],
                    ]
                ]
            )
        },
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the .bin and .npz files of the hand-written examples.")
    parser.add_argument("--output-dir", type=Path, default=Path(__file__).parent / "xml")
    directory: Path = parser.parse_args().output_dir
    (directory / "broken").mkdir(parents=True, exist_ok=True)

    for name, constants in WEIGHTS.items():
        little_endian = (c.astype(c.dtype.newbyteorder("<")).tobytes() for c in constants)
        (directory / name).write_bytes(b"".join(little_endian))
    for name, (inputs, outputs) in SAMPLES.items():
        np.savez(directory / f"{name}_input.npz", allow_pickle=False, **inputs)
        np.savez(directory / f"{name}_expected.npz", allow_pickle=False, **outputs)


if __name__ == "__main__":
    main()
