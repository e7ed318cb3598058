"""A Loop and a TensorIterator: two files of the folder of bad ones, without their faults."""

from pathlib import Path

BAD = Path(__file__).parent.parent / "data" / "bad"
BIN = (BAD / "OVIR610_output_purpose.bin").read_bytes()
LOOP = (BAD / "OVIR610_output_purpose.xml").read_text().replace("execution_conditon", "execution_condition")
PAIRS = (BAD / "OVIR304_in_port_map.xml").read_text().replace("strid=", "stride=")
