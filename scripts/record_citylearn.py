"""Prepares CityLearn's 2022 phase 1 data set and records golden numbers from the PyPI packages.

Three commands, each runnable by anybody:

    record_citylearn.py convert --wheel CityLearn-2.1.2-py3-none-any.whl --dataset DATASET
        unpacks the data of the last wheel that carries any (pip download --no-deps CityLearn==2.1.2) and
        renames its columns and observations to what CityLearn 2.5 and 3.0 read; standard library only
    record_citylearn.py embed --dataset DATASET --out crates/brasa-citylearn/data
        writes the compressed copy that the crate embeds: every number with as many digits as f32 needs
    record_citylearn.py record --dataset DATASET --out crates/brasa-citylearn/tests/data/citylearn
        drives the installed citylearn (2.5.0 or 3.0.2) and writes what it says; run it once per version

A run is stored as NAME.json (versions, settings, indicators, rewards, observations) and NAME.bin.gz:
little-endian f32, for every kept row the net consumption of each building (kWh), then each state of charge.
Actions are rounded to f32 before CityLearn sees them, so that both sides get the same numbers.
"""

import argparse
import csv
import gzip
import io
import json
import math
import struct
import sys
import zipfile
from pathlib import Path

FOLDER_IN_WHEEL = "citylearn/data/citylearn_challenge_2022_phase_1/"
BUILDINGS = 5
RANDOM_SEED = 2022

BUILDING_COLUMNS = {
    "Month": "month",
    "Hour": "hour",
    "Day Type": "day_type",
    "Daylight Savings Status": "daylight_savings_status",
    "Indoor Temperature [C]": "indoor_dry_bulb_temperature",
    "Average Unmet Cooling Setpoint Difference [C]": "average_unmet_cooling_setpoint_difference",
    "Indoor Relative Humidity [%]": "indoor_relative_humidity",
    "Equipment Electric Power [kWh]": "non_shiftable_load",
    "DHW Heating [kWh]": "dhw_demand",
    "Cooling Load [kWh]": "cooling_demand",
    "Heating Load [kWh]": "heating_demand",
    "Solar Generation [W/kW]": "solar_generation",
}
WEATHER_COLUMNS = {
    f"{old_prefix}{old}": f"{new}{new_suffix}"
    for old, new in [
        ("Outdoor Drybulb Temperature [C]", "outdoor_dry_bulb_temperature"),
        ("Relative Humidity [%]", "outdoor_relative_humidity"),
        ("Diffuse Solar Radiation [W/m2]", "diffuse_solar_irradiance"),
        ("Direct Solar Radiation [W/m2]", "direct_solar_irradiance"),
    ]
    for old_prefix, new_suffix in [
        ("", ""),
        ("6h Prediction ", "_predicted_1"),
        ("12h Prediction ", "_predicted_2"),
        ("24h Prediction ", "_predicted_3"),
    ]
}
PRICING_COLUMNS = {
    "Electricity Pricing [$/kWh]": "electricity_pricing",
    "6h Prediction Electricity Pricing [$/kWh]": "electricity_pricing_predicted_1",
    "12h Prediction Electricity Pricing [$/kWh]": "electricity_pricing_predicted_2",
    "24h Prediction Electricity Pricing [$/kWh]": "electricity_pricing_predicted_3",
}
CARBON_COLUMNS = {"kg_CO2/kWh": "carbon_intensity"}
HORIZONS = {"_predicted_6h": "_predicted_1", "_predicted_12h": "_predicted_2", "_predicted_24h": "_predicted_3"}


# --- convert --------------------------------------------------------------------------------------------


def rename_csv(text, names):
    rows = list(csv.reader(io.StringIO(text)))
    rows[0] = [names[column] for column in rows[0]]
    # Empty indoor columns are not read by any battery district; CityLearn needs numbers there.
    rows[1:] = [[cell if cell else "0.0" for cell in row] for row in rows[1:]]
    return rows


def convert_schema(schema):
    def rename(name):
        for old, new in HORIZONS.items():
            name = name.replace(old, new)
        return name

    schema["observations"] = {rename(name): value for name, value in schema["observations"].items()}
    # The later schema of the same data set shows prices once to a central agent: 44 observations instead of 60.
    for name, value in schema["observations"].items():
        value["shared_in_central_agent"] |= name.startswith("electricity_pricing")
    return {"random_seed": RANDOM_SEED, **schema, "central_agent": True}


def convert(wheel, dataset):
    dataset.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        read = lambda name: archive.read(FOLDER_IN_WHEEL + name).decode()
        files = {f"Building_{i}.csv": BUILDING_COLUMNS for i in range(1, BUILDINGS + 1)}
        files |= {"weather.csv": WEATHER_COLUMNS, "pricing.csv": PRICING_COLUMNS}
        files |= {"carbon_intensity.csv": CARBON_COLUMNS}
        for name, names in files.items():
            with open(dataset / name, "w", newline="") as out:
                csv.writer(out, lineterminator="\n").writerows(rename_csv(read(name), names))
        schema = convert_schema(json.loads(read("schema.json")))
        (dataset / "schema.json").write_text(json.dumps(schema, indent=1) + "\n")
        licence = [name for name in archive.namelist() if name.endswith("/LICENSE")]
        (dataset / "LICENSE").write_bytes(archive.read(licence[0]))


# --- embed ----------------------------------------------------------------------------------------------

# Columns that a district of batteries and PV never reads: the thermal ones are 0 in this data set.
NOT_EMBEDDED = {
    "daylight_savings_status",
    "indoor_dry_bulb_temperature",
    "average_unmet_cooling_setpoint_difference",
    "indoor_relative_humidity",
}


def shortest_f32(cell):
    """The shortest decimal that reads back as the same f32, by trying digits."""
    exact = struct.unpack("<f", struct.pack("<f", float(cell)))[0]
    if exact == int(exact):
        return str(int(exact))
    for digits in range(1, 10):
        short = f"{exact:.{digits}g}"
        if struct.unpack("<f", struct.pack("<f", float(short)))[0] == exact:
            return short
    raise AssertionError(f"nine digits always suffice for f32, not for {cell}")


def embed(dataset, out):
    out.mkdir(parents=True, exist_ok=True)

    def write(name, data):
        # No time stamp and no name inside: the same input gives the same bytes.
        with open(out / f"{name}.gz", "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
            packed.write(data)

    for path in sorted(dataset.glob("*.csv")):
        rows = list(csv.reader(path.open()))
        keep = [i for i, column in enumerate(rows[0]) if column not in NOT_EMBEDDED]
        lines = [",".join(rows[0][i] for i in keep)]
        lines += [",".join(shortest_f32(row[i]) for i in keep) for row in rows[1:]]
        write(path.name, ("\n".join(lines) + "\n").encode())
    write("schema.json", (dataset / "schema.json").read_bytes())
    (out / "LICENSE-CityLearn").write_bytes((dataset / "LICENSE").read_bytes())


# --- record ---------------------------------------------------------------------------------------------


def sine(step, _hour):
    return [0.8 * math.sin(0.3 * step + i) for i in range(BUILDINGS)]


def idle(_step, _hour):
    return [0.0] * BUILDINGS


def uniform():
    import numpy

    generator = numpy.random.RandomState(7)
    return lambda _step, _hour: generator.uniform(-1.0, 1.0, BUILDINGS).tolist()


def basic_battery_rbc(_step, hour):
    return [0.11 if 6 <= hour <= 14 else -0.067] * BUILDINGS


def sampled_parameters(schema):
    """Other seeds, parameters left to the package to draw, own curves, a depth of discharge, 2000 rows."""
    schema["random_seed"] = 7
    schema["simulation_end_time_step"] = 1999
    batteries = [building["electrical_storage"]["attributes"] for building in schema["buildings"].values()]
    for drop in ["efficiency", "capacity_loss_coefficient", "loss_coefficient"]:
        for i in [0, 1, 4]:
            del batteries[i][drop]
    batteries[1]["depth_of_discharge"] = 0.8
    batteries[2]["power_efficiency_curve"] = [[0, 0.83], [0.3, 0.83], [0.7, 0.9], [0.8, 0.9], [1, 0.85]]
    batteries[2]["capacity_power_curve"] = [[0.0, 1], [0.8, 1], [1.0, 0.2]]
    batteries[3]["loss_coefficient"] = 0.004
    batteries[3]["initial_soc"] = 0.6
    batteries[4]["random_seed"] = 11
    batteries[4]["capacity"] = 13.5


INDICATORS = {
    "all_time_peak_average",
    "carbon_emissions_total",
    "cost_total",
    "daily_one_minus_load_factor_average",
    "daily_peak_average",
    "electricity_consumption_total",
    "monthly_one_minus_load_factor_average",
    "ramping_average",
    "zero_net_energy",
}

# Runs that keep their first observations; they are the same in the others.
OBSERVED = {"sine", "sampled"}

# name: (actions, change of the schema, keep every n-th row)
RUNS = {
    "random": (uniform, None, 1),
    "sampled": (lambda: sine, sampled_parameters, 5),
    "sine": (lambda: sine, None, 17),
    "basic_battery_rbc": (lambda: basic_battery_rbc, None, 17),
    "idle": (lambda: idle, None, 73),
}


def number(value):
    value = None if value is None else float(value)
    return value if value is not None and math.isfinite(value) else None


def make_environment(schema):
    """An environment with one agent, and its wrapper that normalizes observations, both reset."""
    import pandas
    from citylearn.citylearn import CityLearnEnv
    from citylearn.data import DataSet
    from citylearn.wrappers import NormalizedObservationWrapper

    # Both look for tables of sizes of PV and batteries on the network when an environment is made; nothing here needs them.
    DataSet.get_pv_sizing_data = lambda self: pandas.DataFrame()
    DataSet.get_battery_sizing_data = lambda self: pandas.DataFrame()
    environment = CityLearnEnv(schema, central_agent=True)
    wrapped = NormalizedObservationWrapper(environment)
    wrapped.reset()
    return environment, wrapped


def about(name, steps):
    """The start of what is stored of a run."""
    import numpy
    import pandas
    from importlib.metadata import version

    return {
        "citylearn": version("citylearn"),
        "numpy": numpy.__version__,
        "pandas": pandas.__version__,
        "python": sys.version.split()[0],
        "run": name,
        "steps": steps,
    }


def write_run(out, result, table, packed=False):
    """Writes NAME-VERSION.json, or with `packed` .json.gz, and the rows of `table`, if there is one, as NAME-VERSION.bin.gz."""
    import numpy

    out.mkdir(parents=True, exist_ok=True)
    stem = f"{result['run']}-{result['citylearn']}"

    def write(name, data):
        with open(out / name, "wb") as plain, gzip.GzipFile("", "wb", 9, plain, mtime=0) as file:
            file.write(data)

    text = json.dumps(result, separators=(",", ":")) + "\n"
    if packed:
        write(f"{stem}.json.gz", text.encode())
    else:
        (out / f"{stem}.json").write_text(text)
    if table is not None:
        write(f"{stem}.bin.gz", numpy.ascontiguousarray(table, dtype="<f4").tobytes())


def record(dataset, out, name):
    import numpy

    make_actions, change, stride = RUNS[name]
    schema = json.loads((dataset / "schema.json").read_text())
    schema["root_directory"] = str(dataset)
    if change is not None:
        change(schema)
    # The package writes into the schema that it is given.
    attributes = {
        building_name: dict(building["electrical_storage"]["attributes"])
        for building_name, building in schema["buildings"].items()
    }
    environment, wrapped = make_environment(schema)
    actions = make_actions()
    normalized = [[float(x) for x in wrapped.observation(environment.observations)[0]]]
    raw = [[float(x) for x in environment.observations[0]]]
    hour_at = environment.observation_names[0].index("hour")
    rewards, step, hour = [], 0, raw[0][hour_at]
    while not environment.terminated:
        action = [float(numpy.float32(x)) for x in actions(step, hour)]
        observations, reward, _, _, _ = environment.step([action])
        rewards.append(float(reward[0]))
        hour = observations[0][hour_at]
        if step < 30:
            raw.append([float(x) for x in observations[0]])
            normalized.append([float(x) for x in wrapped.observation(observations)[0]])
        step += 1
        if step % 1000 == 0:
            print(name, step, file=sys.stderr, flush=True)

    buildings = environment.buildings
    batteries = [building.electrical_storage for building in buildings]
    # The last row of the data is never acted on; some versions give it, some do not.
    net = numpy.array([building.net_electricity_consumption[:step] for building in buildings], dtype="<f4").T
    soc = numpy.array([battery.soc[:step] for battery in batteries], dtype="<f4").T
    capacity = numpy.array([battery.capacity_history for battery in batteries]).T
    table = environment.evaluate()
    result = about(name, step) | {
        "stride": stride,
        "random_seed": schema["random_seed"],
        "batteries": attributes,
        "parameters": [
            {
                "efficiency": battery.efficiency_history[0],
                "loss_coefficient": battery.loss_coefficient,
                "capacity_loss_coefficient": battery.capacity_loss_coefficient,
                "depth_of_discharge": battery.depth_of_discharge,
                "initial_soc": battery.initial_soc,
                "power_efficiency_curve": numpy.asarray(battery.power_efficiency_curve).tolist(),
                "capacity_power_curve": numpy.asarray(battery.capacity_power_curve).tolist(),
                "random_seed": battery.random_seed,
            }
            for battery in batteries
        ],
        "return": sum(rewards),
        "first_rewards": rewards[:12],
        "net_sum_kwh": net.astype("f8").sum(axis=0).tolist(),
        "net_sum_1000_rows_kwh": net[:1000].astype("f8").sum(axis=0).tolist(),
        "capacity_after_1000_steps_kwh": capacity[1000].tolist(),
        "capacity_at_end_kwh": capacity[-1].tolist(),
        "indicators": [
            [row["name"], row["cost_function"], number(row["value"])]
            for _, row in table.iterrows()
            if row["cost_function"] in INDICATORS and number(row["value"]) is not None
        ],
    }
    if name in OBSERVED:
        result |= {
            "observation_names": environment.observation_names[0],
            "observations": raw,
            "normalized_observation_names": wrapped.observation_names[0],
            "normalized_observations": normalized,
        }
    write_run(out, result, numpy.concatenate([net[::stride], soc[::stride]], axis=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["convert", "embed", "record"])
    parser.add_argument("--dataset", type=Path, required=True, help="folder of the converted data set")
    parser.add_argument("--wheel", type=Path, help="CityLearn 2.1.2 wheel (convert)")
    parser.add_argument("--out", type=Path, help="folder to write (embed, record)")
    parser.add_argument("--run", choices=sorted(RUNS), nargs="*", help="runs to record, all by default")
    arguments = parser.parse_args()
    if arguments.command == "convert":
        convert(arguments.wheel, arguments.dataset)
    elif arguments.command == "embed":
        embed(arguments.dataset, arguments.out)
    else:
        for name in arguments.run or RUNS:
            record(arguments.dataset.resolve(), arguments.out, name)


if __name__ == "__main__":
    main()
