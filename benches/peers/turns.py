"""Programs in turns, and their rates relative to the first.

    python benches/peers/turns.py [--turns 5] [--core 1] [--only WORD] benches/peers/peers.txt

The file has a program per line, `NAME: COMMAND`; a line that starts with `==` begins another table, `--only` selects those with this word.

Each program prints a line of JSON with `env_steps_per_second` or `updates_per_second` as its last line, or is `brasa train`, whose
`--out` must be the word RUN; its rate is the `time/fps` at the end of the run. All run on one core, one after the other. The table has the range
of each rate, and the median and range of the ratios of each turn: what slows the machine for a while slows all programs of a turn.
"""

import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile


def rate(command, core):
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        words = [str(run) if word == "RUN" else word for word in shlex.split(command)]
        if core is not None:
            words = ["taskset", "-c", str(core), *words]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"`{command}` ended with {done.returncode}:\n{done.stderr[-2000:]}")
        metrics = run / "metrics.jsonl"
        if metrics.exists():
            fields = [json.loads(line) for line in metrics.read_text().splitlines()]
            return [line["time/fps"] for line in fields if "time/fps" in line][-1]
        result = json.loads(done.stdout.strip().splitlines()[-1])
        return result.get("env_steps_per_second") or result["updates_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--core", type=int)
    parser.add_argument("--only", default="")
    parser.add_argument("file", type=pathlib.Path)
    arguments = parser.parse_args()
    tables = [("", [])]
    for line in arguments.file.read_text().splitlines():
        if line.startswith("=="):
            tables.append((line[2:].strip(), []))
        elif line and line[0] != "#":
            tables[-1][1].append([part.strip() for part in line.split(":", 1)])
    for task, programs in tables:
        if programs and arguments.only in task:
            table(task, programs, arguments)


def table(task, programs, arguments):
    rates = {name: [] for name, _ in programs}
    for turn in range(arguments.turns):
        for name, command in programs:
            rates[name].append(rate(command, arguments.core))
            print(f"{task}, turn {turn + 1}, {name}: {rates[name][-1]:,.0f}/s", file=sys.stderr)
    first = next(iter(rates.values()))
    print(f"{task}\n\n| | per second | to the first: median | range |\n|---|---|---|---|")
    for name, own in rates.items():
        ratios = [x / y for x, y in zip(own, first)]
        middle = statistics.median(ratios)
        print(f"| {name} | {min(own):,.0f} to {max(own):,.0f} | {middle:.2f} | {min(ratios):.2f} to {max(ratios):.2f} |")
    print(flush=True)


if __name__ == "__main__":
    main()
