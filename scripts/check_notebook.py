"""Executes the notebooks of `examples` and compares their outputs with the outputs in the files.

    python3 scripts/check_notebook.py target/debug/brasa            checks
    python3 scripts/check_notebook.py target/debug/brasa --write    also writes the new outputs into the files

Needs nbclient, ipykernel, pandas and matplotlib (PyPI). Without them, nothing is checked: the script prints SKIPPED and ends with exit code 0.

A cell must not raise, and must have outputs of the same kinds in the same order as in the file. Text may differ in numbers: they depend on the
machine. Pictures must be there.
"""

import argparse
import os
import re
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
TIMEOUT_SECS = 600


def kinds(cell):
    """What a cell shows: for each output its kinds of data, and its text without numbers."""
    shown, stream = [], ""
    for output in cell.outputs:
        if output.output_type == "stream":
            stream += output.text
            continue
        text = output.get("data", {}).get("text/plain", "")
        is_picture = "image/png" in output.get("data", {})
        shown.append((sorted(output.get("data", {})), "" if is_picture else without_numbers(text)))
    return shown, without_numbers(stream)


def without_numbers(text):
    """Words alone: columns are as wide as their numbers."""
    return " ".join(re.sub(r"[-+]?[\d.,]+(e[-+]?\d+)?", "0", text).split())


def check(path, write):
    """Executes a notebook. Returns what is wrong, or None."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    before, notebook = (nbformat.read(path, as_version=4) for _ in range(2))
    try:
        NotebookClient(notebook, timeout=TIMEOUT_SECS, resources={"metadata": {"path": str(path.parent)}}).execute()
    except CellExecutionError as error:
        return str(error)
    if write:
        for cell in notebook.cells:
            # Times of execution would change the file each time.
            cell.metadata.pop("execution", None)
        # As little as possible of the machine on which it ran.
        notebook.metadata = {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
        nbformat.write(notebook, path)
        return None
    for index, (old, new) in enumerate(zip(before.cells, notebook.cells)):
        if new.cell_type == "code" and kinds(old) != kinds(new):
            return f"cell {index} shows\n{kinds(new)}\ninstead of\n{kinds(old)}\nRun {sys.argv[0]} BRASA --write"
    if not any("image/png" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])):
        return "it has no picture"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("brasa", type=Path, help="the program")
    parser.add_argument("--write", action="store_true", help="writes the outputs into the notebooks")
    arguments = parser.parse_args()
    try:
        import ipykernel, matplotlib, nbclient, pandas  # noqa: E401, F401
    except ImportError as error:
        print(f"!!! SKIPPED: no notebook was executed: {error} (pip install nbclient ipykernel pandas matplotlib)")
        return
    program = arguments.brasa.resolve()
    if program.name != "brasa" or not program.is_file():
        sys.exit(f"{program} is not the program brasa")
    os.environ["PATH"] = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    failed = False
    for path in sorted(EXAMPLES.glob("*.ipynb")):
        wrong = check(path, arguments.write)
        print(f"{path.name}: {wrong or 'as written'}")
        failed |= wrong is not None
    sys.exit(failed)


if __name__ == "__main__":
    main()
