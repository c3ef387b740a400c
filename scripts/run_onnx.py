"""Checks an ONNX model and runs it: needs the packages onnx, onnxruntime and numpy.

python3 run_onnx.py MODEL < INPUTS > OUTPUTS

INPUTS is JSON, {"obs": {"shape": [...], "values": [...]}, ...}; OUTPUTS has the same form. A model that remembers gets arrays with one dimension
more, the steps of an episode, and so have its outputs.
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
memory = next((given for given in session.get_inputs() if given.name == "state"), None)
if memory is None:
    results = dict(zip(names, session.run(names, feed)))
else:
    state = np.zeros((feed["obs"].shape[1], *memory.shape[1:]), dtype=np.float32)
    steps = []
    for step in range(len(feed["obs"])):
        arrays = {name: array[step] for name, array in feed.items()}
        steps.append(session.run(names, arrays | {"state": state}))
        state = steps[-1][names.index("next_state")]
    results = {name: np.stack([step[i] for step in steps]) for i, name in enumerate(names)}
json.dump(
    {name: {"shape": list(result.shape), "values": result.ravel().tolist()} for name, result in results.items()},
    sys.stdout,
)
