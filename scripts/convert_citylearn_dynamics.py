"""Converts the weights of CityLearn's building dynamics from PyTorch's format to safetensors.

    convert_citylearn_dynamics.py FOLDER [--out FOLDER]
        writes NAME.safetensors beside every NAME.pth of a data set, or to another folder; standard library only

A .pth file has a pickle and the bytes of each tensor, in an archive or, before PyTorch 1.6, one after the other. Of what the
pickle names, only tensors and dictionaries are made, so that nothing of the file is executed.
"""

import argparse
import collections
import json
import pickle
import struct
import zipfile
from pathlib import Path

BYTES = {"FloatStorage": 4}


class Storage:
    def __init__(self, name):
        self.name = name


class Reader(pickle.Unpickler):
    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda key, offset, shape, stride, *_: (key, offset, tuple(shape), tuple(stride))
        if module == "torch" and name in BYTES:
            return Storage(name)
        # Losses and states of the training are not needed, whatever they are.
        return lambda *_, **__: None

    def persistent_load(self, identity):
        _, storage, key, *_ = identity
        assert isinstance(storage, Storage), f"tensors must have 32 bits, got {storage}"
        return key


def from_archive(path):
    with zipfile.ZipFile(path) as archive:
        root = archive.namelist()[0].split("/")[0]
        content = Reader(archive.open(f"{root}/data.pkl")).load()
        prefix = f"{root}/data/"
        keys = [name for name in archive.namelist() if name.startswith(prefix)]
        return content, {name[len(prefix) :]: archive.read(name) for name in keys}


def from_older_format(path):
    """Pickles one after the other: number, version, system, content, keys; then the length and bytes of each storage."""
    with path.open("rb") as file:
        for _ in range(3):
            Reader(file).load()
        content, keys = Reader(file).load(), Reader(file).load()
        storages = {}
        for key in keys:
            (length,) = struct.unpack("<q", file.read(8))
            storages[key] = file.read(4 * length)
        return content, storages


def tensors(path):
    content, storages = (from_archive if zipfile.is_zipfile(path) else from_older_format)(path)
    content = content.get("model_state_dict", content)
    for name, (key, offset, shape, stride) in content.items():
        count, expected = 1, []
        for size in reversed(shape):
            expected.insert(0, count)
            count *= size
        assert stride == tuple(expected), f"{name} of {path} must be stored row by row"
        yield name, shape, storages[key][4 * offset : 4 * (offset + count)]


def convert(path, target):
    header, body = {}, b""
    for name, shape, data in tensors(path):
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    target.write_bytes(struct.pack("<Q", len(text)) + text + body)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of a data set")
    parser.add_argument("--out", type=Path, help="folder to write, the same by default")
    arguments = parser.parse_args()
    for path in sorted(arguments.folder.glob("*.pth")):
        convert(path, (arguments.out or arguments.folder) / f"{path.stem}.safetensors")


if __name__ == "__main__":
    main()
