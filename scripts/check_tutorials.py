"""Runs the commands of the tutorials and of the README as a reader would, and compares what they print with the pages.

    python3 scripts/check_tutorials.py target/debug/brasa [PAGE ...]

Each page runs in its own temporary directory, which has `configs`, `crates`, `examples` and the command `brasa`. The blocks of
a page run in order:

- A block of `sh` is one script of Bash. It stops at the first command that fails.
- A block of `text` after the marker `<!-- output -->` must appear in the output of the script before it. The number of spaces does not
  matter. A line `...` stands for any lines, and `...` in a line for any text.

Markers are comments in the line before a block:

    <!-- file: NAME -->          writes the block to a file
    <!-- source: PATH -->        the block is this file of the repository, without its first comment; a build compiles the file
    <!-- output -->              compares the block; `<!-- output, varies: 481.2; 4 s -->` accepts other text for these parts
    <!-- check: fails -->        the script must fail
    <!-- check: skip, REASON --> the script is not run
    <!-- check: --steps 4096 --> adds an option to each `brasa train` and `brasa compare`, to save time
    <!-- check: run PATH ... --> runs a program of the same build instead of the script, which would build it
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_SECS = 170


class Block:
    """A fenced block with its language, the marker before it, its text, and the line of its first line."""

    def __init__(self, language, marker, line):
        self.language, self.marker, self.line, self.lines = language, marker, line, []

    @property
    def text(self):
        return "".join(line + "\n" for line in self.lines)


def blocks(text):
    """The fenced blocks of a page."""
    found, block, marker = [], None, ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            if block:
                found.append(block)
                block, marker = None, ""
            else:
                block = Block(line[3:].strip(), marker, number + 1)
        elif block:
            block.lines.append(line)
        elif line.startswith("<!--"):
            marker = line.removeprefix("<!--").removesuffix("-->").strip()
        elif line.strip():
            marker = ""
    return found


def pattern(line, varies):
    """A regular expression for a line of expected output."""
    parts = "|".join(re.escape(part) for part in sorted(varies, key=len, reverse=True)) or r"(?!)"
    pieces = re.split(rf"(\.\.\.|(?<![\w.-])(?:{parts})(?!\w))", " ".join(line.split()))
    literal = [re.escape(piece).replace(r"\ ", r"\s+") for piece in pieces[::2]]
    free = [".*" if piece == "..." else r"\S.*?" for piece in pieces[1::2]]
    return re.compile(r"\s*" + "".join(a + b for a, b in zip(literal, [*free, ""])) + r"\s*")


def first_difference(expected, output, varies):
    """The index of the first expected line that is missing in the output, or None."""
    lines, at, skipping = output.splitlines(), 0, True
    for index, line in enumerate(expected):
        if line.strip() == "...":
            skipping = True
            continue
        if not line.strip():
            continue
        form = pattern(line, varies)
        while at < len(lines) and (skipping or not lines[at].strip()) and not form.fullmatch(lines[at]):
            at += 1
        if at == len(lines) or not form.fullmatch(lines[at]):
            return index
        at, skipping = at + 1, False
    return None


class Page:
    """One page in its temporary directory."""

    def __init__(self, path, program, folder):
        self.path, self.program, self.folder = path, program, folder
        self.output, self.ran, self.skipped = "", False, 0

    def fail(self, line, message):
        sys.exit(f"{self.path.relative_to(ROOT)}:{line}: {message}")

    def run(self, block):
        """Runs a block of commands, and keeps the output."""
        kind, _, rest = block.marker.partition(":")
        rest = rest.strip() if kind == "check" else ""
        self.ran = not rest.startswith("skip")
        script = block.text
        if rest.startswith("run "):
            name, *arguments = rest.split()[1:]
            program = self.program.parent / name
            self.ran = program.exists()
            script = " ".join([f"'{program}'", *arguments])
        if not self.ran:
            self.skipped += 1
            return
        if rest.startswith("-"):
            script = re.sub(r"(?m)^(brasa (?:train|compare) [^#\n]*?)(\s*(?:#.*)?)$", rf"\1 {rest}\2", script)
        environment = {"PATH": f"{self.folder / 'bin'}:/usr/local/bin:/usr/bin:/bin", "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}
        work = self.folder / "work"
        try:
            done = subprocess.run(
                ["bash", "-e", "-c", script], cwd=work, env=environment, timeout=TIMEOUT_SECS, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False,
            )
        except subprocess.TimeoutExpired:
            self.fail(block.line, f"the commands take more than {TIMEOUT_SECS} s")
        self.output = done.stdout
        if (done.returncode != 0) != (rest == "fails"):
            self.fail(block.line, f"exit status {done.returncode} of\n{script}\n{self.output}")

    def compare(self, block):
        """Compares a block with the last output."""
        if not self.ran:
            return
        _, _, rest = block.marker.partition(":")
        varies = [part.strip() for part in rest.split(";") if part.strip()]
        index = first_difference(block.lines, self.output, varies)
        if index is not None:
            self.fail(block.line + index, f"the output has no line `{block.lines[index]}`:\n{self.output}")

    def check(self):
        """Runs all blocks; returns the number of scripts that were run."""
        n = 0
        for block in blocks(self.path.read_text()):
            kind, _, name = block.marker.partition(":")
            if kind == "file":
                (self.folder / "work" / name.strip()).write_text(block.text)
            elif kind == "source":
                source = re.sub(r"\A(//!.*\n)+\n", "", (ROOT / name.strip()).read_text())
                if source != block.text:
                    self.fail(block.line, f"the block differs from {name.strip()} without its first comment")
            elif kind.startswith("output"):
                self.compare(block)
            elif block.language == "sh":
                self.run(block)
                n += self.ran
        return n


def main():
    program = Path(sys.argv[1]).absolute()
    pages = [Path(page).resolve() for page in sys.argv[2:]] or [ROOT / "README.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
    started = time.monotonic()
    for path in pages:
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            (folder / "work").mkdir()
            (folder / "bin").mkdir()
            (folder / "bin" / "brasa").symlink_to(program)
            for name in ["configs", "crates", "examples"]:
                (folder / "work" / name).symlink_to(ROOT / name)
            page = Page(path, program, folder)
            n = page.check()
        skipped = f", {page.skipped} skipped" if page.skipped else ""
        print(f"{path.relative_to(ROOT)}: {n} scripts{skipped}, {time.monotonic() - begun:.0f} s", flush=True)
    print(f"the commands print what their pages show, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
