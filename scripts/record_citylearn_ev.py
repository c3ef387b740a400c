"""Cuts CityLearn's data set with electric vehicles to a fixture and records golden numbers from the PyPI packages.

    record_citylearn_ev.py cut --dataset DATASET --out crates/brasa-citylearn/tests/data/citylearn_ev
        writes some weeks of three homes with four chargers from `citylearn_challenge_2022_phase_all_plus_evs`
        (MIT licence, beside the data), compressed, every number with as many digits as f32 needs
    record_citylearn_ev.py record --dataset DATASET --out crates/brasa-citylearn/tests/data/citylearn_ev
        drives the installed citylearn (2.5.0 or 3.0.2) on the whole data set, 200 steps, and on the cut, to its end;
        run it once per version

A run is stored as NAME.json and NAME.bin.gz: little-endian f32, for every row the net consumption of each building
(kWh), the state of charge of each battery, the energy of each charger at the grid (kWh), then the state of charge of
each vehicle. CityLearn 2.5 reads the columns of chargers by position and 3.0 has another format of washing machines,
so both get files with six columns and no washing machine.
"""

import argparse
import csv
import gzip
import io
import json
import math
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from record_citylearn import NOT_EMBEDDED, about, make_environment, shortest_f32, write_run  # noqa: E402

HOMES = ["Building_1", "Building_4", "Building_15"]
ROWS = 1500
DROPPED = ["electric_vehicle_battery_capacity_khw", "current_soc"]
# Keeps its eight columns, to show that columns are read by name.
EIGHT_COLUMNS = "charger_4_1.csv"


def number_or_text(cell):
    try:
        return shortest_f32(cell)
    except ValueError:
        return cell


def rows_of(path, rows, drop=()):
    lines = list(csv.reader(path.open()))[: rows + 1]
    keep = [i for i, column in enumerate(lines[0]) if column not in drop]
    return [[line[i] for i in keep] for line in lines]


def used_files(schema):
    for building in schema["buildings"].values():
        for key in ["energy_simulation", "weather", "carbon_intensity", "pricing"]:
            yield building[key]
        for charger in building.get("chargers", {}).values():
            yield charger["charger_simulation"]
        for machine in building.get("washing_machines", {}).values():
            yield machine["washing_machine_energy_simulation"]


def cut(dataset, out):
    schema = json.loads((dataset / "schema.json").read_text())
    schema["buildings"] = {name: schema["buildings"][name] for name in HOMES}
    schema["simulation_end_time_step"] = ROWS - 1
    vehicles = set()
    out.mkdir(parents=True, exist_ok=True)

    def write(name, text):
        with open(out / f"{name}.gz", "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
            packed.write(text.encode())

    for name in sorted(set(used_files(schema))):
        charger = name.startswith("charger")
        # Chargers have more rows than the simulation, as in the whole data set.
        rows = rows_of(
            dataset / name, ROWS + (100 if charger else 0),
            () if name == EIGHT_COLUMNS else DROPPED if charger else NOT_EMBEDDED,
        )
        if charger:
            vehicles |= {row[1] for row in rows[1:]}
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([rows[0]] + [list(map(number_or_text, row)) for row in rows[1:]])
        write(name, text.getvalue())
    cars = schema["electric_vehicles_def"]
    schema["electric_vehicles_def"] = {name: cars[name] for name in cars if name in vehicles}
    write("schema.json", json.dumps(schema, indent=1) + "\n")
    (out / "LICENSE-CityLearn").write_bytes((dataset / "LICENSE").read_bytes())


# --- record ---------------------------------------------------------------------------------------------


def sine(n):
    return lambda step: [0.8 * math.sin(0.3 * step + i) for i in range(n)]


def half_idle(n):
    """Uniform, but half of them exactly 0."""
    import numpy

    generator = numpy.random.RandomState(7)

    def actions(_step):
        values = generator.uniform(-1.0, 1.0, n)
        return [float(x) if abs(x) < 0.5 else 0.0 for x in values]

    return actions


def uniform(n):
    import numpy

    generator = numpy.random.RandomState(7)
    return lambda _step: generator.uniform(-1.0, 1.0, n).tolist()


# name: (cut, actions, steps)
RUNS = {
    "whole_sine": (False, sine, 200),
    "cut_random": (True, uniform, None),
    "cut_half_idle": (True, half_idle, 400),
    "cut_limits": (True, uniform, 400),
    "cut_machine": (True, uniform, 400),
    "cut_outages": (True, uniform, 300),
    "cut_reward": (True, uniform, 400),
    "cut_reward_half_idle": (True, half_idle, 400),
}

# Runs whose reward is the one for chargers, with the limits of `LIMITS`. All their rewards are kept.
REWARDED = {"cut_reward", "cut_reward_half_idle"}

# The homes are cut off in eleven rows of 31.
OUTAGES = {"every": 31, "rows": range(12, 23)}

# The limits of the home with two chargers in `citylearn_charging_constraints_demo`.
LIMITS = {
    "building_limit_kw": 12.0,
    "observations": {"headroom": True, "violation": True, "phase_encoding": True},
    "phases": [
        {"name": "phase_a", "limit_kw": 7.0, "chargers": ["charger_15_1"]},
        {"name": "phase_b", "limit_kw": 5.0, "chargers": ["charger_15_2"]},
        {"name": "phase_c", "chargers": []},
    ],
}

# Runs that keep their first observations.
OBSERVED = {"cut_random", "cut_limits", "cut_machine"}


def prepared(dataset, folder, run):
    """The data set in a form that both versions read."""
    schema = json.loads((dataset / "schema.json").read_text())
    with_cut = RUNS[run][0]
    if with_cut:
        schema["buildings"] = {name: schema["buildings"][name] for name in HOMES}
        schema["simulation_end_time_step"] = ROWS - 1
    if run == "cut_limits" or run in REWARDED:
        schema["buildings"]["Building_15"]["charging_constraints"] = LIMITS
    if run == "cut_outages":
        for building in schema["buildings"].values():
            building["power_outage"] = {"simulate_power_outage": True, "stochastic_power_outage": False}
    if run != "cut_machine":
        for building in schema["buildings"].values():
            building.pop("washing_machines", None)
        schema["observations"] = {k: v for k, v in schema["observations"].items() if "washing_machine" not in k}
        schema["actions"] = {k: v for k, v in schema["actions"].items() if "washing_machine" not in k}
    reward = "Electric_Vehicles_Reward_Function" if run in REWARDED else "RewardFunction"
    schema["reward_function"] = {"type": f"citylearn.reward_function.{reward}", "attributes": {}}
    schema["root_directory"] = str(folder)
    files = set(used_files(schema))
    for name in files:
        charger = name.startswith("charger")
        rows = rows_of(dataset / name, 10**6, DROPPED if charger else ())
        rows[1:] = [[cell if cell or charger else "0.0" for cell in row] for row in rows[1:]]
        if run == "cut_outages" and name.startswith("Building"):
            rows[0].append("power_outage")
            for i, row in enumerate(rows[1:]):
                row.append("1" if i % OUTAGES["every"] in OUTAGES["rows"] else "0")
        with open(folder / name, "w", newline="") as out:
            csv.writer(out, lineterminator="\n").writerows(rows)
    if with_cut:
        used = {row[1] for name in files if name.startswith("charger") for row in rows_of(folder / name, ROWS + 100)}
        cars = schema["electric_vehicles_def"]
        schema["electric_vehicles_def"] = {name: cars[name] for name in cars if name in used}
    return schema


def record(dataset, out, name, folder):
    import numpy

    _, make_actions, steps = RUNS[name]
    schema = prepared(dataset, folder, name)
    # Away vehicles drift with the global generator in 2.5.
    numpy.random.seed(0)
    environment, wrapped = make_environment(schema)
    names = environment.action_names[0]
    space = environment.action_space[0]
    actions = make_actions(len(names))
    raw = [[float(x) for x in environment.observations[0]]]
    normalized = [[float(x) for x in wrapped.observation(environment.observations)[0]]]
    rewards, violations, step = [], [], 0
    while not environment.terminated and (steps is None or step < steps):
        action = numpy.clip(numpy.array(actions(step), dtype="f4"), space.low, space.high)
        observations, reward, _, _, _ = environment.step([[float(x) for x in action]])
        rewards.append(float(reward[0]))
        violations.append(sum(b._charging_constraint_last_penalty_kwh for b in environment.buildings))
        if step < 30:
            raw.append([float(x) for x in observations[0]])
            normalized.append([float(x) for x in wrapped.observation(observations)[0]])
        step += 1
        if step % 100 == 0:
            print(name, step, file=sys.stderr, flush=True)

    buildings = environment.buildings
    chargers = [charger for building in buildings for charger in building.electric_vehicle_chargers]
    vehicles = environment.electric_vehicles
    table = numpy.array(
        [building.net_electricity_consumption[:step] for building in buildings]
        + [building.electrical_storage.soc[:step] for building in buildings]
        + [charger.electricity_consumption[:step] for charger in chargers]
        + [vehicle.battery.soc[:step] for vehicle in vehicles],
        dtype="<f4",
    ).T
    result = about(name, step) | {
        "buildings": [building.name for building in buildings],
        "chargers": [charger.charger_id for charger in chargers],
        "vehicles": [vehicle.name for vehicle in vehicles],
        "action_names": names,
        "action_low": [float(x) for x in space.low],
        "first_rewards": rewards if name in REWARDED else rewards[:12],
        "return": sum(rewards),
        "violation_kwh": violations if any(violations) else [],
        "capacity_at_end_kwh": [vehicle.battery.capacity_history[-1] for vehicle in vehicles],
        "parameters": [
            {
                "efficiency": vehicle.battery.efficiency_history[0],
                "loss_coefficient": vehicle.battery.loss_coefficient,
                "capacity_loss_coefficient": vehicle.battery.capacity_loss_coefficient,
                "depth_of_discharge": vehicle.battery.depth_of_discharge,
                "initial_soc": vehicle.battery.initial_soc,
            }
            for vehicle in vehicles
        ],
    }
    if name == "cut_random":
        result["indicators"] = [
            [row["name"], row["cost_function"], float(row["value"])]
            for _, row in environment.evaluate().iterrows()
            if row["value"] is not None and math.isfinite(row["value"])
        ]
    if name in OBSERVED:
        result |= {
            "observation_names": environment.observation_names[0],
            "observations": raw,
            "normalized_observation_names": wrapped.observation_names[0],
            "normalized_observations": normalized,
        }
    # The rows are those of other runs.
    write_run(out, result, None if name in REWARDED else table)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["cut", "record"])
    parser.add_argument("--dataset", type=Path, required=True, help="folder of the unpacked data set")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--run", choices=sorted(RUNS), nargs="*", help="runs to record, all by default")
    arguments = parser.parse_args()
    if arguments.command == "cut":
        cut(arguments.dataset, arguments.out)
    else:
        from importlib.metadata import version

        for name in arguments.run or RUNS:
            if name == "cut_machine" and version("citylearn") >= "3":
                continue  # Another format of washing machines.
            with tempfile.TemporaryDirectory() as folder:
                record(arguments.dataset.resolve(), arguments.out, name, Path(folder))


if __name__ == "__main__":
    main()
