"""Every kind of diagnostic that others than one rule report, with the text that explains it.

0xx dangers of untrusted files, 1xx the file and its XML, 2xx the graph, 3xx attributes, 4xx types and shapes,
5xx weights, 6xx bodies and variables, 7xx advice, 8xx running, 9xx use of the API. A number is never reused. A code
that only its rule reports is declared with the rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """The severity of a diagnostic; a member equals its text, such as ``"error"``."""

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
    text: str = ""
    """The meaning, an example with indented lines, and how to fix it; links lead to pages of ``docs/``."""
    unusable: bool = False
    """Whether the file itself is unusable: missing, of another format, or truncated."""
    tolerated: bool = False
    """Whether a reader recovers from the error: ``read_model`` only warns."""
    summed: bool = False
    """Whether ``check`` groups all diagnostics of this code in a file, even if their messages differ."""
    danger: float = 0.0
    """The severity that SARIF gives it in an untrusted file: from 4 on medium, from 7 on high, from 9 on critical."""
    honest: bool = False
    """Whether honest models may have it: in an untrusted file, only codes with a ``danger`` that are not honest are
    errors wherever they occur."""
    fixable: str = ""
    """The option of ``ovir check`` that fixes it where the exact change is known: ``--fix`` or ``--unsafe-fixes``."""

    @staticmethod
    def error(number: int, meaning: str, **kind: Any) -> Code:
        return Code(f"OVIR{number:03}", meaning, **kind)

    @staticmethod
    def warning(number: int, meaning: str, **kind: Any) -> Code:
        return Code.error(number, meaning, severity=Severity.WARNING, **kind)

    @staticmethod
    def info(number: int, meaning: str, **kind: Any) -> Code:
        return Code.error(number, meaning, severity=Severity.INFO, **kind)

    def says(self, text: str) -> Code:
        """Return the code with its text, registered in ``CODES``."""
        assert self.id not in CODES, self.id
        return CODES.setdefault(self.id, replace(self, text=text.strip()))

    @property
    def section(self) -> str:
        """Return the meaning as a heading, and the text, in Markdown."""
        meaning = re.sub(r"<.+?>", r"`\g<0>`", self.meaning)
        text = re.sub(r"^(?: {4}.*\n)+", _fenced, self.text, flags=re.MULTILINE)
        fixable = f"\n\nFixable: {_FIXABLE[self.fixable]}" if self.fixable else ""
        return f"## {self.id}: {meaning}\n\n{text}{fixable}"


_FIXABLE = {
    "--fix": "`--fix` changes the file where results stay the same.",
    "--unsafe-fixes": "`--fix --unsafe-fixes` changes the file, and perhaps results.",
}


def _fenced(example: re.Match[str]) -> str:
    """Return the indented lines of an example as a block of code."""
    lines = re.sub("^ {4}", "", example[0], flags=re.MULTILINE)
    language = "xml" if lines.lstrip().startswith("<") else "text"
    return f"\n```{language}\n{lines}```\n\n"


CODES: dict[str, Code] = {}
"""The codes by id, such as ``OVIR402``; all of them as soon as ``ovir.checks.rules`` is imported."""

# --------------------------------------------------------------------------- untrusted files

OVER_BUDGET = Code.error(1, "a file takes more time or memory to check than its budget", danger=7.5).says("""
Error, of files checked with `--untrusted` only, as all codes of 0xx. The process that checked the file was ended, or
ran out of memory. The file was not checked, so it must not pass; the diagnostic cannot be ignored. See [untrusted
files](untrusted-models.md).
    error[OVIR001] the check takes more than 30 s
Fix: for large models that you expect, give more with `--timeout` and `--memory`.
""")

LINK = Code.error(2, "a file or a folder is a symbolic link", danger=7.5).says("""
Error. A link may lead to any file of the machine that opens it, or to a folder around it. ovir does not follow it.
    $ ls -l model.bin
    lrwxrwxrwx 1 me me 11 May  4 10:12 model.bin -> /etc/shadow
Fix: put a copy of the file there. The cache of the Hugging Face Hub consists of links; its command `hf download` makes
copies if it is given a folder.
""")

SPECIAL_FILE = Code.error(3, "a pipe, a device, a socket or a folder is in the place of a file", danger=7.5).says("""
Error. A reader that opens a pipe waits forever, and one that reads a device may never end. ovir opens neither.
    $ ls -l model.bin
    prw-r--r-- 1 me me 0 May  4 10:12 model.bin
Fix: replace it by the file.
""")

XML_CONSTRUCT = Code.error(4, "the XML has a construct that IR does not need", danger=6.5).says("""
Error. A processing instruction, a namespace (XInclude among them, which reads other files) or a comment after the
model.
    <?xml-stylesheet href="http://example.com/a.xsl"?>
Fix: remove it.
""")

NOT_UTF8 = Code.error(5, "the topology is in another encoding than UTF-8", danger=5.0).says("""
Error. A scanner that takes the bytes as they are sees another text than a reader that decodes them.
    <?xml version="1.0" encoding="utf-7"?>
Fix: save the file as UTF-8.
""")

OUT_OF_PROPORTION = Code.error(6, "a text, the nesting or a number of elements is out of proportion", danger=7.5).says("""
Error. An attribute, text or comment of more than 1,048,576 characters, elements that are nested more than 160 deep,
more than 1,000 attributes of one element or tags in the file, more than 200,000 layers, 1,000,000 edges, 5,000,000
other elements of a graph or 100,000 of runtime information, a .bin of which hardly anything is on the disk, or more
than 1,000 diagnostics.
    <layer id="0" name="AAAA ... ten million times" type="Parameter" version="opset1">
Fix: no model needs it; convert the model again.
""")  # noqa: E501

LONG_LOOP = Code.error(8, "a loop runs too often, or never ends", danger=7.5).says("""
Error in untrusted files: the body runs more than a million times, the loops around it included; or the loop has no trip
count below that, and its condition is always true, or the same in each iteration. A condition such as `i < 100`, where
each iteration adds to `i`, is a trip count. In other files, a loop that never ends is a warning, which `ovir run`
prints before it begins.
    <data element_type="i64" shape="" offset="0" size="8" />   <!-- the trip count: 9223372036854775807 -->
Fix: limit the trip count.
""")

NAMED_PATH = Code.error(9, "the file names a path, an address or a library", danger=6.5, honest=True).says("""
Error. An attribute of a layer, or the runtime information, is an absolute path, a path with `..` or a variable such as
`${HOME}`, a URL, a script, or the name of a library such as `libop.so`. ovir opens nothing of it; other programs might.
A path also shows something of the machine that wrote the file.
    <input_model value="/home/ann/models/secret.onnx" />
Fix: remove it.
""")

UNSAFE_NAME = Code.error(10, "a name has characters that are invisible or that a terminal obeys", danger=5.0).says("""
Error. Control characters, characters that change the direction of a text, and characters that show nothing: such a name
looks like another one, or changes what a terminal shows.
    <layer id="0" name="data&#x202E;gnp.exe" type="Parameter" version="opset1">
Fix: rename it.
""")

COMPRESSED = Code.error(11, "a compressed model, which is not checked", danger=6.5).says("""
Error. Some readers decompress an .xml on the fly, to a size that nobody knows before.
    model.xml.gz: error[OVIR011] a compressed model, which is not checked
Fix: decompress it, and check the .xml.
""")

SPELLING = Code.error(12, "a number, a type or an opset is spelled as no writer of IR spells it", danger=5.0).says("""
Error. Readers differ in what they make of `+16`, `016`, `16 ` or `relu`: one refuses it, one reads another number, and
a scanner that compares texts overlooks it.
    <data element_type="f32" shape="4" offset="+0" size="16"/>
Fix: write it as OpenVINO does, `offset="0"`.
""")

# --------------------------------------------------------------------------- the file and its XML

UNREADABLE = Code.error(101, "a file cannot be read at all", unusable=True).says("""
Error; the file is unusable. The file is missing, empty, a directory, or not readable. The same code is reported for a
`.bin`, except for a missing one, which is OVIR501.

A process that is killed at the moment at which it replaces a saved model leaves no .xml; the message says so, and the
hint names the hidden files beside it that hold the older model.
    $ ls -l model.xml
    -rw-r--r-- 1 me me 0 May  4 10:12 model.xml
Fix: copy or convert the file again; check the path and the permissions.
""")

NOT_XML = Code.error(102, "the topology is not well-formed XML", unusable=True, danger=4.0).says("""
Error; the file is unusable. OpenVINO refuses the file and gives an offset in bytes (a wrong encoding is OVIR121). The
line is the one on which the parser stops; if a tag is not closed, the hint names the line on which it was opened.
    <data axis=1 />
Fix: write every value in quotes, and close every tag: `<data axis="1" />`. If the message names a merge conflict, git
could not merge two versions of the file: take one of them as a whole.
""")

TRUNCATED = Code.error(103, "the topology is truncated", unusable=True).says("""
Error; the file is unusable. The file ends in the middle: a copy or a download was interrupted, or the disk was full.
ovir does not look at what comes before the end.
        <edge from-layer="0" from-port="0" to-layer="1"
Fix: copy, download or convert the file again.
""")

LFS_POINTER = Code.error(104, "the file is a git-LFS pointer", unusable=True).says("""
Error; the file is unusable. The repository keeps the model with git-LFS, but git ran without it and left a text of
three lines. OpenVINO reports that it is unable to read the model.
    version https://git-lfs.github.com/spec/v1
    oid sha256:4d7a214614ab2935...
    size 18217
Fix: `git lfs install`, then `git lfs pull`; in CI, check out with LFS.
""")

NOT_IR = Code.error(105, "the XML is not OpenVINO IR", unusable=True).says("""
Error; the file is unusable. The root element is not `<net>`. When `ovir check` searches a folder, it skips such files
silently, because a folder may hold XML of other kinds. A folder without any model is an error (OVIR101).
    <project name="model">
Fix: name the right file.
""")

IR_VERSION = Code.error(106, "the IR version is missing, unknown, or no longer read by OpenVINO", unusable=True).says("""
Error; the file is unusable. `<net>` has no version, or a version other than 10 and 11. OpenVINO has not read versions
below 10 since release 2022.1.
    <net name="model" version="7">
Fix: convert the original model again. Changing the number alone is not enough: older versions have other operations. If
the number is missing or misspelled, write `version="11"`.
""")  # noqa: E501

ENTITIES = Code.error(107, "the document declares entities, which are not expanded", unusable=True, danger=9.1).says("""
Error; the file is unusable. Entities are texts that a reader inserts in place of names, from the file or from
elsewhere, and they can grow without limit. No writer of IR needs them. OpenVINO does not expand them either and fails
where they occur.
    <!DOCTYPE net [ <!ENTITY size "3"> ]>
    ...
    <dim>&size;</dim>
Fix: write out the text that they stand for, and remove the DOCTYPE.
""")

DOCTYPE = Code.warning(108, "the document has a DOCTYPE, which IR does not need", danger=8.2).says("""
Warning. OpenVINO skips the DOCTYPE. Other readers may try to fetch what it names.
    <!DOCTYPE net SYSTEM "ir.dtd">
Fix: remove the line.
""")

MISSING_ELEMENT = Code.error(109, "an element that the format requires is missing").says("""
Error. A net or body has no `<layers>`, its layers have inputs but there is no `<edges>`, or a Parameter has no output
port. OpenVINO reads a net without layers as an empty model; it refuses the other files with a message that points
elsewhere.
    <layer id="0" name="x" type="Parameter" version="opset1">
      <data shape="2,3" element_type="f32" />
    </layer>
Fix: add the missing element, here `<output><port id="0" precision="FP32">...</port></output>`.
""")

MISSING_KEY = Code.error(110, "an element lacks an attribute that the format requires", fixable="--fix").says("""
Error. A layer needs `id`, `name`, `type` and `version`; an edge needs four numbers; a port needs its `id`; an entry of
a port map needs `external_port_id` and `internal_layer_id`. OpenVINO refuses the file and gives an offset in bytes.
    <edge from-layer="1" from-port="1" to-layer="2" />
Fix: add the attribute: `to-port="0"`.
""")

BAD_NUMBER = Code.error(111, "an id or another number of the format is not a number").says("""
Error. Ids and port numbers are whole numbers from 0 to 2^64 - 1, written in digits. OpenVINO refuses the file,
sometimes with the message `stoll` alone.
    <layer id="one" name="relu" type="ReLU" version="opset1">
Fix: give the layer a number that no other layer has, and use it in its edges.
""")

BAD_DIM = Code.error(112, "a <dim> is not a size").says("""
Error. A size is a whole number that is not negative, or -1 for an unknown size; `?`, the notation of the attribute
`shape`, is not allowed. OpenVINO refuses the file. ovir does not compare what the port declares with anything.
    <dim>three</dim>
Fix: `<dim>3</dim>`
""")

INTERVAL_DIM = Code.warning(113, "a <dim> is an interval, and OpenVINO reads only its first number").says("""
Warning. Intervals belong in the attribute `shape` of a Parameter. In a port OpenVINO reads the digits up to the first
dot, which gives a static size that was not meant.
    <dim>1..4</dim>
Fix: `<dim>-1</dim>`, and `shape="1..4,3"` in the Parameter.
""")

BAD_PRECISION = Code.error(114, "a port's precision is not an element type").says("""
Error. The names are `FP32`, `FP16`, `BF16`, `FP64`, `I64`, `I32`, `U8`, `BOOL`, `STRING` and so on, in upper or lower
case. OpenVINO refuses the file.
    <port id="1" precision="FP23">
Fix: `precision="FP32"`
""")

NO_PRECISION = Code.error(115, "an output port does not declare its precision", tolerated=True, fixable="--fix").says("""
Error; tolerated by `read_model`. OpenVINO refuses the file, whatever the inferred type is. Input ports need no
precision.
    <port id="1" names="y">
Fix: `<port id="1" precision="FP32" names="y">`
""")  # noqa: E501

UNKNOWN_ELEMENT = Code.warning(116, "an element is not part of the format and is ignored").says("""
Warning. An element is misspelled or in the wrong place. OpenVINO ignores it with everything inside it: here SoftMax
would use its default axis. If a required part is missing and the element looks like a misspelling of it, it is an
error, and ovir checks the rest of the file as if it were spelled correctly.
    <dat axis="0" />
Fix: `<data axis="0" />`
""")

REPEATED_ELEMENT = Code.warning(
    117, "an element that may occur once occurs twice; the second is ignored", danger=5.0
).says("""
Warning. A layer has two `<data>`, or a net has two `<layers>` or `<edges>`. The first one counts, as in OpenVINO.
    <data axis="1" />
    <data axis="0" />
Fix: remove the wrong one, or merge the two.
""")

REPEATED_RT_INFO = Code.error(118, "one <rt_info> has an attribute twice", fixable="--fix").says("""
Error. OpenVINO refuses the file, because it cannot know which of the two is meant. The same name with another `version`
is a different attribute.
    <rt_info>
      <attribute name="old_api_map_order" version="0" value="0,1" />
      <attribute name="old_api_map_order" version="0" value="1,0" />
    </rt_info>
Fix: remove one of them.
""")

PRE_PROCESS = Code.error(119, "a <pre-process> section contradicts the model").says("""
Error. Files of version 10 may have a `<pre-process>` section with means to subtract from an input. It must name an
input of rank 2 to 5 with static sizes and give a number, or an image, for each channel. OpenVINO refuses other
sections.
    <pre-process reference-layer-name="x">   <!-- x has 3 channels -->
      <channel id="0"><mean value="104" /></channel>
      <channel id="1"><mean value="117" /></channel>
    </pre-process>
Fix: add the missing channel, or remove the section and subtract before the run.
""")

TOO_DEEP = Code.error(120, "bodies are nested too deeply", danger=7.5).says("""
Error. ovir reads bodies of If, Loop and TensorIterator to a depth of 32; real models have two or three. Deeper bodies
are not read.
    <body><layers><layer ... type="If" ...><then_body><layers>...
Fix: a tool has probably put a body into itself; write the file again.
""")

ENCODING = Code.warning(121, "the text is not in the encoding that the file declares", danger=5.0).says("""
Warning. The file contains bytes that are not UTF-8 but declares no other encoding, so ovir reads it as Latin-1; or it
declares UTF-16, or an unknown encoding, although its text is UTF-8. OpenVINO reads such files too; names with letters
other than ASCII may come out differently.
    <?xml version="1.0"?>
    <net name="caf\\xe9" version="11">
Fix: save the file as UTF-8, or declare its encoding: `<?xml version="1.0" encoding="iso-8859-1"?>`.
""")

# --------------------------------------------------------------------------- the graph

UNKNOWN_TYPE = Code.error(201, "an operation that no opset contains", tolerated=True, danger=8.8).says("""
Error; tolerated by `read_model`. OpenVINO refuses the file unless an extension provides the operation. ovir continues
with the declared shapes but cannot run the layer; register the operation with `ovir.register` to change that. Layers of
version `extension` are OVIR221.
    <layer id="1" name="act" type="Sigmod" version="opset1">
Fix: `type="Sigmoid"`
""")

UNKNOWN_OPSET = Code.error(202, "a layer's version is not an opset", tolerated=True, danger=8.8).says("""
Error; tolerated by `read_model`. The version of a layer is the name of an opset, `opset1` to `opset17`, or `extension`
(OVIR221). Other names, such as `experimental`, may come from an extension: if no operation is registered for them, one
diagnostic for the whole file lists their layers. OpenVINO refuses the file.
    <layer id="1" name="act" type="ReLU" version="1">
Fix: `version="opset1"`
""")

NOT_IN_OPSET = Code.error(203, "an operation that the named opset does not contain", tolerated=True).says("""
Error; tolerated by `read_model`. The operation exists in other opsets, which the message lists. OpenVINO refuses the
file.
    <layer id="2" name="g" type="GatherElements" version="opset1">
Fix: name an opset that contains the operation: `version="opset6"`.
""")

DUPLICATE_ID = Code.error(204, "two layers have the same id", danger=6.5).says("""
Error. Edges refer to layers by id. OpenVINO uses the last layer silently if its ports match the edges; otherwise it
refuses the file with a message about a port. If edges use an id that no layer has, the hint says that it may be the
intended one.
    <layer id="1" name="relu" ...>
    <layer id="1" name="abs" ...>
Fix: give one of them an id that no other layer has, and use it in its edges.
""")

DUPLICATE_PORT = Code.error(205, "two ports of a layer have the same id", danger=6.5).says("""
Error. The input ports of a layer must have distinct ids, and so must its output ports: an edge finds its port by id.
    <input>
      <port id="0" precision="FP32" />
      <port id="0" precision="FP32" />
    </input>
Fix: number them: 0 and 1.
""")

EDGE_FROM_NOWHERE = Code.error(206, "an edge comes from a layer that does not exist").says("""
Error. The layer was removed, or the number is wrong. OpenVINO refuses the file with a message about a layer 0 without
an opset.
    <edge from-layer="7" from-port="1" to-layer="2" to-port="0" />   <!-- no layer 7 -->
Fix: name the right layer, or remove the edge together with the port.
""")

EDGE_TO_NOWHERE = Code.warning(207, "an edge leads to a layer that does not exist").says("""
Warning. OpenVINO ignores the edge: its layer was removed, or the number is wrong. If some input without an edge
declares the same type and shape as the edge's source, ovir assumes that the edge was meant for that input: it reports
OVIR207 as an error, and no OVIR210.
    <edge from-layer="1" from-port="1" to-layer="7" to-port="0" />   <!-- no layer 7 -->
Fix: remove the edge, or name the right layer.
""")

EDGE_PORT = Code.error(208, "an edge names a port that its layer does not have").says("""
Error. Edges use the `id` of a port, not its position; the ids of outputs usually continue the ids of the inputs.
OpenVINO refuses the file.
    <edge from-layer="1" from-port="0" to-layer="2" to-port="0" />   <!-- layer 1: input 0, output 1 -->
Fix: `from-port="1"`
""")

FED_TWICE = Code.error(209, "two edges lead to one input port").says("""
Error. An input port takes one tensor. OpenVINO refuses the file, because it counts one input too many.
    <edge from-layer="1" from-port="1" to-layer="2" to-port="0" />
    <edge from-layer="0" from-port="0" to-layer="2" to-port="0" />
Fix: remove one of the edges, or lead it to another port.
""")

UNFED_INPUT = Code.error(210, "no edge leads to an input port").says("""
Error. OpenVINO refuses the file because of a wrong number of inputs, or a wrong index. If the input is the last one and
optional, OpenVINO omits it.
    <port id="1" precision="FP32">   <!-- no edge with to-port="1" -->
Fix: add the edge, or remove the port if the input is optional.
""")

CYCLE = Code.error(211, "layers form a cycle").says("""
Error. No order exists in which such layers could run, and OpenVINO refuses the file. The line is the line of the edge
that leads back in the file; the message lists the whole cycle.
    <edge from-layer="1" from-port="2" to-layer="2" to-port="0" />
    <edge from-layer="2" from-port="1" to-layer="1" to-port="1" />
Fix: remove the wrong edge. Write a recurrence as Loop, TensorIterator, or with ReadValue and Assign.
""")

NO_RESULT = Code.warning(215, "the model has no Result").says("""
Warning. OpenVINO reads the model, but it has no outputs. Perhaps its end was cut off. `ovir run` and the other commands
that compute outputs refuse such a model with an error of this code.
    <layer id="1" name="relu" type="ReLU" version="opset1">   <!-- the last one -->
Fix: add `<layer id="2" name="result" type="Result" version="opset1">` and an edge to it.
""")

INPUT_COUNT = Code.error(217, "an operation has more or fewer inputs than it takes").says("""
Error. The message gives the number of inputs and their names. OpenVINO refuses the file.
    <layer id="1" name="product" type="MatMul" version="opset1">   <!-- one input port -->
Fix: add the missing input and its edge, or remove the surplus ones.
""")

NAME_COLLISION = Code.error(219, "in a file of version 10, a tensor has the name of another layer").says("""
Error. In version 10, users may address inputs and outputs by layer name, so these names must not be tensor names of
other layers. OpenVINO refuses the file.
    <layer id="0" name="x" type="Parameter" version="opset1">
    ...
    <port id="1" precision="FP32" names="x">   <!-- of another layer -->
Fix: rename the tensor, or convert the original model to version 11.
""")

EXTENSION = Code.error(221, "layers need an extension, which is not registered", tolerated=True, danger=8.8).says("""
Info; an error (tolerated by `read_model`) if the file does not declare the element types of all outputs of these
layers. Layers of version `extension` come from an extension; layers of other unknown versions are OVIR202. If their
outputs are declared, inference continues with them. One diagnostic for the whole file names the operations and says
whether openvino_tokenizers provides them: ovir has [those of tokenizers](tokenizers.md), but not those that only
converted TensorFlow models use. OpenVINO reads the file only after the extension has been added (`import
openvino_tokenizers`, or `core.add_extension`); ovir cannot run the layers until their operations are registered.
    <layer id="8" name="RaggedToSparse_7" type="RaggedToSparse" version="extension">
Fix: nothing in the file. To run it, write a module that registers the operations
([how](own-operations.md)), and give it as `--extension MODULE.py`; in Python, import it first.
""")

EXCHANGED_INPUTS = Code.error(222, "two inputs of a layer look exchanged", tolerated=True).says("""
Error; tolerated by `read_model`. Two ports of a layer declare other shapes or element types than their tensors have,
and each matches the tensor of the other. The line is the line of the first edge; the message names both edges and the
layers that they come from. OpenVINO ignores what input ports declare and computes with the exchanged inputs. If the
operation refuses the exchanged inputs, ovir reports one diagnostic with the code of that refusal, which also mentions
the exchange.
    <edge from-layer="0" from-port="0" to-layer="2" to-port="1" />   <!-- port 1 declares the shape of layer 1 -->
    <edge from-layer="1" from-port="0" to-layer="2" to-port="0" />
Fix: exchange the values of `to-port`.
""")

# --------------------------------------------------------------------------- attributes

MISSING_ATTRIBUTE = Code.error(301, "a required attribute is missing").says("""
Error. The attribute has no default. OpenVINO refuses the file, or continues with an arbitrary initial value, such as
axis 0 for Concat.
    <layer id="2" name="join" type="Concat" version="opset1">   <!-- no <data> -->
Fix: `<data axis="1" />`
""")

BAD_ATTRIBUTE = Code.error(302, "an attribute's text is not a value of its type").says("""
Error. The attribute must be a number, a boolean, a list, an element type or a shape, and its text is not. OpenVINO
refuses the file.
    <data axis="last" />
Fix: `<data axis="-1" />`
""")

ATTRIBUTE_CHOICE = Code.error(303, "an attribute's value is not among the choices, or below the minimum").says("""
Error. The text is a word that the operation does not know, or a number below the minimum. OpenVINO refuses the file.
    <data mode="half_up" />   <!-- of a Round -->
Fix: `mode="half_away_from_zero"`; the message lists the choices.
""")

UNKNOWN_ATTRIBUTE = Code.warning(304, "an attribute is unknown and is ignored").says("""
Warning. OpenVINO ignores it too, and computes with the default of the attribute that was meant. The hint names a
similar attribute. The same code is used for `<layer>`, `<port>` and the entries of port maps and back edges; it is an
error if `purpose` was meant and the entry has no other meaning.
    <data axes="0" />   <!-- of a SoftMax -->
Fix: `axis="0"`; or remove it if it belongs to another version of the operation.
""")

AXIS = Code.error(305, "an axis is outside the rank of its tensor, or repeated").says("""
Error. Axes count from 0 to rank - 1, or from -rank to -1 from the end; axes of port maps count from 0 only. The axis
may be an attribute, or a constant in the `.bin`. OpenVINO refuses the file. A negative axis in an `<output>` of a port
map is only a warning: OpenVINO reads it, but its CPU plugin does not run it.
    <data axis="2" />   <!-- of a SoftMax of [2,3] -->
Fix: `axis="1"`
""")

UNSPECIFIED = Code.warning(
    308,
    "an attribute that the specification requires is missing; readers assume a default",
    tolerated=True,
    fixable="--fix",
).says("""
Warning. The specification gives no default, and OpenVINO uses one of its own. Another reader may refuse the file or
choose another default. If the layer has an unknown attribute with a similar name, it is an error (tolerated by
`read_model`): the model computes with the default instead of the value that was written.
    <data block_size="2" />   <!-- of a SpaceToDepth -->
Fix: `<data block_size="2" mode="blocks_first" />`
""")

# --------------------------------------------------------------------------- types and shapes

INFERENCE = Code.error(401, "an operation's inputs or attributes contradict its specification").says("""
Error. The shapes or values of the inputs contradict each other or the attributes; the message says how. OpenVINO
refuses the file when it infers the layer.
    <layer id="2" name="product" type="MatMul" version="opset1">   <!-- [2,3] and [4,5] -->
Fix: transpose an input, put a Reshape before it, or fix the layer that produces the wrong shape.
""")

DECLARED_SHAPE = Code.error(
    402, "a declared shape differs from the inferred one", tolerated=True, fixable="--fix"
).says("""
Error; a warning in dead layers, at outputs that nothing reads, and in files of version 10. Tolerated by `read_model`.
OpenVINO infers shapes again and ignores those in the file, so it loads it silently. Other readers, converters and
people rely on the file. If all readers of the tensor declare the same shape as the port, inference continues with that
shape. If a later layer fails with the inferred shape, that layer is reported instead, and its message includes this
one.
    <port id="2" precision="FP32" names="y">   <!-- of [2,3] times [3,5] -->
      <dim>2</dim>
      <dim>4</dim>
    </port>
Fix: write the inferred shape, which the message gives; or, if the declared one is meant, fix the inputs.
""")

DECLARED_TYPE = Code.error(
    403, "a declared element type differs from the inferred one", tolerated=True, fixable="--fix"
).says("""
Error; tolerated by `read_model`. As for shapes, OpenVINO infers types again and ignores what the port declares. For an
output port that no edge reads, this code and OVIR402 are warnings, because nothing relies on what the port declares.
    <port id="2" precision="FP32" names="y">   <!-- of a Less -->
Fix: `precision="BOOL"`
""")

OWN_SHAPE = Code.error(
    404, "the port of a Parameter or Const contradicts the layer's own shape", tolerated=True, fixable="--fix"
).says("""
Error; a warning in dead layers, at outputs that nothing reads, and in files of version 10. Tolerated by `read_model`.
The attributes of a Parameter or Const give one shape, its port another. OpenVINO uses the attributes.
    <data shape="2,3" element_type="f32" />
    ...
    <dim>3</dim>
    <dim>2</dim>
Fix: make both equal. If all readers declare the shape of the port, the attribute is probably wrong. In a body,
inference uses the shape that the body is fed, but still compares the two.
""")

OWN_TYPE = Code.warning(
    405, "the port of a Parameter or Const contradicts the layer's own element type", fixable="--fix"
).says("""
Warning. As for shapes, OpenVINO uses the attribute `element_type`. If a layer cannot read a constant for this reason,
its error (such as OVIR409) says so, and OVIR405 is not reported separately; nor is what else follows, such as OVIR504.
The hint names the type that fits the size of the constant.
    <data shape="2,3" element_type="f32" />
    ...
    <port id="0" precision="FP16" names="x">
Fix: `precision="FP32"`
""")

INPUT_SHAPE = Code.error(
    406, "an input port declares another shape than its tensor has", tolerated=True, fixable="--fix"
).says("""
Error; a warning in dead layers, at outputs that nothing reads, and in files of version 10. Tolerated by `read_model`.
The tensor that the edge brings has another shape than the port declares. Either the port is stale, or the edge comes
from the wrong layer: the message names its line and that layer. OpenVINO ignores what the port declares.
    <port id="0" precision="FP32">   <!-- fed by [2,3] -->
      <dim>3</dim>
      <dim>2</dim>
    </port>
Fix: write the shape of the tensor, or fix the edge.
""")

INPUT_TYPE = Code.error(
    407, "an input port declares another element type than its tensor has", tolerated=True, fixable="--fix"
).says("""
Error; tolerated by `read_model`. The tensor that the edge brings has another element type than the port declares.
    <port id="0" precision="FP16">   <!-- fed by f32 -->
Fix: `precision="FP32"`, or put a Convert in between.
""")

RANK = Code.error(408, "an input has a rank that the operation does not take").says("""
Error. The operation is defined for certain ranks only, such as [N,C,spatial...] for Convolution. OpenVINO refuses the
file.
    <layer id="2" name="conv" type="Convolution" version="opset1">   <!-- of [3,8] -->
Fix: put an Unsqueeze or Reshape before the layer.
""")

ELEMENT_TYPE = Code.error(409, "an input has an element type that the operation does not take").says("""
Error. OpenVINO refuses most such files. It accepts some types that the specification excludes, such as f32 for
LogicalNot, and then devices differ.
    <layer id="1" name="not" type="LogicalNot" version="opset1">   <!-- of f32 -->
Fix: put a Convert before the layer.
""")

TYPES_DIFFER = Code.error(410, "inputs that must have the same element type have different ones").says("""
Error. OpenVINO converts nothing by itself and refuses the file. A few operations allow different types: the slope of
PReLU may differ from the data, and the result has the type of the data.
    <layer id="2" name="sum" type="Add" version="opset1">   <!-- f32 and f16 -->
Fix: put a Convert after one of the inputs; in f16 models usually after the constant.
""")

SIZE_OVERFLOW = Code.error(411, "a tensor has more elements than 64 bits can count", danger=8.2).says("""
Error. An index cannot hold the number of elements or bytes. Sizes other than 0 are counted even if another size is 0.
OpenVINO reads the file, and what happens later is undefined. `ovir infer` and `ovir run` refuse it, as NumPy has no
such arrays.
    <port id="2" precision="FP32">   <!-- 10^24 elements -->
      <dim>100000000</dim>
      <dim>100000000</dim>
      <dim>100000000</dim>
    </port>
Fix: correct the shape; often a target shape has its sizes in the wrong unit, or is read from the wrong position.
""")

TOO_LARGE = Code.warning(412, "a tensor does not fit into the memory of this machine").says("""
Warning. The model may run on a larger machine. Layers after it that only pass its size on are not reported.
    <dim>100000000</dim>
    <dim>100000000</dim>
Fix: as for OVIR411; or split the tensor.
""")

# --------------------------------------------------------------------------- weights

NO_WEIGHTS = Code.error(501, "the file of weights is missing", unusable=True).says("""
Error; the file is unusable. No file with the same name and the ending .bin is next to the .xml, and none was given.
OpenVINO refuses the file. Use `--no-weights` to check the topology alone. `ovir infer` and `ovir show` report it as
info and continue.
    <data element_type="f32" shape="3" offset="0" size="12" />   <!-- no model.bin -->
Fix: put the .bin next to the .xml, or give it with `--weights`.
""")

PAST_END = Code.error(502, "a constant lies past the end of the weights", danger=8.2).says("""
Error. The .bin is empty or truncated, or belongs to another .xml. OpenVINO refuses the file: "Incorrect weights in bin
file!".
    <data element_type="f32" shape="3" offset="0" size="12" />   <!-- the .bin has 8 bytes -->
Fix: copy or convert the pair again.
""")

TOO_FEW_BYTES = Code.error(503, "a constant has fewer bytes than its shape and element type need", danger=8.2).says("""
Error. Shape and element type need more bytes than `size` gives. OpenVINO refuses the file.
    <data element_type="f32" shape="3" offset="0" size="8" />
Fix: `size="12"`, or `shape="2"`, or `element_type="f16"` and `size="6"`.
""")

WEIGHTS_LFS = Code.error(505, "the file of weights is a git-LFS pointer", unusable=True).says("""
Error; the file is unusable. The .bin is a text of three lines that git left in its place (see OVIR104). If the text is
long enough, OpenVINO reads its bytes as numbers, and the model computes nonsense without any message.
    $ head -1 model.bin
    version https://git-lfs.github.com/spec/v1
Fix: `git lfs pull`
""")

STRING_DATA = Code.error(506, "the data of a string constant are invalid", danger=8.2).says("""
Error. Strings are stored as their count, their offsets and their text (see [the file format](ir-format.md)); the data
contradict themselves or the shape. OpenVINO refuses the file.
    <data element_type="string" shape="2" offset="0" size="25" />   <!-- the data hold 3 strings -->
Fix: correct the shape or the offset.
""")

F16_OVERFLOW = Code.warning(512, "a constant holds a value outside the range of f16").says("""
Warning. A value whose magnitude exceeds 65504 becomes infinite when it is converted to f16. The diagnostic names the
Convert.
    <data destination_type="f16" />   <!-- of a constant 100000 -->
Fix: keep the constant in f32, or scale it. Masks that use -1e9 also work with -65504.
""")

FOREIGN_WEIGHTS = Code.error(517, "the weights belong to another model").says("""
Error. A .xml that ovir has saved ends with the size and the checksum of its .bin (`<?ovir-weights size="152353"
crc32="9ae0daaf"?>`). Weights of another size are not read. `ovir check` also compares the checksum, for which it reads
the whole .bin. They differ if only one of the two files was copied or restored, if a copy is incomplete, or if a bit
has changed. A .bin that was replaced on purpose by one of the same size can be run; `ovir check` reports it until the
model is saved again (`ovir edit model.xml -o model.xml`). If the .bin was not changed after the .xml, and its constants
stay as they are, a save keeps the checksum instead of reading the .bin. So the old checksum also stays if the .xml was
changed, by an editor for example, after the .bin was replaced: `touch model.bin` before the save makes ovir compute it
anew. OpenVINO ignores this line, and does not write it.

In other files, only `ovir check` recognizes the weights of another model; `read_model` raises the errors that follow
from it. Several constants do not fit: they lie past the end of the file, hold integers such as 4403417349112045568,
which no axis, shape or index can be, hold NaN, or make the layers that read them fail. The message counts them. Where
the model has few constants, fewer suffice; a single one is named in the hint of the layer that reads it. Diagnostics
that depend on values of constants are left out, because they may follow from this one. A file that is merely too short
may also be truncated: it is OVIR502.
    $ ls -l
    -rw-r--r-- 1 me me  152353 May  4 10:12 detector.bin   <- of another model
    -rw-r--r-- 1 me me  301207 May  4 10:12 detector.xml
Fix: give the .bin that was written together with the .xml. To use another one of another size, delete the
`<?ovir-weights ...?>`.
""")

# --------------------------------------------------------------------------- bodies and variables

NO_BODY = Code.error(601, "If, Loop or TensorIterator has no body").says("""
Error. If needs `<then_body>` and `<else_body>`, Loop and TensorIterator need `<body>`. OpenVINO refuses the file.
    <layer id="1" name="rows" type="TensorIterator" version="opset1">   <!-- no <body> -->
Fix: add the body; even an empty branch has a Parameter and a Result.
""")

NO_PORT_MAP = Code.error(602, "a body has no port map").says("""
Error. Without `<port_map>` (`<then_port_map>`, `<else_port_map>`) nothing enters or leaves the body. OpenVINO refuses
the file.
    <layer id="1" name="rows" type="TensorIterator" version="opset1">   <!-- no <port_map> -->
Fix: add one entry for each input and output.
""")

MAP_LAYER = Code.error(603, "a port map names a layer that is not a Parameter or Result of its body").says("""
Error. `internal_layer_id` of an `<input>` is the id of a Parameter of the body, and of an `<output>` the id of a
Result. OpenVINO refuses the file with `unordered_map::at`.
    <input external_port_id="0" internal_layer_id="1" />   <!-- layer 1 of the body is a ReLU -->
Fix: name the Parameter.
""")

MAP_PORT = Code.error(604, "a port map names a port that the layer does not have").says("""
Error. `external_port_id` is the id of a port of the layer, or -1 for none. OpenVINO refuses the file with a message
about a vector.
    <input external_port_id="3" internal_layer_id="0" />   <!-- the layer has port 0 -->
Fix: name an existing port of the layer.
""")

MAP_TWICE = Code.error(605, "a port map feeds a Parameter or an output twice").says("""
Error. OpenVINO loads the file; which of the entries counts is undefined.
    <input external_port_id="0" internal_layer_id="0" />
    <input external_port_id="1" internal_layer_id="0" />
Fix: remove one, or name the other Parameter.
""")

MAP_SHARED = Code.warning(
    606, "two entries of a port map have the same external port; OpenVINO keeps only the first"
).says("""
Warning. OpenVINO keeps only the first entry, and the other Parameter of the body is not fed. The same holds for entries
with `external_port_id="-1"`. It is an error if the lost entry has a `purpose`.
    <input axis="0" external_port_id="0" internal_layer_id="0" />
    <input axis="0" external_port_id="0" internal_layer_id="1" />
Fix: give the layer a second input port with an edge from the same tensor.
""")

MAP_UNFED = Code.error(
    607, "a port map leaves a Parameter of the body or an output of the layer without a source"
).says("""
Error. A Parameter of the body that its layers use is not fed, or an output of the layer has no Result. OpenVINO loads
the file.
    <port_map>   <!-- the body has Parameters 0 and 1 -->
      <input external_port_id="0" internal_layer_id="0" />
    </port_map>
Fix: add the missing entry.
""")

BACK_EDGE = Code.error(608, "a back edge does not connect a Result to a Parameter of the body").says("""
Error. `from-layer` must be a Result and `to-layer` a Parameter of the same body: the next iteration starts with what
the previous one gave. OpenVINO loads the file.
    <back_edges>
      <edge from-layer="2" to-layer="1" />   <!-- layer 1 is a ReLU -->
    </back_edges>
Fix: name the Parameter that holds the value.
""")

BODY = Code.error(609, "the slices, types or counts of a body are inconsistent").says("""
Error. Sliced inputs differ in their number of parts, a slice lies outside its axis, a back edge changes the element
type, an input has another element type than the Parameter that it feeds, or a Loop has no condition output, or two. The
line is the line of the entry or back edge. OpenVINO loads some of these and uses the count of one input.
    <input axis="0" external_port_id="0" internal_layer_id="0" />   <!-- 4 rows -->
    <input axis="0" external_port_id="1" internal_layer_id="1" />   <!-- 3 rows -->
Fix: as the message says, fix `start`, `end`, `stride`, `part_size`, the inputs, or the purpose of a result.
""")

MAP_PURPOSE = Code.warning(610, "a port map has an unknown purpose").says("""
Warning. Inputs may have `current_iteration` and outputs `execution_condition`, both in a Loop only. OpenVINO ignores
other words. It is an error if the entry has no other meaning because `external_port_id` is -1.
    <input external_port_id="-1" internal_layer_id="1" purpose="current_iteraton" />
Fix: `purpose="current_iteration"`
""")

NO_READ_VALUE = Code.error(611, "an Assign has no ReadValue for its variable").says("""
Error. An assigned value could never be read. OpenVINO refuses the file with `map::at`.
    <data variable_id="w" />   <!-- of an Assign; the ReadValue reads "v" -->
Fix: make the two `variable_id` equal.
""")

VARIABLE_TYPE = Code.error(614, "an assigned value contradicts the declared type or shape of its variable").says("""
Error. `variable_type` and `variable_shape` of the ReadValue must allow everything that is assigned. OpenVINO refuses
the file.
    <data variable_id="v" variable_type="f32" variable_shape="2" />   <!-- assigned f32[3] -->
Fix: `variable_shape="?"` if the size changes, else fix what is assigned.
""")

MAP_IDLE = Code.warning(616, "a back edge, or an attribute of a port map, has no effect").says("""
Warning. `start`, `end`, `stride` and `part_size` slice a tensor only together with `axis`. An If slices nothing and
runs its bodies once, so `axis` and back edges mean nothing there. `purpose` has a meaning in a Loop only. A sliced
Parameter gets another slice in each iteration, whatever a back edge brings. OpenVINO ignores all of these.
    <input start="0" end="-1" stride="1" part_size="1" external_port_id="0" internal_layer_id="0" />   <!-- no axis -->
Fix: add what is missing (`axis="0"`), or remove what has no effect.
""")

# --------------------------------------------------------------------------- advice

NEWER_THAN_RUNTIME = Code.error(701, "the given OpenVINO release does not know something in the file").says("""
Error. Reported with `--runtime 2022.3` only: that release refuses the file, because it does not know

- the IR version: releases before 2022.1 read version 10 only;
- the opset of a layer, which is newer than the opsets of the release;
- an element type: nf4 came with 2023.2, string with 2023.3, f8e4m3 and f8e5m2 with 2024.0, f8e8m0 and f4e2m1 with
  2024.3, u2, u3 and u6 with 2024.5.

Layers that the release reads and is known to [fail at](old-releases.md#messages-of-runtimes) are reported if no other
layers compute the same; `ovir edit` rewrites all others.

Each is reported once, at the first layer. Attributes and values that were added to an operation without a new version
of it are not looked at, nor is what else the plugins of a release can compute.
    <layer id="1" name="not" type="BitwiseNot" version="opset13">
The hint says whether a layer can be rewritten by operations that the release knows. `ovir edit` reports what cannot be
under this code, too.

Fix: rewrite the model with `ovir edit model.xml --runtime 2022.3 -o old.xml`, convert with a release that is as old, or
update OpenVINO where the model is to run.
""")

DEVICE_REFUSAL = Code.error(708, "the given device refuses something in the file").says("""
Error. Reported with `--device` only, in the release of `--runtime` or in the newest one. [Does it run on my
device?](devices.md) lists the rules, each with its source in OpenVINO. No such error does not mean that the device runs
the model.
    <data shape="?,3,?,?" element_type="f32" />   <!-- --device NPU -->
Fix: follow the hint; for sizes that inputs leave open it is an option that inference has confirmed.
""")

DEVICE_DOUBT = Code.warning(709, "the given device may refuse something in the file").says("""
Warning. Reported with `--device` only: the device is not documented to run it, but some drivers or releases do.
Examples are bounded sizes and operations that the compiler does not name on the NPU, and tensors beyond the largest
single allocation of a GPU.
    <data shape="1..8,3,224,224" element_type="f32" />   <!-- --device NPU -->
Fix: fix the sizes with `ovir edit --shape`, or look for another operation; ask the device with `--ask`.
""")

PINNED_SIZE = Code.warning(711, "a constant fixes a size that an input leaves open").says("""
Warning. An input has an open size (`?`, or an interval), but a constant was made for one size, so that the result has
this size for all others, too: the target of a Reshape, Broadcast or Interpolate, the end of a Slice, or data that was
made or repeated (Tile) for the items, which a Concat, MatMul or an elementwise operation reads. Runs with another size
then fail, or lose items. `ovir check` reports it, and so do the commands that take `--shape`.
    model.xml:59: warning[OVIR711] layer 4 'level8' (Reshape, opset1): a constant fixes the result to [1,20,64], but its data has the shape [?,20,8,8], as input 'images' of shape [?,3,8,8] leaves a size open
      hint: `ovir edit --batch ?` lets constants follow the number of items
Fix: `ovir edit --batch ?` (`model.set_batch(-1)`) for the number of items. For other sizes, start from the file as it was
exported: `ovir edit --shape ... --adapt` (`model.reshape(..., adapt=True)`), or give the constant a -1 with
`--set-constant`.
""")  # noqa: E501

# --------------------------------------------------------------------------- running, and use of the API

RUN = Code.error(801, "a value that an operation cannot work on").says("""
Error; raised while a model runs, as `ovir.RunError`. Shapes and types are valid, but a value is not: an index outside
its axis where the specification defines no result, an axis input that names no dimension, sizes that do not fit
together and were unknown until the run. The code is also used when memory runs out. The message names the layer and
shows the value.
    examples/xml/gather_elements_3x7x5.xml:28: error[OVIR801] layer 2 'gather_elements' (GatherElements, opset6): indices[0,0,0] = 7 is outside [-7, 6] along axis 1 of data f32[3,7,5]
Fix: look at the value that arrives at the layer (`ovir run --tap`, or `taps=` in Python) and at the layer that computes
it. Often an input is wrong, such as a token outside the vocabulary.
""")  # noqa: E501

NOT_SUPPORTED = Code.error(802, "an operation or variant that ovir does not execute").says("""
Error; raised when a model is compiled or run. ovir has no kernel for the operation: it needs an extension, or it is
used with an element type or an option that ovir does not compute. Reading, checking and inference still work. `ovir
show` lists the operations of a model that ovir cannot run, and `ovir ops` lists all that it can.
    examples/xml/swirl.xml:14: error[OVIR802] layer 1 'swirl' (Swirl, extension): ovir does not execute Swirl of extension
      hint: register a class for it: @ovir.register("Swirl", version="extension")
Fix: register the operation ([how](own-operations.md)), or run only the layers before it: use
one of the sources of the layer as an output.
""")  # noqa: E501

OUTSIDE_SPEC = Code.error(803, "a value that the specification excludes, and on which devices may differ").says("""
Warning; an info where `ovir check` finds it in a constant. The specification excludes the value, such as a negative
index of Gather-1, but OpenVINO's reference accepts it. ovir does the same and reports the value in
`results.diagnostics`. Other devices may compute something else. With `strict=True`, or `ovir run --strict`, it is an
error and the run stops.
    examples/xml/gather_1_small.xml:38: warning[OVIR803] layer 3 'gather' (Gather, opset1): indices[0,0] = -1 is outside [0, 2] along axis 1 of data f32[2,3,2]; it counts from the end
Fix: correct the value, or use a version of the operation whose specification includes it.
""")  # noqa: E501

OUT_OF_MEMORY = Code.error(804, "there is not enough memory").says("""
Error; exit status 1 of a command. The system does not grant the memory that reading, inference or a run needs. If one
tensor of a run is too large, the code is OVIR801 or OVIR412.
    error[OVIR804] there is not enough memory: Unable to allocate 7.45 GiB for an array with shape (1000000000,) and data type int64
Fix: use smaller inputs (`--shape`), or `--keep-compressed` for large weights; `ovir show --memory` shows what a run
takes.
""")  # noqa: E501

ENGINE = Code.error(805, "another engine cannot compile or run a model").says("""
Error; exit status 1 of a command, or `ovir.RunError`. OpenVINO or onnxruntime, which `ovir compare` runs in a process
of their own, refused a model, or their process crashed or took longer than `--timeout` allows. The message of the
engine follows; after a crash, the last lines that its process printed.
    error[OVIR805] OpenVINO 2026.4.1 on CPU: cannot compile the model: the process ended with signal SIGSEGV
Fix: `ovir compare --isolated` finds the layer at which the device fails.
""")

NOT_EXPORTED = Code.error(806, "a layer that cannot be exported to ONNX").says("""
Error; raised by `ovir.export_onnx` and `ovir export` before anything is written, as `ovir.ExportError`. ONNX, or the
opset that was asked for, has no way to express the operation with these attributes and element types. [From IR to
ONNX](onnx.md) lists what is exported, and as what.
    examples/xml/swirl.xml:14: error[OVIR806] layer 1 'swirl' (Swirl, extension): cannot be exported to ONNX: there is no exporter for it
      hint: to run the model in onnxruntime, with this layer in NumPy, use --engine onnxruntime
Fix: ask for a newer opset (`--opset`), replace the layer, or export the part of the model before it with `ovir
extract`.
""")  # noqa: E501

WORKER_DIED = Code.error(807, "a worker process ended while it worked").says("""
Error; an outcome of `ovir.map`. The process that worked on an input or a file ended without an answer, each time that
it was tried: it was killed, ran out of memory, or crashed. Other inputs are not affected.
    error[OVIR807] input 17: the worker died every time it ran this input
      hint: it may need more memory than there is, or crash the process
Fix: run the input on its own with `ovir run`, and watch the memory that it takes; `ovir show --memory` estimates it. A
Python script that calls `ovir.map` has to do so below `if __name__ == "__main__":`, because its processes import the
script.
""")

SLOW_ENGINE = Code.warning(808, "the engine onnxruntime may be slower than NumPy").says("""
Warning; in `diagnostics` of a compiled model, and printed by commands with `--engine onnxruntime`. There are three
reasons:

- NumPy runs layers that onnxruntime cannot run, or that it would run as loops of many small operators, and these divide
  the model into more than four parts. Tensors are copied at the ends of each part.
- The model has fewer than half a million weights, and a quarter of a million elements in its tensors of known size.
  Then the calls of onnxruntime (20 microseconds for each run, and one or two for each node) may take longer than the
  arithmetic. Large inputs of dynamic sizes, or many steps of a recurrent layer, change this.
- In a run, onnxruntime refused the values of a part of the model, which NumPy then computed. This warning is in
  `diagnostics` of the results.
    model.xml: warning[OVIR808] onnxruntime runs the model in 12 parts, because NumPy runs 11 layers between them (RandomUniform)
      hint: the engine 'numpy' may be faster
Fix: compare the times of both engines. `numpy_layers` of the compiled model gives the reason for each layer.
""")  # noqa: E501

DEVICE_ANSWER = Code.error(809, "the device itself says that it does not support a layer").says("""
Error. Reported with `--device CPU --ask`: OpenVINO's `query_model` does not name the layer among those that the device
supports, or fails. It runs in a process of its own, which a device may crash.
    model.xml:25: error[OVIR809] layer 1 'op' (Unique, opset10): asked: OpenVINO 2026.4.1 on NPU does not support this Unique
Fix: run this part of the model on another device (`HETERO:NPU,CPU`), or replace the operation.
""")  # noqa: E501

CHOSEN_SIZES = Code.info(810, "sizes were chosen for dynamic inputs").says("""
Info. A comparison without inputs draws random ones, and dynamic inputs get sizes for that: small ones in which windows,
strides and resizes still have an effect. `ovir run` and `ovir export --verify` name them with the random inputs.
    model.xml: info[OVIR810] sizes were chosen for the random inputs: image=1,3,160,160
      hint: give others as in: --shape image=1,3,160,160
Fix: nothing, or give the sizes that are used in practice with `--shape`, or real inputs with `--input`.
""")

NARROW_TENSOR = Code.warning(811, "a window, stride or resize exceeds its tensor in a run").says("""
Warning. A dynamic tensor is smaller than what the layer that reads it takes: a window covers more elements than there
are, a stride skips over all of them, or a resize spreads a single one. The result of the layer then hardly depends on
its kernel, dilation, stride or mode, so a comparison does not show whether these are right. It is reported where sizes
were chosen and no larger ones fit, and by comparisons for given inputs, too.
    model.xml:120: warning[OVIR811] layer 21 'pool' (MaxPool, opset8): its window, stride or resize takes 5 elements along axis 2 of its input, which has 1: its result hardly depends on its kernel or attributes
      hint: give larger inputs, or sizes with --shape
Fix: give larger inputs, of the size that is used in practice.
""")  # noqa: E501

CHANGED_RESULTS = Code.error(812, "an edit would change the results of the model").says("""
Error; raised as `ovir.ModelError`, and nothing is changed or written. An edit that must keep what the model computes
has been tried on random inputs, and the results differ. The message names the first layer that differs, with both
values. For another batch, one call with several items is compared with calls that have fewer: where they differ, the
model mixes its items on purpose, as a normalization over the batch does.
    model.xml:31: error[OVIR812] layer 3 'normalized' (MVN, opset6): the results of one call and of calls with fewer items differ, here first: output 0 is -0.531 at [1,0,2] instead of 1.204
      hint: the layer, or one before it, mixes the items of a batch
Fix: for another batch, give the model one item at a time. `--no-verify` (`verify=False`) leaves the proof out.
""")  # noqa: E501

BAD_INPUT = Code.error(901, "an input tensor does not match the model").says("""
Error; raised by a call with inputs, as `ovir.InputError`. An array has the wrong shape or element type, an input has no
array, or there is an array for an input that the model does not have. The message says what the model expects.
    examples/xml/gather_elements_3x7x5.xml:8: error[OVIR901] layer 0 'data' (Parameter, opset1): input 'data' takes shape [3,7,5], got [4,7,5]
Fix: give the array that the message asks for, or call `model.reshape` (`--shape` on the command line) where another
size is meant. `array.astype` converts the element type.
""")  # noqa: E501

USAGE = Code.error(902, "a call with arguments that do not fit").says("""
Error; raised as `ovir.InputError`, or exit status 2 of a command. The call itself is wrong: an unknown name, an option
with an impossible value, or two options that exclude each other. No file is at fault. Errors in how the options
themselves are written (an unknown option, a missing value) are printed below the usage of the command; they have no
code, because no command has begun.
    examples/xml/digits.xml: error[OVIR902] no layer is named 'con2'
      hint: did you mean 'conv2'?
Fix: follow the message; `ovir COMMAND --help` lists the options of a command.
""")

UNWRITABLE = Code.error(903, "an output cannot be written").says("""
Error; exit status 2 of a command. A file that a command writes, or its standard output, cannot be written: the disk is
full, or permissions changed while the command ran. A name that cannot be right is refused before the work begins, as
OVIR902.
    out.npz: error[OVIR903] cannot write the results: No space left on device
Fix: free some space, or give another place.
""")

NO_ENGINE = Code.error(904, "a package or an engine is not installed, or a device does not exist").says("""
Error; exit status 2 of a command, or `ovir.InputError`. ovir itself needs neither OpenVINO nor onnxruntime; comparing
with them does. Some commands need packages that an extra installs, as `ovir export` does.
    error[OVIR904] onnxruntime needs the package onnxruntime, which is missing
      hint: install it with `pip install "ovir[onnxruntime]"`
Fix: install the package, or name a device that the message lists.
""")

INTERNAL = Code.error(999, "ovir itself failed", danger=5.0).says("""
Error; a warning where `ovir check` can go on. An operation or a rule of ovir raised an exception that it should not
raise, or a class that was registered with `ovir.register` did, or its `run` returned another type or shape than its
`infer`. The hint says whose fault it is.
    model.xml:20: error[OVIR999] layer 2 'swirled' (Swirl, extension): the kernel failed on f32[2,3]: TypeError: unsupported operand type(s)
      hint: this is a fault of the class Swirl, which was registered for Swirl; it fails in /home/me/swirl.py, line 14
Fix: for a class of your own, correct its `infer` or `run`; the traceback is shown with `OVIR_DEBUG=1`. Otherwise please
report it, with the file if possible.
""")  # noqa: E501

NEVER_IGNORED = frozenset(
    {code.id for code in (OVER_BUDGET, LINK, SPECIAL_FILE, COMPRESSED, OUT_OF_MEMORY, WORKER_DIED, INTERNAL)}
    | {code.id for code in CODES.values() if code.unusable and code is not NO_WEIGHTS}
)
"""Codes that nobody can ignore; otherwise a file that was not checked would seem to have passed."""


def section(code: str) -> str:
    """Return the section of a code, such as ``OVIR402``, as Markdown with its heading; raise KeyError for others."""
    return re.sub(r"\[([^\]]*)\]\(([^)#\s]+)(?:#[^)]*)?\)", _named, CODES[code].section)


def _named(link: re.Match[str]) -> str:
    words, target = link[1], link[2]
    if ":" in target:
        return link[0]
    return f"docs/{target}" if words in ("how", target) else f"{words} (docs/{target})"
