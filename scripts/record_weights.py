"""Writes a small network in both formats of PyTorch's weights, for the tests of their reader.

    record_weights.py --out crates/brasa-citylearn/tests/data/weights

Needs PyTorch. The numbers of a tensor are 0, 1, 2 and so on, divided by 8, plus the place of the tensor.
"""

import argparse
from pathlib import Path

import torch


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l_lstm = torch.nn.LSTM(2, 3, num_layers=1, batch_first=True)
        self.l_linear = torch.nn.Linear(3, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    network = Network()
    with torch.no_grad():
        for place, tensor in enumerate(network.parameters()):
            tensor.copy_(place + torch.arange(tensor.numel()).reshape(tensor.shape) / 8)
    # Beside other things, as in the data sets of 2023; the loss is an object.
    content = {"model_state_dict": network.state_dict(), "epoch": 3, "loss": torch.nn.MSELoss(), "rate": 0.5}
    torch.save(content, out / "archive.pth")
    torch.save(network.state_dict(), out / "pickles.pth", _use_new_zipfile_serialization=False)
    torch.save({name: tensor.double() for name, tensor in network.state_dict().items()}, out / "double.pth")


if __name__ == "__main__":
    main()
