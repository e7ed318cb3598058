"""Command lines with their exit status and parts of what they print.

If one is wrong, a single error says why, the status is 2, or 1 for wrong data, and no file is touched.
"""

import shlex
from pathlib import Path

import pytest
from support.command import Cli, require_row
from support.command_files import write_files


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    write_files(folder)
    return folder


WRONG_USAGE = r"""
chekc model.xml => did you mean `ovir check`?
walk => `ovir --help` lists the commands: run, generate, eval
trace model.xml => hint: `ovir run` shows tensors of layers with --tap, --record and --watch
run model.xml --weigths w.bin => unrecognized arguments: --weigths w.bin\n  hint: did you mean --weights?
run model.xml --out x.npz => hint: did you mean --output?
map model.xml => hint: `ovir run MODEL.xml --inputs FOLDER`
fuzz --against openvino:CPU --minutes 3 => unrecognized arguments: --minutes 3\n  hint: did you mean --time?
fuzz --against openvino:CPU --tips f32 => unrecognized arguments: --tips f32\n  hint: `ovir fuzz --help` lists what it takes
check model.xml --minutes 3 => unrecognized arguments: --minutes 3\n  hint: `ovir check --help` lists what it takes
check model.xml --xyzzyxyzzy => unrecognized arguments: --xyzzyxyzzy\n  hint: `ovir check --help` lists what it takes
run model.xml --js => unrecognized arguments: --js
run model.xml --device CPU => hint: `ovir compare MODEL.xml --against openvino:CPU`
run '' => argument MODEL.xml: the name of the file is empty
run model.xml --weights '' => argument --weights: the name of the file is empty
run model.xml --output '' => argument --output: the name of the file is empty
infer model.xml --no-weights --weights other.bin => --weights and --no-weights exclude each other
show model.xml --weights absent.bin => absent.bin
run model.xml --threads 0 => argument --threads: must be at least 1, got 0
run model.xml --threads many => argument --threads: 'many' is not an integer
run model.xml --seed abc => argument --seed: 'abc' is not an integer
run model.xml --seed -1 => argument --seed: must be at least 0, got -1
run model.xml --seed => hint: --seed N: seed of the random inputs
run model.xml --repeat 0 => argument --repeat: must be at least 1, got 0\n  hint: `ovir run --help`
run model.xml --emulate f16 --engine onnxruntime => --emulate needs the engine 'numpy'
run model.xml --emulate f16 --keep-compressed => emulate
run model.xml --emulate f8 => argument --emulate: invalid choice: 'f8'
run model.xml --watch overflw:f16 => did you mean 'overflow'?
run no-such-model.xml --tap [ => argument --tap: '[' is not a regular expression: unterminated character set
run no-such-model.xml --output nowhere/out.npz => there is no directory nowhere
run model.xml --tap nowhere => no name of a layer or a tensor matches
run model.xml --shape data=1,x => 'x' is not a dimension
run model.xml --shape 1,3 => say for which input
run model.xml --shape nothing=1,3 => no input 'nothing'
run model.xml --shape data=1,3 --shape data=2,3 => has two shapes
infer model.xml --shape data=2,x => 'x' is not a dimension: expected 7, ?, -1 or 2..5\n  hint: input 'data' is f32[?,3] in the file
infer model.xml --shape data= => --shape data=: the shape is missing; the shape of a scalar is []
check sum.xml --shape x= => --shape x=: the shape is missing
check sum.xml --shape 1,4 => say for which input the shape [1,4] is; the model's inputs are 'x', 'mask'
check sum.xml --shape none=1,4 => the model has no input 'none'
check sum.xml --shape x=1,q => --shape x=1,q: 'q' is not a dimension
check sum.xml --shape x=1,4 --shape x=2,4 => --shape x=2,4: expected one shape for each input, as NAME=2,4
run model.xml --output . => this is a directory
run model.xml --output out.txt => --output out.txt: the arrays are written as .npz; give a name that ends in .npz
run model.xml --save-inputs in.txt => --save-inputs in.txt: the arrays are written as .npz
run model.xml --save-inputs model.xml => a model would be overwritten
show model.xml --html => hint: --html FILE.html: also write a report
check model.xml --html model.xml => a model would be overwritten
run model.xml --html report.txt => the file is written as .html
compare model.xml model.xml --html report => must end in .html
diff model.xml model.xml --html folder.html => this is a directory
show model.xml --html missing/report.html => there is no directory
check model.xml --node-data missing/data.json => there is no directory
check model.xml swirl.xml --node-data data.json => --node-data is for one model
run model.xml --engine onnxruntime --node-data data.json => --node-data is about each layer
check model.xml --sarif one.json --node-data one.json => --node-data one.json: --sarif writes the same file
check model.xml --sarif digits.xml => a model would be overwritten
check model.xml --sarif other.BIN => a model would be overwritten
check model.xml --sarif nowhere/x.sarif => there is no directory
check model.xml --json --sarif - => --sarif - would print SARIF among other output
run model.xml --seed 0 --input nothing=d.npy => the model has no input 'nothing'; its inputs are 0: 'data', 1: 'indices'
run model.xml --seed 0 --input 7=d.npy => the model has no input 7
run model.xml --seed 0 --input data=none.npy => none.npy: error[OVIR101] cannot read the file: No such file
run model.xml --seed 0 --input data=text.npy => neither a .npy nor an .npz
run model.xml --seed 0 --input data=empty.npy => the file is empty
run model.xml --seed 0 --input zip.npz => cannot read
run model.xml --seed 0 --input d.npy => this is one array, but the model has 2 inputs
run model.xml --seed 0 --input npz.npz => the model has no input 'a'
run model.xml --seed 0 --input data=pickle.npy => cannot read
run model.xml --input photo.jpg => this is one array, but the model has 2 inputs\n  hint: name the input that gets it, as in --input data=photo.jpg
run bf16.xml --input d.npy => --input d.npy: this is one array, but the model has 0 inputs\n
check model.xml --untrusted --memory abc => argument --memory: 'abc' is not an integer
run model.xml --input 1 => this is one array, but the model has 2 inputs\n  hint: name the input that gets it, as in --input data=1
run model.xml --input npz.npz:b => this is one array, but the model has 2 inputs\n  hint: name the input that gets it, as in --input data=npz.npz:b
run i64.xml --input x=absent.npy => absent.npy: error[OVIR101] cannot read the file: No such file
run f32.xml --input npz.npz => no input 'a'; its inputs are 0: 'x'\n  hint: an array gets another name so: x=npz.npz:a
run i64.xml --input x=1.5 => it is not a value for i64[?]: '1.5' is not an integer
run f32.xml --input x=[1,2 => a ']' is missing
run f32.xml --input x=[[1,2],[3]] => expected a number, or lists of equal lengths
run f32.xml --input x=photo => there is no file of this name, and it is not a value for f32[?]: 'photo' is not a number
run f32.xml --input x=-1e400 => '-1e400' is beyond the numbers of f64
run i64.xml --input x=1,,2 => a value is missing
run i64.xml --input x=[1]] => ']' is unexpected
run i64.xml --input x=99999999999999999999999 => 99999999999999999999999 is not a value of i64, which holds integers from
run i64.xml --input x=1,9223372036854775808 => 9223372036854775808 is not a value of i64
run boolean.xml --input x=2 => '2' is not a boolean
run f32.xml --input x=[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[ => nested more than 32 deep
run f32.xml --input 1,2 --scale 1,nan => '1,nan' is not a list of finite numbers
run f32.xml --input 1,2 --mean 3 => --mean applies to images
run model.xml --extension none.py => --extension none.py: there is no such file
run model.xml --extension module.txt => not a Python module; its name must end in .py
check model.xml --extension fails.py => fails.py: the module fails in line 1: ZeroDivisionError: division by zero
show model.xml --extension leaves.py => --extension leaves.py: the module calls sys.exit(3)
show model.xml --extension quits.py => --extension quits.py: the module calls sys.exit()
run digits.xml --inputs in => --inputs needs --output FOLDER
run digits.xml --inputs in --output out --seed 0 => --seed is for one set of inputs
run digits.xml --inputs in --output out --profile => --profile is for one set of inputs
run digits.xml --inputs in --output out --html out.html => --html is for one set of inputs
run digits.xml --inputs in --output out --batch 2 --tap a => --batch and --tap exclude each other
eval digits.xml --inputs in --labels labels.csv --metric top1 --peak 3 => --peak is for the metric psnr
eval digits.xml --inputs in --labels labels.csv --dask tcp://host:1 --workers 2 => give either it or the address of a cluster
run digits.xml --inputs nowhere --output out => there is no such file or folder
run digits.xml --inputs in --output out.npz => --output out.npz: the results of many inputs need a folder
run digits.xml --inputs in --output out --mean 3 => --mean applies to images, but no file of --inputs is one
run digits.xml --workers 2 => --workers is for many inputs
run digits.xml --resume => --resume is for many inputs
run digits.xml --input in => many inputs are given with --inputs in
check model.xml --select OVIR90 => --select OVIR90: `ovir check` does not report it; it belongs to runs
check model.xml --ignore OVIR999 => --ignore OVIR999: this cannot be ignored, because a file that was not checked
check model.xml --ignore 505,104 => --ignore 505: this cannot be ignored
check model.xml --ignore 702 --diff => --diff needs --fix
check model.xml --fix --untrusted => --untrusted and --fix exclude each other
check model.xml --select OVIR801 => --select OVIR801: `ovir check` does not report it; it belongs to runs
check model.xml --select 998 => --select 998: no diagnostic has this code
check model.xml --weights model.bin --no-weights => --weights and --no-weights exclude each other
check model.xml swirl.xml --weights x.bin => --weights is for one model
check . --weights x.bin => --weights is for one model
check model.xml --runtime 2019.1 => OpenVINO 2019.1 reads neither IR version 10 nor 11; the first release that does is 2020.1
check model.xml --runtime 22.3 => '22.3' is not an OpenVINO release, such as '2022.3'
check model.xml --timeout 5 => --timeout belongs to --untrusted
check model.xml --untrusted --memory 1 => must be at least 16.8 MB and at most 1.1 PB, got 1.0 MB
check model.xml --memory 100 => --memory belongs to --untrusted
check model.xml --untrusted --timeout 0 => '0' is not a finite number of seconds above 0
check model.xml --device TPU => there are no rules for the device 'TPU': known are CPU, GPU, NPU
check model.xml --ask => --ask asks a device: give it with --device
check model.xml --device CPU --ask --no-weights => --ask and --no-weights exclude each other
check model.xml --baseline absent.json => hint: `ovir check ... --write-baseline absent.json` writes it
check - other.xml => standard input (-) is checked alone
check - --workers 2 => --workers needs a file, not standard input
check - --untrusted => --untrusted needs a file, not standard input
run - --untrusted => --untrusted reads the model in other processes
run - --inputs . --output results => --inputs reads the model in other processes
diff model.xml => the following arguments are required: B.xml
diff model.xml missing.xml => missing.xml
diff model.xml text.xml => text.xml
diff model.xml bare.xml => there is no file
diff model.xml cycle.xml => depend on each other
show model.xml model.xml => hint: `ovir show` takes MODEL.xml only; quote a pattern of files
check model.xml --json model.xml => hint: files stand together
diff model.xml --json model.xml --limit 3 model.xml => hint: `ovir diff` takes A.xml and B.xml only; quote a pattern
diff model.xml model.xml --rtol -1 => '-1' is not a finite number of 0 or more
diff model.xml model.xml --atol inf => 'inf' is not a finite number of 0 or more
diff model.xml model.xml --limit x => 'x' is not an integer
diff model.xml model.xml --limit 1 --all => not allowed with argument
bisect digits.xml => there is nothing to compare with
bisect digits.xml digits.xml --against onnx:model.onnx => a second model runs in ovir, or on openvino:DEVICE
bisect digits.xml --against somewhere => cannot compare with 'somewhere'
bisect digits.xml --against gpu.1 => hint: the device is openvino:GPU.1
bisect digits.xml --against openvino:CPU --config x => argument --config: expected KEY=VALUE
bisect digits.xml digits.xml -o part.txt => must end in .xml
bisect digits.xml digits.xml --input image=[1,2] => input 'image'
compare digits.xml --against CPU => hint: the device is openvino:CPU
compare digits.xml digits.xml --workers 2 => --workers divides many sets of inputs
compare digits.xml --against recorded.npz --inputs in --workers 2 => --workers divides many sets of inputs
compare digits.xml digits.xml --inputs in --input image=d.npy => --input is for one set of inputs
compare digits.xml digits.xml --samples 3 --input image=d.npy => --samples draws random inputs: give either it or --input
compare digits.xml --against recorded.npz --save-inputs saved.npz => the recording has its own
precision digits.xml => --to
precision digits.xml --to f8 => expected f16, bf16, int8, int4[:sym|asym][:GROUP] or int8:sym|asym[:GROUP], got 'f8'
precision digits.xml --to int8 -o a.xml => NNCF
precision digits.xml --to f16 --tolerance -1 => '-1' is not a finite number of 0 or more
precision digits.xml --to f16 --input image=[1,2] => input 'image'
precision digits.xml --to f16 --inputs in --save-inputs s.npz => --save-inputs is for one set of inputs
reduce digits.xml -o small.xml => --check
reduce digits.xml --check "sh -c 'exit 7' {}" -o model.xml --max-runs 2 => --max-runs must be at least 3
reduce digits.xml --check "sh -c 'exit 7' {}" -o digits.xml => a model would be overwritten
reduce digits.xml --check "sh -c 'exit 7' {}" -o small.xml --status 3 => status 7 for the whole model, not 3
reduce digits.xml --check "sh -c 'exit 7' {}" -o small.xml --timeout 0 => '0' is not a finite number of seconds above 0
reduce digits.xml --check "sh -c 'exit 7' {}" -o small.xml --max-runs -1 => must be at least 0, got -1
reduce digits.xml --check 'true {}' -o small.xml => status 0 for the whole model: there is no failure to look for
reduce digits.xml --check 'false {}' -o small.xml => status 1 even for a model without layers, so it does not look at
reduce digits.xml --check true -o small.xml => the check command does not contain {}
reduce digits.xml --check 'false {}' -o small.xml --shape y=5,3 => no input 'y'
reduce digits.xml --check 'false {}' -o small.xml --input y=1,2 => no input 'y'
fuzz --against openvino:CPU --time 0 => '0' is not a time such as 90s, 10m or 8h
fuzz --against openvino:CPU --time 5d => '5d' is not a time
fuzz --against openvino:CPU --time 1e3 => '1e3' is not a time
edit digits.xml --prune => there is no file to write
edit digits.xml --compress-to-fp -o x.xml => hint: did you mean --compress-to-fp16?
edit digits.xml --decompress --compress-to-fp16 -o x.xml => not allowed with argument
edit digits.xml --compress-to-fp16 --compress-to-bf16 --dry-run => not allowed with argument
edit digits.xml --batch --dry-run => hint: --batch N: another number of items: 4, ? for any
edit digits.xml --prune -o missing/new.xml => the folder
edit digits.xml --prune -o new.onnx => must end in .xml
edit digits.xml --prune --unknown -o digits.xml => unrecognized arguments: --unknown
edit digits.xml --rename a=photo -o x.xml => no tensor and no layer is named 'a'
edit digits.xml --rename conv1=conv2 -o digits.xml => another layer has this name
edit digits.xml --set-constant flatten/pattern=missing.npy -o digits.xml => missing.npy: error
edit digits.xml --set-constant flatten/pattern=1.5 -o digits.xml => flatten/pattern=1.5: '1.5' is not an integer
edit digits.xml --set-constant scale/factor=1e39 -o digits.xml => scale/factor=1e39: 1e+39 is not a value of f32
edit digits.xml --set-constant flatten/pattern=9223372036854775808 -o digits.xml => 9223372036854775808 is not a value of i64, which holds
edit digits.xml --set-constant flaten/pattern=1 -o digits.xml => did you mean 'flatten/pattern'?
edit digits.xml --set-constant relu1=1 -o digits.xml => the layer is not a constant
edit digits.xml --set-constant relu1 -o digits.xml => there is no '=' between the name and what it gets
edit digits.xml --add-output conv9 -o digits.xml => no tensor and no layer is named 'conv9'
edit digits.xml --add-output pool1:7 -o digits.xml => the layer has no output 7: it has 2 outputs
edit digits.xml --shape picture=1,2 -o digits.xml => the model has no input 'picture'
edit digits.xml --adapt --dry-run => --adapt needs --shape
edit digits.xml --shape 2,1,8,8 --like digits.xml --dry-run => --like needs --adapt
edit digits.xml --shape 2,1,8,8 --adapt --like none.xml --dry-run => cannot read the file
run digits.xml --adapt => --adapt needs --shape
compare digits.xml digits.xml --adapt => --adapt needs --shape
edit digits.xml --shape 2,1,8,8 --shape image=3,1,8,8 --dry-run => --shape image=3,1,8,8: input 'image' is given twice
edit digits.xml --batch 2 --batch image=3 --dry-run => --batch image=3: input 'image' is given twice
edit digits.xml --remove-output probability --dry-run => the model has no output 'probability'; its outputs are 0: 'probabilities'\n  hint: did you mean 'probabilities'?
edit digits.xml --remove-output probabilities --dry-run => the only output of a model cannot be removed
edit digits.xml --rt-info a/b=1 --rt-info a/bc= --dry-run => there is no runtime information 'a/bc' to remove\n  hint: did you mean 'b'?
edit digits.xml --rt-info who=a --rt-info who/x=1 --dry-run => 'who' has a text, and no entry 'x'
edit digits.xml --inputs-to-states past=relu1 --dry-run => the model has no input 'past'
edit digits.xml --set-constant image=1 --dry-run => hint: fix_input (--fix-input NAME=VALUE) makes a constant of it
edit digits.xml --set-constant scale/factor=1e400 --dry-run => '1e400' is beyond the numbers of f64
edit digits.xml --rt-info =1 --dry-run => a text
edit digits.xml --resize linear:3 -o x.xml => --resize linear:3: expected a height and a width, as linear:480x640\n  hint: this follows from preprocessing; nothing is written
edit digits.xml --mean 1,x -o x.xml => --mean 1,x: expected numbers
edit digits.xml --mean 1,2 -o x.xml => mean has 2 numbers for 1 channel
edit digits.xml --mean 1 --mean image=2 -o x.xml => --mean image=2: input 'image' has it twice
edit digits.xml --input-type picture=u8 -o x.xml => the model has no input 'picture'
edit sum.xml --mean 1 -o x.xml => --mean 1: say for which input, as NAME=1; the model's inputs are 'x', 'mask'
extract sum.xml --inputs x --outputs matmul4 -o x.xml => the part leaves input 'mask' undefined: 'matmul4' depends on it, by 1 'mask' -> 2 'add2' -> 4 'matmul4'
extract digits.xml --outputs relu1 -o missing/new.xml => the folder
join digits.xml digits.xml -o x.xml => hint: none of them fit together
join digits.xml two.xml -o x.xml => say which outputs ('probabilities' f32[?,10]) feed which inputs ('scores' f32[?,10], 'other' i64[1]): --connect OUT=IN\n  hint: these fit together: --connect probabilities=scores
join digits.xml digits.xml --connect probabilities -o x.xml => --connect probabilities: there is no '=' between the output and the input
join digits.xml digits.xml --connect probabilities=picture -o x.xml => the model has no input 'picture'; its inputs are 0: 'image'
join digits.xml digits.xml --connect probability=image -o x.xml => no tensor and no layer is named 'probability'
export digits.xml -o digits.xml => a model would be overwritten
export digits.xml -o other.xml => must end in .onnx
export digits.xml -o model.onnx --opset 9 => --opset 9 of ONNX cannot be written; it can be 17 to
export digits.xml -o model.onnx --input x=1 => --input needs --verify
export digits.xml -o model.onnx --seed 1 => --seed needs --verify
eval digits.xml --labels labels.csv => --inputs is missing
eval digits.xml --inputs in => --labels
eval digits.xml --inputs in --labels nowhere.csv => cannot read the labels
eval digits.xml --inputs in --labels labels.csv --metric tpo1 => there is no metric 'tpo1'
eval digits.xml --inputs in --labels labels.csv --metric mae --columns x1,y1,x2,y2,score => --columns is for the metrics map and map50
eval digits.xml --inputs in --labels labels.csv --metric mine.py:frist => mine.py has no function 'frist'\n  hint: did you mean 'first'?
eval digits.xml --inputs in --labels labels.csv --metric yours.py:first => --metric yours.py: there is no such file
eval digits.xml --inputs in --labels labels.csv --output none => --output none: there is no such output
eval digits.xml --inputs in --labels labels.csv --against x.npz => expected other.xml, openvino:DEVICE or onnx:FILE
eval digits.xml --inputs in --labels labels.csv --timeout 3 => --timeout needs openvino:DEVICE
explain OVIR444 => there is no code 'OVIR444'\n  hint: did you mean OVIR4
explain shape => `ovir explain` lists the codes
ops -- -1 => no opset has an operation '-1'
ops Gahter => no opset has an operation 'Gahter'\n  hint: did you mean Gather?
ops TopK-11 gather-13 => Gather has no version '13': there is Gather-1, Gather-7, Gather-8\n  hint: opset13 contains Gather-8
ops TopK-11 Gather-99 => Gather has no version '99': there is Gather-1, Gather-7, Gather-8
ops TopK-11 Gather- => Gather has no version '': there is Gather-1, Gather-7, Gather-8
ops RegexSplit-1 => RegexSplit has no version '1': there is RegexSplit-extension
ops Gahter-8 => no opset has an operation 'Gahter'\n  hint: did you mean Gather?
"""
WRONG_DATA = """
run u8.xml --input x=256 => cannot hold the value 256
run model.xml --seed 0 --input data=npz.npz:nokey => there is no array 'nokey' in the file; its arrays are 'a', 'b'
run model.xml --seed 0 --input data=npz.npz => the file holds more than one array
run model.xml --seed 0 --input data=complex.npy => takes f32, got an array of complex128
run model.xml --seed 0 --input data=long.npy => input 'data' takes shape [?,3], got [2,4]
run model.xml --seed 0 --input data=flat.npy => the input has 2 dimensions, the array 1
edit digits.xml --set-constant flatten/pattern=[1,2,3] -o digits.xml => layer 18 'fc' (MatMul
edit digits.xml --shape image=1,2 -o digits.xml => layer
edit vad.xml --fix-input sr=1,2 --dry-run => input 'sr' takes shape [], got [2]\\n  hint: the input has 0 dimensions, the array 1\\n  hint: this follows from --fix-input sr=1,2
eval digits.xml --inputs in --labels few.csv => 2 inputs without a label of their own: '01.npz', '02.npz'
"""
ROWS = [(2, row) for row in WRONG_USAGE.strip().splitlines()] + [(1, row) for row in WRONG_DATA.strip().splitlines()]


@pytest.mark.slow
@pytest.mark.usefixtures("shared_workers")
@pytest.mark.parametrize(("status", "row"), ROWS, ids=[row.partition(" => ")[0] for _, row in ROWS])
def test_a_wrong_command_line_is_one_error(
    cli: Cli, files: Path, monkeypatch: pytest.MonkeyPatch, status: int, row: str
) -> None:
    command, message = row.split(" => ")
    if command.startswith("export"):
        pytest.importorskip("onnx_ir", reason="the export needs onnx (ovir[onnx])")
    if "--html" in command:
        pytest.importorskip("itables", reason="a report needs ovir[html]")
    monkeypatch.chdir(files)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    before = {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    done = cli(*shlex.split(command))
    assert (done.status, done.out) == (status, "")
    assert message.replace("\\n", "\n") in done.err
    assert done.err.count("error[") == 1
    assert {path: path.read_bytes() for path in files.rglob("*") if path.is_file()} == before


RESULTS = r"""
check model.xml => 0 => 1 file checked: nothing found
check faulty.xml => 1 => faulty.xml:12: error[OVIR203] layer 2 'early' (GatherElements, opset1): && warning[OVIR304] layer 4 'relu' (ReLU, opset1): && 1 file checked: 1 error, 1 warning
check faulty.xml --ignore OVIR203 => 0 => 1 file checked: 1 warning
check faulty.xml --ignore OVIR203 --fail-on warning => 1 => 1 file checked: 1 warning
check faulty.xml --ignore ovir2,ovir3 => 0 => 1 file checked: nothing found
check faulty.xml --select OVIR304,OVIR4 => 0 => 1 file checked: 1 warning
check faulty.xml --select 203 => 1 => 1 file checked: 1 error\n
check faulty.xml --select ovir20 => 1 => 1 file checked: 1 error\n
check faulty.xml --select 304,203 => 1 => 1 file checked: 1 error, 1 warning
check faulty.xml link.xml faulty.xml => 1 => 1 file checked
check model.xml none.xml --select OVIR2 => 2 => none.xml: error[OVIR101]
check models => 0 => models/sub/odd.xml: && 2 files checked: 1 warning && !pom.xml
check models faulty.xml => 1 => 3 files checked: 1 error, 2 warnings
check models/pom.xml => 2 => error[OVIR105]
check empty faulty.xml => 2 => empty: error[OVIR101] the folder holds no .xml file && error[OVIR203]
check others => 2 => others: error[OVIR101] no OpenVINO IR was found: 1 .xml file with another root && 0 files checked: 1 error
check bare.xml => 2 => error[OVIR501]
check bare.xml --ignore OVIR501 => 0 => 1 file checked: nothing found
check bare.xml --no-weights => 0 => 1 file checked: nothing found
check noted.xml --fail-on warning => 0 => 1 file checked: 1 info
check noted.xml --fail-on info => 1 => 1 file checked: 1 info
check models/sub/odd.xml --fail-on info => 1 => 1 file checked: 1 warning
check model.xml --fail-on info => 0 => 1 file checked: nothing found
check newer_than_runtime.xml --runtime 2022.3 => 1 => error[OVIR701] && BitwiseNot is declared in opset13; OpenVINO 2022.3 supports opset1 to opset10
check newer_than_runtime.xml --runtime 2020.1 => 1 => supports opset1\n
check newer_than_runtime.xml --runtime 2023.2.0 => 0 => nothing found
check element_type.xml --runtime 2024.0 => 1 => OpenVINO 2024.0 does not support the element type f8e8m0; the same applies to 1 more layer && hint: OpenVINO supports f8e8m0 from release 2024.3
check element_type.xml --runtime 2024.3 => 0 => 1 file checked
check ir_version.xml --runtime 2021.4 => 1 => OpenVINO 2021.4 does not read IR version 11
check ir_version.xml --runtime 2022.1 => 0 => 1 file checked
check dynamic_shapes.xml --device NPU => 1 => error[OVIR708] layer 0 'data' (Parameter, opset1): NPU: the input 'data' [?,2..5,3,4..6] && --shape data=1,5,3,6 -o fixed.xml` fixes the sizes && source: openvino #24619 && NPU: 1 obstacle, 0 doubts
check dynamic_shapes.xml --device NPU --ignore OVIR708 => 0 => !reason
check i64.xml --device GPU.1 => 0 => GPU.1: no obstacle found by the rules; the device was not asked && !runs
check wrong_declared_shape.xml --device CPU => 1 => CPU: 1 obstacle, 0 doubts
check empty => 2 => the folder holds no .xml file
run in => 2 => the folder holds no .xml file
infer in => 2 => the folder holds no .xml file
show in => 2 => the folder holds no .xml file
run cycle.xml => 1 => error[OVIR211]
infer cycle.xml => 1 => error[OVIR211]
show cycle.xml => 1 => error[OVIR211]
check cycle.xml => 1 => error[OVIR211]
run dead.xml => 1 => dead.xml: error[OVIR215] the model has no Result: there is nothing to compute
run nothing.xml => 1 => error[OVIR215] the model has no layers
check nothing.xml => 0 => warning[OVIR215] the model has no layers && 1 warning
show nothing.xml => 0 => x: IR version 11, 0 layers
run i64.xml --input x=1,2,3 --json => 0 => "values": [1, 2, 3]
run i64.xml --input x=7 --json => 0 => "values": [1, 2] && read from the file of this name
run i64.xml --input x=[7] --json => 0 => "values": [7]
run i64.xml --input x=9223372036854775807 --json => 0 => "values": [9223372036854775807]
run matrix.xml --input x=1,2,3 --json => 0 => "values": [[1, 2, 3]]
run matrix.xml --input x=[[1,2],[3,4]] --json => 0 => "values": [[1, 2], [3, 4]]
run scalar.xml --input x=0.5 --json => 0 => "values": 0.5
run one.xml --input x=1e-3 --json => 0 => "values": [0.0010000000474974513]
run zero.xml --input x=[[],[]] --json => 0 => "values": [[], []]
run u8.xml --input x=0x10,007 --json => 0 => "values": [16, 7]
run boolean.xml --input x=true,0 --json => 0 => "values": [true, false]
run string.xml --input 'x=one, two' --json => 0 => "values": ["one, two"]
run bare.xml --weights model.bin => 0 => probabilities
run model.xml => 0 => data f32[1,3] (size chosen) && indices i64[4], values 0 for Gather
run squares.xml --input x=1,300 --watch overflow:f16 => 1 => squared  Multiply   overflow:f16  90000  [1]           1  x 1..300; x 1..300 && nearest to overflow in f16:
run squares.xml --input x=1,300 --watch nan,inf,overflow:f16 --json => 1 => "layer": "squared",\n      "id": 1, && "what": "overflow:f16" && "value": 90000.0 && "position": [1]
run squares.xml --input x=1,300 --emulate f16 --watch overflow:f16 --json => 1 => "layer": "squared" && "what": "inf" && "values": [0.0010004043579101562, "inf"] && !"what": "overflow:f16"
run squares.xml --input x=1,2 --watch nan --watch inf => 0 => no layer makes such values
run squares.xml --input x=1,nan --watch nan,inf => 0 => input 'x' contains NaN; layers that depend on it are not reported
run squares.xml --input x=inf,1e5 --watch inf,overflow:f16 => 0 => input 'x' contains infinity\ninput 'x' contains values of overflow:f16
run large.xml --input x=0.28,1 --watch overflow:f16 => 0 => constant 'large' is beyond f16: 900000, read by scaled && 1 layer beyond f16 (margin below 1) && no layer makes such values, apart from what follows from these constants
run large.xml --input x=0.28,1 --watch overflow:f16 --emulate f16 => 0 => constant 'large' is beyond f16: 900000, read by scaled && !1 layer beyond f16
run large.xml --input x=0.28,1 --watch overflow:f16 --json => 0 => "layer": "large" && "value": 900000.0 && "readers": ["scaled"]
run large.xml --input x=0.28,1 => 0 => !it is clamped
run large.xml --input x=0.28,1 --emulate f16 => 0 => constant 'large' is beyond f16: 900000, read by scaled; it is clamped
run model.xml --shape data=2,5 => 1 => error[OVIR401] &&   hint: without --shape data=2,5 this input is f32[?,3]
infer model.xml --shape data=2,5 => 1 => error[OVIR401] &&   hint: without --shape data=2,5 this input is f32[?,3]
show model.xml --shape data=2,5 => 1 => error[OVIR401] &&   hint: without --shape data=2,5 this input is f32[?,3]
show model.xml --shape data=7,3 => 0 => test: IR version 11, 9 layers, opset1, opset8 && MACs        24 && parameters  7 elements in 2 constants && weights     32 bytes of a file of 32 bytes && !made by && !without --shape
infer f32.xml => 0 => !or more
infer f32.xml --shape 2..5 => 0 => !or more
infer f32.xml --shape 21.. => 0 => 21.. is a size of 21 or more
infer f32.xml --shape ... => 0 => !or more
check faulty.xml --quiet => 1 => error[OVIR203] && !OVIR304 && !checked
check faulty.xml -q --fail-on warning => 1 => error[OVIR203] && warning[OVIR304]
show f32.xml --memory => 0 => at most in a run
show f32.xml --state-length 4 => 0 => --state-length has no effect: no state of the model grows from call to call
show f32.xml --memory --shape 5 => 0 => at most in a run
edit digits.xml --rename image=a --rename a=photo --name renamed -o new.xml => 0 => renamed 'image' to 'a'\nrenamed 'a' to 'photo'\nthe model was named 'digits' and is named 'renamed'\nlayers: 1 changed; constants: 8, 24,380 bytes\nnew.xml: 23 layers, 1 input, 1 output
edit digits.xml --rename a=photo --rename image=a -o x.xml => 2 => no tensor and no layer is named 'a' && hint: this follows from --rename a=photo; nothing is written
run digits.xml --emulate f16 --keep-compressed => 2 => --emulate keeps rounded weights as f32, so that none stay compressed
run digits.xml --engine onnxruntime --keep-compressed => 2 => error[OVIR902] --keep-compressed needs the engine 'numpy'
fuzz --against python:compiler.py:run --config A=1 => 2 => --config holds properties of a device, but the other side is a function
edit digits.xml --rename image=photo --dry-run -o x.xml => 0 => renamed 'image' to 'photo'\nlayers: 1 changed; constants: 8, 24,380 bytes\nnothing is written (--dry-run)
edit f32.xml --runtime 2021.4 --dry-run => 1 => --shape x=...
edit f32.xml --runtime 2021.4 -o x.xml => 1 => --shape x=...
edit f32.xml --runtime 2021.4 --shape x=2 --dry-run => 0 => nothing is written (--dry-run)
edit digits.xml --shape 1,1,8,8 --batch 3 --dry-run => 0 => [?,1,8,8] -> [1,1,8,8]\ninput 'image': [1,1,8,8] -> [3,1,8,8]
edit digits.xml --batch 3 --shape 1,1,8,8 --dry-run => 0 => [?,1,8,8] -> [3,1,8,8] && input 'image': [3,1,8,8] -> [1,1,8,8]
edit sum.xml --shape x=2,5 --dry-run => 1 => hint: this follows from --shape x=2,5; --adapt lets constants follow --shape; nothing is written
edit sum.xml --shape x=2,5 --shape mask=3,5 --dry-run => 1 => hint: this follows from the edits together; --adapt lets constants follow --shape; nothing is written
edit mixing.xml --batch 4 -o x.xml => 1 => error[OVIR812] && 'mixing' && nothing is written
edit same.xml --shape data=2,3 --fold-constants --dry-run => 0 => folded 1 layer into 1 constant
edit same.xml --fold-constants --shape data=2,3 --dry-run => 0 => folded 0 layers into 0 constants
edit unequal.xml --batch 8 --dry-run => 1 => --batch starts from shapes that fit the model: give them before it, with --shape
edit unequal.xml --shape x=4,3 --batch 8 --dry-run => 0 => input 'x': [4,3] -> [8,3]\ninput 'y': [4,3] -> [8,3]\nno layer had to change for the batch\nproven: the results agree for 3 sets
run unequal.xml --shape y=2,3 => 0 => sum     f32   [2,3]
compare unequal.xml unequal.xml --shape y=2,3 => 0 => within tolerance
edit i4.xml --set-constant c=[-8,7] --dry-run => 0 => constant 'c': i4[3] = 0,1,1 -> i4[2] = -8,7
edit bf16.xml --set-constant c=[0.5,2] --dry-run => 0 => constant 'c': bf16[3] = 0,1,1 -> bf16[2] = 0.5,2
edit nf4.xml --set-constant c=[15,0] --dry-run => 0 => constant 'c': nf4[3] = 0,1,1 -> nf4[2] = 15,0
edit u1.xml --set-constant c=[1,0] --dry-run => 0 => constant 'c': u1[3] = 0,1,1 -> u1[2] = 1,0
edit digits.xml --compress-to-bf16 --dry-run => 0 => 7 constants of f32 and f64 stored as bf16
edit digits.xml --shape 2,1,8,8 --batch 4 --no-verify --dry-run => 0 => not proven: the proof was left out
edit newer.xml --runtime 2022.3 --dry-run => 1 => layer 3 'fake' (FakeConvert, opset13): this layer cannot be rewritten for OpenVINO 2022.3 && layer 5 'drawn' && hint: OpenVINO knows it from release 2023.2
check newer.xml --runtime 2022.3 => 1 => layer 5 'drawn' && hint: this layer cannot be rewritten: older operations do not round to f8
edit digits.xml --add-output relu1 --json --dry-run => 0 => "files": [] && "layer": "relu1/sink_port_0" && "added": ["relu1/sink_port_0"],\n  "removed": [] && "option": "--add-output",\n      "value": "relu1",\n      "result": "output 'relu1': f32[?,16,8,8]" && "diagnostics": []
edit digits.xml --rename image=photo --json -o new.xml => 0 => "files": ["new.xml", "new.bin"] && "name": "photo",\n      "names": ["photo"],\n      "layer": "photo" && "layers": 23,\n  "added": ["photo"],\n  "removed": ["image"]
extract digits.xml --inputs conv1,image --outputs pool1:0 --json -o part.xml => 0 => "files": ["part.xml", "part.bin"] && "layers": 7,\n  "added": ["pool1/sink_port_0"] && "notes": ["nothing in the part reads input 'image'"]
edit equals.xml --rename a=b=x=y --set-constant c=d=-1,128 --dry-run => 0 => renamed 'a=b' to 'x=y' && constant 'c=d': i64[2] = 1,128 -> i64[2] = -1,128
explain OVIR402 => 0 => ## OVIR402: a declared shape differs from the inferred one && Fix: write the inferred shape
explain ovir402 => 0 => ## OVIR402:
explain 402 => 0 => ## OVIR402:
explain 101 999 ovir101 => 0 => ## OVIR101: && \n## OVIR999: && !\n## OVIR101:
ops Convolution => 0 =>     strides     integers, at least 1, required && string, one of explicit, notset, valid, same_upper, same_lower, default explicit
ops TopK => 0 =>     1  the type of `index_element_type` &&   known to: OpenVINO 2023.0 or later && rewrites it for releases before 2023.0: leave out ``stable`` && layer = ops.topk([3, 1, 2], 2, 0, "max", "value") && prints\n\n  [3 2]\n  [0 2]
ops If => 0 => not rewritten for releases before 2022.1: older operations do not choose
ops squeeze --json => 0 => "opsets": "1-14" && "name": "axes" && "optional": true && "version": "opset15" && "name": "allow_axis_skip" && "type": "boolean" && "default": "false"
"""
LINES = RESULTS.strip().splitlines()


@pytest.mark.parametrize("row", LINES, ids=[row.partition(" => ")[0] for row in LINES])
def test_what_commands_print(cli: Cli, files: Path, monkeypatch: pytest.MonkeyPatch, row: str) -> None:
    monkeypatch.chdir(files)
    require_row(cli, monkeypatch, row)
