"""Checks an ONNX model and runs it: needs the packages onnx, onnxruntime and numpy.

python3 run_onnx.py MODEL < INPUTS > OUTPUTS

INPUTS is JSON, {"obs": {"shape": [...], "values": [...]}, ...}; OUTPUTS has the same form.
"""

import json
import sys

import numpy as np
import onnx
import onnxruntime

path = sys.argv[1]
model = onnx.load(path)
onnx.checker.check_model(model, full_check=True)
assert model.ir_version == 8 and model.opset_import[0].version == 17
session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
given = json.load(sys.stdin)
feed = {
    name: np.array(array["values"], dtype=np.float32).reshape(array["shape"]) for name, array in given.items()
}
names = [output.name for output in session.get_outputs()]
results = dict(zip(names, session.run(names, feed)))
json.dump(
    {name: {"shape": list(result.shape), "values": result.ravel().tolist()} for name, result in results.items()},
    sys.stdout,
)
