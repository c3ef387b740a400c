"""Checks that the documentation prints the figures that its commands give, for commands that take seconds.

    python3 scripts/check_figures.py target/release/brasa

Each entry runs `brasa baseline` once and looks for rows of Markdown tables. A row is named by the beginning of its first cell, and must
contain each number as formatted here. Figures of trained policies take minutes and are not checked.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def cents(value):
    """A ratio as in the README: .967 or 1.123."""
    text = f"{value:.3f}"
    return text[1:] if text.startswith("0") else text


def four(value):
    return f"{value:.4f}"


def one(value):
    return f"{value:,.1f}"


def whole(value):
    return f"{value:,.0f}"


def figure(name, form):
    return lambda row: form(row[name])


def ratio(name, form):
    return lambda row: form(row["ratios"][name])


DISTRICT = ["challenge_score", "cost_building_mean", "carbon_building_mean", "ramping_kw", "daily_peak_kw", "peak_kw"]
RETURN = [figure("return", one)]
OPTIMUM = ["scenario.iquitos.optimum=true"]

# Config, settings, and rows: file, beginning of the row, controller, numbers.
CHECKS = [
    (
        "configs/citylearn-ppo.toml",
        [],
        [
            ("README.md", row, controller, [ratio(name, cents) for name in DISTRICT])
            for row, controller in [
                ("`idle`", "idle"),
                ("`basic-rbc`", "basic-rbc"),
                ("`rule-based`", "rule-based"),
            ]
        ]
        + [
            ("docs/explanation/results.md", row, controller, [ratio(name, four) for name in DISTRICT])
            for row, controller in [("BasicRBC", "basic-rbc"), ("rule-based (BasicBatteryRBC)", "rule-based")]
        ],
    ),
    (
        "configs/iquitos-aggregate-ppo.toml",
        [],
        [
            ("docs/explanation/results.md", row, controller, [*RETURN, figure("cost", whole), figure("carbon_kg", whole)])
            for row, controller in [
                ("idle (no vehicle is served)", "idle"),
                ("uncontrolled", "uncontrolled"),
                ("greedy", "greedy"),
                ("rule-based", "rule-based"),
                ("price-threshold", "price-threshold"),
            ]
        ],
    ),
    # Planners round differently on other processors: rules and bounds alone are compared.
    (
        "configs/own-site.toml",
        OPTIMUM,
        [
            ("docs/how-to/own-csv.md", f"`{name}`", name, [*RETURN, figure("cost", one), figure("peak_kw", one)])
            for name in ["uncontrolled", "price-threshold", "rule-based"]
        ]
        + [("docs/how-to/own-csv.md", f"`{name}`", name, RETURN) for name in ["perfect-foresight", "bound"]],
    ),
    (
        "configs/station-ppo.toml",
        [],
        [("docs/reference/station.md", f"`{name}`", name, RETURN) for name in ["idle", "spread", "uncontrolled", "price-threshold", "peak-shaving"]],
    ),
]


def rows(file, beginning):
    """The rows of tables in `file` whose first cell has this beginning."""
    lines = (ROOT / file).read_text().splitlines()
    tables = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines if line.startswith("|")]
    return [cells for cells in tables if cells[0].startswith(beginning)]


def main():
    program, failures, n = sys.argv[1], [], 0
    for config, settings, expected in CHECKS:
        command = [program, "baseline", config, "--json"]
        for setting in settings:
            command += ["--set", setting]
        controllers = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)["controllers"]
        for file, beginning, controller, forms in expected:
            numbers = [form(controllers[controller]) for form in forms]
            found = rows(file, beginning)
            n += len(numbers)
            if not any(all(any(number in cell for cell in cells[1:]) for number in numbers) for cells in found):
                failures.append(f"{file}: no row `{beginning}` with {', '.join(numbers)} ({' '.join(command)})")
    print("\n".join(failures) or f"{n} figures of the documentation are those of their commands")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
