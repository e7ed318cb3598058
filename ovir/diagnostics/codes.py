"""Every kind of diagnostic: its number, which is never reused, its meaning and its severity.

0xx dangers of untrusted files, 1xx the file and its XML, 2xx the graph, 3xx attributes, 4xx types and shapes,
5xx weights, 6xx bodies and variables,
7xx advice, 8xx running, 9xx use of the API. docs/diagnostics.md has a section for each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType


class Severity(StrEnum):
    """How bad a diagnostic is; a member equals its text, such as ``"error"``."""

    ERROR = "error"
    """The file is wrong: OpenVINO refuses it, or reads something else than it says."""
    WARNING = "warning"
    """The file can be read, but something else was probably meant."""
    INFO = "info"
    """The file is correct, but could be better."""


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of diagnostic. ``severity`` is the one that ``check`` reports."""

    id: str
    meaning: str
    severity: Severity = Severity.ERROR
    unusable: bool = False
    """Whether the file itself is unusable: missing, of another format, or truncated."""
    tolerated: bool = False
    """Whether a reader recovers from the error: ``read_model`` only warns."""
    summed: bool = False
    """Whether ``check`` groups all diagnostics of this code in a file, even if their messages differ."""


CODES: dict[str, Code] = {}
"""All codes by id, such as ``OVIR402``."""


def _code(number: int, meaning: str, severity: Severity = Severity.ERROR, **kind: bool) -> Code:
    code = Code(f"OVIR{number:03}", meaning, severity, **kind)
    assert code.id not in CODES, code.id
    return CODES.setdefault(code.id, code)


def _warning(number: int, meaning: str, **kind: bool) -> Code:
    return _code(number, meaning, Severity.WARNING, **kind)


def _info(number: int, meaning: str, **kind: bool) -> Code:
    return _code(number, meaning, Severity.INFO, **kind)


# --------------------------------------------------------------------------- untrusted files

OVER_BUDGET = _code(1, "a file takes more time or memory to check than its budget")
LINK = _code(2, "a file or a folder is a symbolic link")
SPECIAL_FILE = _code(3, "a pipe, a device, a socket or a folder is in the place of a file")
XML_CONSTRUCT = _code(4, "the XML has a construct that IR does not need")
NOT_UTF8 = _code(5, "the topology is in another encoding than UTF-8")
OUT_OF_PROPORTION = _code(6, "a text, the nesting or a number of elements is out of proportion")
LARGE_TENSOR = _code(7, "a tensor is out of proportion to the file")
LONG_LOOP = _code(8, "a loop runs too often, or never ends")
NAMED_PATH = _code(9, "the file names a path, an address or a library")
UNSAFE_NAME = _code(10, "a name has characters that are invisible or that a terminal obeys")
COMPRESSED = _code(11, "a compressed model, which is not looked into")
SPELLING = _code(12, "a number, a type or an opset is spelled as no writer of IR spells it")
HEAVY_RUN = _code(15, "a run computes or holds too much")
UNLIMITED_LOOP = _warning(16, "nothing in the file limits the iterations of a loop")

# --------------------------------------------------------------------------- the file and its XML

UNREADABLE = _code(101, "a file cannot be read at all", unusable=True)
NOT_XML = _code(102, "the topology is not well-formed XML", unusable=True)
TRUNCATED = _code(103, "the topology is truncated", unusable=True)
LFS_POINTER = _code(104, "the file is a git-LFS pointer", unusable=True)
NOT_IR = _code(105, "the XML is not OpenVINO IR", unusable=True)
IR_VERSION = _code(106, "the IR version is missing, unknown, or no longer read by OpenVINO", unusable=True)
ENTITIES = _code(107, "the document declares entities, which are not expanded", unusable=True)
DOCTYPE = _warning(108, "the document has a DOCTYPE, which IR does not need")
MISSING_ELEMENT = _code(109, "an element that the format requires is missing")
MISSING_KEY = _code(110, "an element lacks an attribute that the format requires")
BAD_NUMBER = _code(111, "an id or another number of the format is not a number")
BAD_DIM = _code(112, "a <dim> is not a size")
INTERVAL_DIM = _warning(113, "a <dim> is an interval, and OpenVINO reads only its first number")
BAD_PRECISION = _code(114, "a port's precision is not an element type")
NO_PRECISION = _code(115, "an output port does not declare its precision", tolerated=True)
UNKNOWN_ELEMENT = _warning(116, "an element is not part of the format and is ignored")
REPEATED_ELEMENT = _warning(117, "an element that may occur once occurs twice; the second is ignored")
REPEATED_RT_INFO = _code(118, "one <rt_info> has an attribute twice")
PRE_PROCESS = _code(119, "a <pre-process> section contradicts the model")
TOO_DEEP = _code(120, "bodies are nested too deeply")
ENCODING = _warning(121, "the text is not in the encoding that the file declares")

# --------------------------------------------------------------------------- the graph

UNKNOWN_TYPE = _code(201, "an operation that no opset contains", tolerated=True)
UNKNOWN_OPSET = _code(202, "a layer's version is not an opset", tolerated=True)
NOT_IN_OPSET = _code(203, "an operation that the named opset does not contain", tolerated=True)
DUPLICATE_ID = _code(204, "two layers have the same id")
DUPLICATE_PORT = _code(205, "two ports of a layer have the same id")
EDGE_FROM_NOWHERE = _code(206, "an edge comes from a layer that does not exist")
EDGE_TO_NOWHERE = _warning(207, "an edge leads to a layer that does not exist")
EDGE_PORT = _code(208, "an edge names a port that its layer does not have")
FED_TWICE = _code(209, "two edges lead to one input port")
UNFED_INPUT = _code(210, "no edge leads to an input port")
CYCLE = _code(211, "layers form a cycle")
DEAD_LAYER = _info(212, "no result and no state depends on a layer; OpenVINO drops it")
DUPLICATE_NAME = _warning(213, "two layers have the same name", summed=True)
TENSOR_NAME = _warning(214, "two tensors have the same tensor name", summed=True)
NO_RESULT = _warning(215, "the model has no Result")
UNUSED_PARAMETER = _info(216, "nothing reads a Parameter")
INPUT_COUNT = _code(217, "an operation has more or fewer inputs than it takes")
OUTPUT_COUNT = _code(218, "a layer declares more outputs than its operation has", tolerated=True)
NAME_COLLISION = _code(219, "in a file of version 10, a tensor has the name of another layer")
RESULT_NAME = _warning(220, "two Results have the same name")
EXTENSION = _code(221, "layers need an extension, which is not registered", tolerated=True)
EXCHANGED_INPUTS = _code(222, "two inputs of a layer look exchanged", tolerated=True)

# --------------------------------------------------------------------------- attributes

MISSING_ATTRIBUTE = _code(301, "a required attribute is missing")
BAD_ATTRIBUTE = _code(302, "an attribute's text is not a value of its type")
ATTRIBUTE_CHOICE = _code(303, "an attribute's value is not among the choices, or below the minimum")
UNKNOWN_ATTRIBUTE = _warning(304, "an attribute is unknown and is ignored")
AXIS = _code(305, "an axis is outside the rank of its tensor, or repeated")
NO_ELEMENT_TYPE = _warning(306, "a Parameter does not declare its element type")
IGNORED_PADS = _info(307, "auto_pad overrides the given pads")
UNSPECIFIED = _code(
    308, "an attribute that the specification requires is missing; readers assume a default", Severity.WARNING,
    tolerated=True,
)  # fmt: skip

# --------------------------------------------------------------------------- types and shapes

INFERENCE = _code(401, "an operation's inputs or attributes contradict its specification")
DECLARED_SHAPE = _code(402, "a declared shape differs from the inferred one", tolerated=True)
DECLARED_TYPE = _code(403, "a declared element type differs from the inferred one", tolerated=True)
OWN_SHAPE = _code(404, "the port of a Parameter or Const contradicts the layer's own shape", tolerated=True)
OWN_TYPE = _warning(405, "the port of a Parameter or Const contradicts the layer's own element type")
INPUT_SHAPE = _code(406, "an input port declares another shape than its tensor has", tolerated=True)
INPUT_TYPE = _code(407, "an input port declares another element type than its tensor has", tolerated=True)
RANK = _code(408, "an input has a rank that the operation does not take")
ELEMENT_TYPE = _code(409, "an input has an element type that the operation does not take")
TYPES_DIFFER = _code(410, "inputs that must have the same element type have different ones")
SIZE_OVERFLOW = _code(411, "a tensor has more elements than 64 bits can count")
TOO_LARGE = _warning(412, "a tensor does not fit into the memory of this machine")
WRITTEN_TWICE = _warning(413, "a dimension is declared twice: once as unknown, once as a number")

# --------------------------------------------------------------------------- weights

NO_WEIGHTS = _code(501, "the file of weights is missing", unusable=True)
PAST_END = _code(502, "a constant lies past the end of the weights")
TOO_FEW_BYTES = _code(503, "a constant has fewer bytes than its shape and element type need")
TOO_MANY_BYTES = _warning(504, "a constant has more bytes than its shape and element type need")
WEIGHTS_LFS = _code(505, "the file of weights is a git-LFS pointer", unusable=True)
STRING_DATA = _code(506, "the data of a string constant are invalid")
OVERLAP = _warning(507, "constants overlap in the weights without being equal")
UNUSED_BYTES = _info(508, "no constant uses some bytes of the weights")
MISALIGNED = _info(509, "a constant is not aligned to its element size")
NON_FINITE = _warning(510, "a constant holds NaN or infinity")
INDEX_RANGE = _warning(511, "a constant index is outside the axis that it indexes")
F16_OVERFLOW = _warning(512, "a constant holds a value outside the range of f16")
BOOLEAN_BYTES = _warning(513, "a boolean constant holds bytes other than 0 and 1")
ZERO_DIVISOR = _warning(514, "an integer divisor is a constant that holds zero")
NARROWED = _info(515, "a 64-bit constant holds values that devices clip to 32 bits", summed=True)
ZERO_SCALE = _warning(516, "a compressed weight's scale is zero, or not finite")
FOREIGN_WEIGHTS = _code(517, "the weights belong to another model")
ZERO_WEIGHTS = _warning(518, "weights are all zero", summed=True)

# --------------------------------------------------------------------------- bodies and variables

NO_BODY = _code(601, "If, Loop or TensorIterator has no body")
NO_PORT_MAP = _code(602, "a body has no port map")
MAP_LAYER = _code(603, "a port map names a layer that is not a Parameter or Result of its body")
MAP_PORT = _code(604, "a port map names a port that the layer does not have")
MAP_TWICE = _code(605, "a port map feeds a Parameter or an output twice")
MAP_SHARED = _warning(606, "two entries of a port map have the same external port; OpenVINO keeps only the first")
MAP_UNFED = _code(607, "a port map leaves a Parameter of the body or an output of the layer without a source")
BACK_EDGE = _code(608, "a back edge does not connect a Result to a Parameter of the body")
BODY = _code(609, "the slices, types or counts of a body are inconsistent")
MAP_PURPOSE = _warning(610, "a port map has an unknown purpose")
NO_READ_VALUE = _code(611, "an Assign has no ReadValue for its variable")
NO_ASSIGN = _info(612, "a variable is read but never assigned")
ASSIGNED_TWICE = _warning(613, "two Assigns write the same variable")
VARIABLE_TYPE = _code(614, "an assigned value contradicts the declared type or shape of its variable")
READ_TWICE = _warning(615, "two ReadValues declare the same variable differently")
MAP_IDLE = _warning(616, "a back edge, or an attribute of a port map, has no effect")

# --------------------------------------------------------------------------- advice

NEWER_THAN_RUNTIME = _code(701, "the given OpenVINO release does not know something in the file")
NO_OP = _info(702, "a layer passes its input on unchanged", summed=True)
NEGATIVE_INDEX = _info(703, "devices treat a negative index differently", summed=True)
DOUBLE = _info(704, "CPU and GPU plugins compute an f64 tensor in f32", summed=True)
DUPLICATE_CONSTANT = _info(705, "the weights contain equal constants more than once", summed=True)
CANCELLED = _info(706, "two layers in a row undo each other", summed=True)
UNKNOWN_RANK = _info(707, "an input of the model has an unknown rank")
DEVICE_REFUSAL = _code(708, "the given device refuses something in the file")
DEVICE_DOUBT = _warning(709, "the given device may refuse something in the file")
DEVICE_TYPE = _info(710, "the given device computes in another element type")
PINNED_SIZE = _warning(711, "a constant fixes a size that an input leaves open")

# --------------------------------------------------------------------------- running, and use of the API

RUN = _code(801, "a value that an operation cannot work on")
NOT_SUPPORTED = _code(802, "an operation or variant that ovir does not execute")
OUTSIDE_SPEC = _code(803, "a value that the specification excludes, and on which devices may differ")
OUT_OF_MEMORY = _code(804, "there is not enough memory")
ENGINE = _code(805, "another engine cannot compile or run a model")
NOT_EXPORTED = _code(806, "a layer that cannot be exported to ONNX")
WORKER_DIED = _code(807, "a worker process ended while it worked")
SLOW_ENGINE = _warning(808, "the engine onnxruntime may be slower than NumPy")
DEVICE_ANSWER = _code(809, "the device itself says that it does not support a layer")
CHOSEN_SIZES = _info(810, "sizes were chosen for dynamic inputs")
NARROW_TENSOR = _warning(811, "a window, stride or resize exceeds its tensor in a run")
CHANGED_RESULTS = _code(812, "an edit would change the results of the model")
BAD_INPUT = _code(901, "an input tensor does not match the model")
USAGE = _code(902, "a call with arguments that do not fit")
UNWRITABLE = _code(903, "an output cannot be written")
NO_ENGINE = _code(904, "a package or an engine is not installed, or a device does not exist")
INTERNAL = _code(999, "ovir itself failed")

NEVER_IGNORED = frozenset(
    {code.id for code in (OVER_BUDGET, LINK, SPECIAL_FILE, COMPRESSED, OUT_OF_MEMORY, WORKER_DIED, INTERNAL)}
    | {code.id for code in CODES.values() if code.unusable and code is not NO_WEIGHTS}
)
"""Codes that nobody can ignore; otherwise a file that was not checked would seem to have passed."""


_PACKAGED = Path(__file__).with_name("diagnostics.md")
_WRITTEN = Path(__file__).parents[2] / "docs" / "diagnostics.md"


def section(code: str) -> str:
    """Return the section of a code, such as ``OVIR402``, as Markdown with its heading; raise KeyError for others."""
    return _sections()[code]


@cache
def _sections() -> Mapping[str, str]:
    path = _PACKAGED if _PACKAGED.is_file() else _WRITTEN
    page = path.read_text(encoding="utf-8")
    found = re.finditer(r"^## (OVIR\d+): .*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return MappingProxyType({match[1]: _without_links(match[0].strip()) for match in found})


def _without_links(text: str) -> str:
    """Return the text with the names of linked pages instead of links, which lead nowhere from another place."""
    return re.sub(r"\[([^\]]*)\]\(([^)#\s]+)(?:#[^)]*)?\)", _named, text)


def _named(link: re.Match[str]) -> str:
    words, target = link[1], link[2]
    if ":" in target:
        return link[0]
    return f"docs/{target}" if words in ("how", target) else f"{words} (docs/{target})"
