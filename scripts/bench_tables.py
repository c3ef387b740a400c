#!/usr/bin/env python3
"""Turns Criterion's records into the tables of docs/reference/criterion.md.

    cargo bench
    python3 scripts/bench_tables.py record --note "nothing else running"   # target/criterion -> docs/benches.json
    python3 scripts/bench_tables.py tables                                 # docs/benches.json -> docs/reference/criterion.md
    python3 scripts/bench_tables.py tables --check                         # fails if the page differs from the records

A record has the commit, the machine, the date, the load of the machine and, for every id, the median with its confidence interval.
`record` replaces the ids that were measured and keeps the others, each with its own commit and date.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORDS = ROOT / "docs" / "benches.json"
PAGE = ROOT / "docs" / "reference" / "criterion.md"
BEGIN, END = "<!-- tables of scripts/bench_tables.py: begin -->", "<!-- tables of scripts/bench_tables.py: end -->"

# Heading, regular expression of `subject/part`, unit of the throughput.
SECTIONS = [
    ("Steps of environments on the host", r"[^/]+/step(-threaded)?", "env steps"),
    ("Steps of environments on the device", r"[^/]+/step-(host|tensor)-env", "env steps"),
    ("Heuristics", r"[^/]+/greedy", "decisions"),
    ("Decisions", r"(?!exported-policy|loaded-policy).+/act", "env steps"),
    ("Updates", r".+/(update|products)", "gradient steps"),
    ("Iterations of training", r".+/iteration", "env steps"),
    ("Losses, forward and derivatives", r".+/(critic-)?loss(-written-out)?", "rows"),
    ("Networks", r"(mlp/.+|gat-.+/forward-backward)", "rows"),
    ("Advantage estimation", r"gae/.+", "steps"),
    ("Replay", r"(prioritized-)?replay/.+", "transitions"),
    ("Transfers", r"transfer/.+", "bytes"),
    ("Checkpoints", r"checkpoint/.+", "checkpoints"),
    ("Exported and loaded policies", r"(exported|loaded)-policy/.+", "rows"),
]


def machine() -> str:
    model = "unknown processor"
    try:
        names = [line for line in open("/proc/cpuinfo") if line.startswith("model name")]
        model = names[0].split(":", 1)[1].strip()
    except (OSError, IndexError):
        pass
    return f"{model}, {os.cpu_count()} cores"


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def commit() -> str:
    changed = git("status", "--porcelain", "--untracked-files=no")
    return git("rev-parse", "--short=10", "HEAD") + ("-changed" if changed else "")


def estimates(folder: pathlib.Path):
    """Ids with their medians in nanoseconds, from the latest run of each since the last commit: older ones belong to another commit."""
    committed = int(git("log", "-1", "--format=%ct"))
    for path in sorted(folder.glob("**/new/benchmark.json")):
        if (path.parent / "estimates.json").stat().st_mtime < committed:
            continue
        about = json.loads(path.read_text())
        median = json.loads((path.parent / "estimates.json").read_text())["median"]
        bounds = median["confidence_interval"]
        throughput = about.get("throughput") or {}
        ((_, amount),) = throughput.items() if throughput else (("", None),)
        measured = time.strftime("%Y-%m-%d", time.gmtime((path.parent / "estimates.json").stat().st_mtime))
        yield about["full_id"], {
            "ns": [round(x, 1) for x in (bounds["lower_bound"], median["point_estimate"], bounds["upper_bound"])],
            "amount": amount,
            "date": measured,
        }


def record(arguments) -> None:
    records = json.loads(RECORDS.read_text()) if RECORDS.exists() else {"ids": {}}
    found = dict(estimates(pathlib.Path(arguments.criterion)))
    wrong = [name for name in found if name.count("/") != 3]
    if wrong:
        print(f"ids of another scheme, from before it, are left out: {', '.join(wrong[:5])} ...", file=sys.stderr)
    about = {"commit": commit(), "machine": machine(), "note": arguments.note}
    new = {name: {**values, **about} for name, values in found.items() if name not in wrong}
    if not new:
        sys.exit(f"no records since the last commit in {arguments.criterion}: run `cargo bench` first")
    records["ids"] = dict(sorted({**records["ids"], **new}.items()))
    RECORDS.write_text(json.dumps(records, indent=1) + "\n")
    print(f"{len(new)} ids recorded in {RECORDS.relative_to(ROOT)}")


def in_time(ns: float) -> str:
    for unit, factor in (("ns", 1.0), ("us", 1e3), ("ms", 1e6)):
        if ns < 999.5 * factor:
            return f"{ns / factor:.3g} {unit}"
    return f"{ns / 1e9:.3g} s"


def in_number(number: float) -> str:
    for unit, factor in (("", 1.0), (" k", 1e3), (" M", 1e6)):
        if number < 999.5 * factor:
            return f"{number / factor:.3g}{unit}"
    return f"{number / 1e9:.3g} G"


def tables() -> str:
    if not RECORDS.exists():
        return "No run of the benches is recorded yet.\n"
    lines, left = [], dict(json.loads(RECORDS.read_text())["ids"])
    sources = sorted({(v["date"], v["commit"], v["machine"], v["note"]) for v in left.values()})
    for date, revision, computer, note in sources:
        lines.append(f"- {date}, commit {revision}, {computer}: {note}.")
    for heading, pattern, unit in SECTIONS:
        rows = {name: left.pop(name) for name in list(left) if re.fullmatch(pattern, name.rsplit("/", 2)[0])}
        if not rows:
            continue
        lines += ["", f"### {heading}", "", f"| id | median | 95 % interval | {unit} per second |", "|---|---|---|---|"]
        for name, values in rows.items():
            low, median, high = values["ns"]
            rate = in_number(values["amount"] / median * 1e9) if values["amount"] else ""
            lines.append(f"| `{name}` | {in_time(median)} | {in_time(low)} to {in_time(high)} | {rate} |")
    if left:
        sys.exit(f"no section of {pathlib.Path(__file__).name} has these ids: {', '.join(left)}")
    return "\n".join(lines) + "\n"


def write_tables(arguments) -> None:
    text = PAGE.read_text()
    if BEGIN not in text or END not in text:
        sys.exit(f"{PAGE.name} needs the lines `{BEGIN}` and `{END}`")
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    made = f"{before}{BEGIN}\n\n{tables()}\n{END}{after}"
    if arguments.check:
        if made != text:
            sys.exit(f"{PAGE.name} differs from {RECORDS.name}: run `python3 scripts/bench_tables.py tables`")
        return
    PAGE.write_text(made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    recording = commands.add_parser("record", help="target/criterion -> docs/benches.json")
    recording.add_argument("--criterion", default=str(ROOT / "target" / "criterion"), help="the folder of Criterion")
    recording.add_argument("--note", required=True, help="how the machine was loaded, for the page")
    recording.set_defaults(run=record)
    writing = commands.add_parser("tables", help="docs/benches.json -> docs/reference/criterion.md")
    writing.add_argument("--check", action="store_true", help="only compare")
    writing.set_defaults(run=write_tables)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
