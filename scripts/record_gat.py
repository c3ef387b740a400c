"""Records layers of PyTorch Geometric as golden numbers: values, attention weights and all gradients, in f64.

    pip install torch==2.9.1 torch_geometric==2.8.1 safetensors==0.8.0
    python scripts/record_gat.py crates/brasa-gat/tests/data/pyg.safetensors

Each case is one graph and one layer. The loss is the sum of the output times a recorded array, so that no gradient is
trivial. The header lists cases and versions; arrays are named `case/array` and stored in f32.
"""

import json
import sys

import numpy as np
import safetensors
import torch
import torch_geometric
from safetensors.numpy import save_file
from torch_geometric.nn import GATConv, GATv2Conv, GraphNorm

# version, nodes, inputs, heads, outputs per head, and what differs from the defaults below.
CASES = [
    ("v1", 1, 3, 1, 4, {}),
    ("v1", 2, 3, 4, 2, {"concat": False}),
    ("v1", 11, 4, 4, 3, {"edge_features": 5, "self_loops": True}),
    ("v1", 11, 4, 1, 5, {"isolated": True}),
    ("v1", 11, 3, 16, 2, {"concat": False, "edge_features": 2, "bias": False, "isolated": True}),
    ("v1", 45, 3, 16, 2, {"self_loops": True}),
    ("v1", 45, 3, 4, 8, {"concat": False, "edge_features": 3, "isolated": True, "self_loops": True}),
    ("v1", 200, 2, 4, 2, {"edge_features": 2}),
    ("v2", 1, 3, 4, 2, {"edge_features": 2}),
    ("v2", 2, 3, 1, 4, {}),
    ("v2", 11, 4, 4, 3, {"edge_features": 5, "self_loops": True, "isolated": True}),
    ("v2", 11, 4, 1, 5, {"concat": False, "share_weights": True}),
    ("v2", 11, 3, 16, 2, {"concat": False, "edge_features": 2, "bias": False, "isolated": True}),
    ("v2", 45, 3, 16, 2, {"self_loops": True}),
    ("v2", 45, 3, 4, 8, {"edge_features": 3, "isolated": True, "share_weights": True}),
    ("v2", 200, 2, 4, 2, {"edge_features": 2, "concat": False}),
]
DEFAULTS = {
    "concat": True,
    "edge_features": 0,
    "bias": True,
    "share_weights": False,
    "isolated": False,
    "self_loops": False,
}
NORM_NODES, NORM_WIDTH = [5, 1, 11], 6


def draw_graph(rng, nodes, isolated, self_loops):
    """Directed edges without repetition, mostly in both directions, in no order."""
    end = nodes - 1 if isolated else nodes
    edges = set()
    for node in range(1, end):
        other = int(rng.integers(node))
        edges |= {(node, other), (other, node)}
    for _ in range(nodes if nodes > 2 else 0):
        source, destination = (int(x) for x in rng.integers(end, size=2))
        if source != destination:
            edges.add((source, destination))
    if self_loops:
        edges |= {(node, node) for node in (0, nodes // 2, nodes - 1)}
    edges = sorted(edges)
    rng.shuffle(edges)
    return np.array(edges, dtype=np.int64).reshape(-1, 2)


def tensor(array):
    return torch.as_tensor(array, dtype=torch.float64)


def record_layer(index, arrays):
    version, nodes, inputs, heads, outputs, changes = CASES[index]
    settings = {**DEFAULTS, **changes}
    name = f"{version}_{index}"
    rng = np.random.default_rng(index)
    torch.manual_seed(index)
    edges = draw_graph(rng, nodes, settings["isolated"], settings["self_loops"])
    width = settings["edge_features"]
    kind = {"v1": GATConv, "v2": GATv2Conv}[version]
    more = {"share_weights": settings["share_weights"]} if version == "v2" else {}
    layer = kind(
        inputs, outputs, heads=heads, concat=settings["concat"], edge_dim=width or None, bias=settings["bias"], **more
    ).double()
    with torch.no_grad():  # biases start at 0, which would hide their part
        for parameter in layer.parameters():
            if parameter.ndim == 1:
                parameter.add_(tensor(rng.normal(size=parameter.shape) * 0.3))
    x = tensor(rng.normal(size=(nodes, inputs))).requires_grad_()
    edge_attr = tensor(rng.normal(size=(len(edges), width))).requires_grad_() if width else None
    edge_index = torch.as_tensor(edges.T.copy())
    out, (attended, attention) = layer(x, edge_index, edge_attr, return_attention_weights=True)
    probe = tensor(rng.normal(size=out.shape))
    (out * probe).sum().backward()
    parameters = dict(layer.named_parameters())

    def put(key, value, gradient=True):
        arrays[f"{name}/{key}"] = value.detach().numpy()
        if gradient:
            arrays[f"{name}/grad.{key}"] = value.grad.numpy()

    def put_joined(key, names, join):
        """Parameters that are one array of ours; matrices become [inputs, outputs]."""
        parts = [parameters[n] for n in names if n in parameters]
        if parts:
            arrays[f"{name}/{key}"] = join([p.detach().numpy() for p in parts])
            arrays[f"{name}/grad.{key}"] = join([p.grad.numpy() for p in parts])

    put("x", x)
    if width:
        put("edge_attr", edge_attr)
    put("probe", probe, gradient=False)
    put("out", out, gradient=False)
    put("attention_weights", attention, gradient=False)
    arrays[f"{name}/edges"] = edges.astype(np.float64)
    arrays[f"{name}/attended"] = attended.numpy().T.astype(np.float64)
    matrices = lambda parts: np.concatenate([p.T for p in parts], axis=1)
    stacked = lambda parts: np.concatenate(parts, axis=0)
    right = [] if settings["share_weights"] else ["lin_r"]
    put_joined("weight", ["lin.weight", "lin_l.weight", *(f"{r}.weight" for r in right)], matrices)
    put_joined("projection_bias", ["lin_l.bias", *(f"{r}.bias" for r in right)], lambda parts: np.concatenate(parts))
    put_joined("attention", ["att_src", "att_dst", "att"], stacked)
    put_joined("edge_weight", ["lin_edge.weight"], matrices)
    put_joined("edge_attention", ["att_edge"], stacked)
    put_joined("bias", ["bias"], lambda parts: parts[0])
    shape = {"version": version, "nodes": nodes, "inputs": inputs, "heads": heads, "outputs": outputs}
    return {"name": name, **shape, **settings}


def record_norm(arrays):
    """Graphs of several sizes in one batch."""
    rng = np.random.default_rng(100)
    nodes = sum(NORM_NODES)
    layer = GraphNorm(NORM_WIDTH).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(tensor(rng.normal(size=parameter.shape) * 0.3))
    x = tensor(rng.normal(size=(nodes, NORM_WIDTH))).requires_grad_()
    batch = torch.repeat_interleave(torch.arange(len(NORM_NODES)), torch.as_tensor(NORM_NODES))
    out = layer(x, batch)
    probe = tensor(rng.normal(size=out.shape))
    (out * probe).sum().backward()
    named = {"x": x, "weight": layer.weight, "bias": layer.bias, "mean_scale": layer.mean_scale}
    for key, value in named.items():
        arrays[f"graph_norm/{key}"] = value.detach().numpy()
        arrays[f"graph_norm/grad.{key}"] = value.grad.numpy()
    arrays["graph_norm/probe"] = probe.numpy()
    arrays["graph_norm/out"] = out.detach().numpy()


def main(path):
    arrays = {}
    cases = [record_layer(index, arrays) for index in range(len(CASES))]
    record_norm(arrays)
    versions = {
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "numpy": np.__version__,
        "safetensors": safetensors.__version__,
    }
    header = {"versions": json.dumps(versions), "cases": json.dumps(cases), "norm_nodes": json.dumps(NORM_NODES)}
    save_file({key: np.ascontiguousarray(value, dtype=np.float32) for key, value in arrays.items()}, path, header)


main(sys.argv[1])
