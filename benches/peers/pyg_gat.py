"""One layer of graph attention in PyTorch Geometric, forward and backward, on copies of one building.

    python benches/peers/pyg_gat.py --layer v2 [--passes 200] [--threads 1] [--device cuda]

`--layer` is v1 (GATConv), v2 (GATv2Conv), v1-edges or v2-edges. A batch has 64 copies of a daycare of 45 places and
142 directed edges as one graph of separate parts; nodes have 64 features, the layer four heads of 16, edges six
features. A pass goes down to gradients of the input and all weights. Prints one line of JSON.
"""

import argparse
import json
import platform
import time

ROWS, NODES, INPUTS, HEADS, OUTPUTS, EDGE_FEATURES = 64, 45, 64, 4, 16, 6


def daycare():
    connections = []
    for floor in range(3):
        first = floor * 14
        nurse, play_0, play_1, kitchen, store = range(first + 9, first + 14)
        connections += [(first, first + 1), (first + 1, first + 2)]
        connections += [(first + 3 + nursery, first + nursery // 2) for nursery in range(6)]
        connections += [(nurse, first + 3 + nursery) for nursery in range(6)]
        connections += [(nurse, room) for room in (play_0, play_1, kitchen, store)]
        connections += [(play_0, first + 2), (play_1, first), (kitchen, first), (store, first + 2)]
    connections += [(1, 15), (15, 29), (42, 0), (43, 2), (44, 30)]
    return connections + [(b, a) for a, b in connections]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layer", choices=["v1", "v2", "v1-edges", "v2-edges"], default="v2")
    parser.add_argument("--passes", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()

    import torch
    import torch_geometric
    from torch_geometric.nn import GATConv, GATv2Conv

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    torch.set_default_device(arguments.device)
    with_edges = arguments.layer.endswith("edges")
    kind = GATConv if arguments.layer.startswith("v1") else GATv2Conv
    layer = kind(INPUTS, OUTPUTS, heads=HEADS, edge_dim=EDGE_FEATURES if with_edges else None)
    edges = torch.as_tensor(daycare()).T
    assert edges.shape == (2, 142)
    edge_index = torch.cat([edges + row * NODES for row in range(ROWS)], dim=1)
    edge_attr = torch.randn(edges.shape[1], EDGE_FEATURES).repeat(ROWS, 1) if with_edges else None
    x = torch.randn(ROWS * NODES, INPUTS, requires_grad=True)
    probe = torch.randn(ROWS * NODES, HEADS * OUTPUTS)

    def forward_backward():
        x.grad = None
        layer.zero_grad()
        (layer(x, edge_index, edge_attr) * probe).sum().backward()

    wait = torch.cuda.synchronize if arguments.device.startswith("cuda") else lambda: None
    for _ in range(20):
        forward_backward()
    wait()
    begin = time.perf_counter()
    for _ in range(arguments.passes):
        forward_backward()
    wait()
    seconds = time.perf_counter() - begin
    print(
        json.dumps(
            {
                "library": "torch_geometric",
                "task": f"graph attention, {arguments.layer}",
                "shape": f"{ROWS}x{NODES}x{INPUTS} to {HEADS}x{OUTPUTS}",
                "passes": arguments.passes,
                "seconds": seconds,
                "milliseconds_per_pass": 1e3 * seconds / arguments.passes,
                "threads": torch.get_num_threads(),
                "device": arguments.device,
                "versions": {
                    "python": platform.python_version(),
                    "torch": torch.__version__,
                    "torch_geometric": torch_geometric.__version__,
                },
            }
        )
    )


main()
