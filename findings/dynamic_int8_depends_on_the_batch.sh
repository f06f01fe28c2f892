#!/usr/bin/env bash
# onnxruntime 1.31.1, quantize_dynamic: the vector of a row depends on the other rows of its batch, down to zeros.
#
# Expected by most: eight bits cost some precision, and the same for a row wherever it stands; rows of a batch are
# independent in every layer of an encoder. But the range of the activations is measured anew for each call and over the
# whole batch, so that one row of large numbers takes the levels away from all others. Vectors that were made in
# batches are then compared with a query that was encoded alone.
#
# Seen: cosine between a row's output alone and in a batch, one dense layer of 64 x 64
#       float32, beside rows of any length   1.0000
#       int8, beside rows of its own length  1.0000
#       int8, beside rows 30 times as long   0.9880
#       int8, beside rows 300 times as long  none: the output is all zeros
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import logging
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import quantize_dynamic

logging.disable(logging.WARNING)
SIZE = 64
rng = np.random.default_rng(0)
weight = numpy_helper.from_array(rng.normal(0, 0.1, (SIZE, SIZE)).astype(np.float32), "weight")
states, vectors = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", SIZE]) for name in ("x", "y"))
graph = helper.make_graph([helper.make_node("MatMul", ["x", "weight"], ["y"])], "dense", [states], [vectors], [weight])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), "dense.onnx")
quantize_dynamic("dense.onnx", "int8.onnx")

row, others = rng.normal(size=(1, SIZE)).astype(np.float32), rng.normal(size=(7, SIZE)).astype(np.float32)


def cosine(name, times):
    """Between the row's output alone and beside others that are so many times as long; None if it is zero."""
    session = onnxruntime.InferenceSession(name, providers=["CPUExecutionProvider"])
    alone, beside = (session.run(None, {"x": rows})[0][0] for rows in (row, np.concatenate([row, times * others])))
    length = np.linalg.norm(alone) * np.linalg.norm(beside)
    return round(float(alone @ beside / length), 4) if length else None


found = {times: cosine("int8.onnx", np.float32(times)) for times in (1, 30, 300)}
exact = {times: cosine("dense.onnx", np.float32(times)) for times in (1, 30, 300)}
print("float32", exact)
print("int8   ", found)
if set(exact.values()) != {1.0} or not 0.95 < found[30] < 0.995 < found[1] or found[300] is not None:
    sys.exit("the behaviour has changed")
PY
