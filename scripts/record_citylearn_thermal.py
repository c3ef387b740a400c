"""Converts the thermal data sets of the wheel CityLearn 2.1.2 and records golden numbers from the PyPI packages.

    record_citylearn_thermal.py cut --wheel DATA --out crates/brasa-citylearn/tests/data/citylearn_thermal
        writes three weeks of three homes of `citylearn_challenge_2020_climate_zone_1` and, to the folder `dynamics`, two
        homes of `citylearn_challenge_2023_phase_1` with their networks (MIT licence, beside the data), compressed; DATA
        is the folder `citylearn/data` of the unpacked wheel
    record_citylearn_thermal.py record --wheel DATA --out crates/brasa-citylearn/tests/data/citylearn_thermal
        drives the installed citylearn (2.5.0 or 3.0.2) on the cut and on whole data sets; run it once per version

The data has no heating. The cut has one: a demand in the nights, half of the cooling demand twelve hours earlier, so that
heating devices and storages have work; the runs add such devices.

A run is stored as NAME.json and NAME.bin.gz: little-endian f32, for every row the quantities of `columns` in the JSON,
each for every building.
"""

import argparse
import csv
import gzip
import io
import json
import math
import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from record_citylearn import BUILDING_COLUMNS, CARBON_COLUMNS, PRICING_COLUMNS, RANDOM_SEED, shortest_f32  # noqa: E402
from record_citylearn import WEATHER_COLUMNS, about, make_environment, write_run  # noqa: E402

CUT_FROM = "citylearn_challenge_2020_climate_zone_1"
HOMES = ["Building_1", "Building_2", "Building_4"]
DYNAMICS_FROM = "citylearn_challenge_2023_phase_1"
DYNAMICS_HOMES = ["Building_1", "Building_2"]
DYNAMICS_ROWS = 312
ROWS = 504
# The first cut row: cooling in most hours.
FIRST = 4320

NAMES = BUILDING_COLUMNS | WEATHER_COLUMNS | PRICING_COLUMNS | CARBON_COLUMNS
NAMES |= {"Outdoor Relative Humidity [%]": "outdoor_relative_humidity"}
NAMES |= {
    f"{hours}h Prediction Outdoor Relative Humidity [%]": f"outdoor_relative_humidity_predicted_{i}"
    for i, hours in enumerate([6, 12, 24], 1)
}
NAMES |= {f"{i}h Prediction Electricity Pricing [$/kWh]": f"electricity_pricing_predicted_{i}" for i in [1, 2, 3]}
NAMES |= {"Occupant Count [people]": "occupant_count", "HVAC Mode [Off/Cooling/Heating]": "hvac_mode"}
NAMES |= {name.replace(" Prediction", ""): new for name, new in NAMES.items()}
SET_POINT = "Temperature Set Point [C]"
SET_POINTS = ["indoor_dry_bulb_temperature_cooling_set_point", "indoor_dry_bulb_temperature_heating_set_point"]
OBSERVATIONS = {
    "indoor_dry_bulb_temperature_set_point": SET_POINTS[0],
    "indoor_dry_bulb_temperature_delta": "indoor_dry_bulb_temperature_cooling_delta",
    "cooling_device_cop": "cooling_device_efficiency",
    "heating_device_cop": "heating_device_efficiency",
    "dhw_device_cop": "dhw_device_efficiency",
}
HORIZONS = {"_predicted_6h": "_predicted_1", "_predicted_12h": "_predicted_2", "_predicted_24h": "_predicted_3"}


def new_columns(name):
    name = name.strip().replace("(", "[").replace(")", "]")
    if name == SET_POINT:
        return SET_POINTS
    return [NAMES.get(name, name)]


def new_observation(name):
    for old, new in HORIZONS.items():
        name = name.replace(old, new)
    return OBSERVATIONS.get(name, name)


def convert_table(source, target):
    rows = list(csv.reader(source.open()))
    with open(target, "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        names = [new_columns(name) for name in rows[0]]
        writer.writerow([name for group in names for name in group])
        for row in rows[1:]:
            writer.writerow([cell or "0.0" for cell, group in zip(row, names) for _ in group])


def convert_schema(schema):
    schema = {"random_seed": RANDOM_SEED, **schema, "central_agent": True}
    schema["observations"] = {new_observation(name): value for name, value in schema["observations"].items()}
    schema["reward_function"] = {"type": "citylearn.reward_function.RewardFunction", "attributes": {}}
    for building in schema["buildings"].values():
        building["inactive_observations"] = [new_observation(name) for name in building["inactive_observations"]]
        dynamics = building.pop("dynamics", None)
        if dynamics:
            model = dynamics["cooling"]
            attributes = model["attributes"]
            attributes["input_observation_names"] = [new_observation(n) for n in attributes["input_observation_names"]]
            building["dynamics"] = model
    return schema


def convert(dataset, folder):
    """The data set with the names that CityLearn 2.5 and 3.0 read, in `folder`."""
    schema = json.loads((dataset / "schema.json").read_text())
    schema = convert_schema(schema)
    schema["root_directory"] = str(folder)
    for path in dataset.iterdir():
        if path.suffix == ".csv":
            convert_table(path, folder / path.name)
        elif path.suffix == ".pth":
            (folder / path.name).write_bytes(path.read_bytes())
    return schema


# --- cut ------------------------------------------------------------------------------------------------


def cut_rows(path):
    rows = list(csv.reader(path.open()))
    return [rows[0]] + rows[1 + FIRST : 1 + FIRST + ROWS]


def cut(wheel, out):
    dataset = wheel / CUT_FROM
    out.mkdir(parents=True, exist_ok=True)

    def write(name, data):
        with open(out / f"{name}.gz", "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
            packed.write(data.encode())

    schema = json.loads((dataset / "schema.json").read_text())
    schema["buildings"] = {name: schema["buildings"][name] for name in HOMES}
    schema["simulation_end_time_step"] = ROWS - 1
    for name in [f"{home}.csv" for home in HOMES] + ["weather.csv", "carbon_intensity.csv"]:
        rows = cut_rows(dataset / name)
        if "Heating Load [kWh]" in rows[0]:
            cooling, heating = rows[0].index("Cooling Load [kWh]"), rows[0].index("Heating Load [kWh]")
            hour = rows[0].index("Hour")
            for i in range(13, len(rows)):
                if int(rows[i][hour]) <= 6:
                    rows[i][heating] = str(round(float(rows[i - 12][cooling]) / 2, 3))
            for row in rows[1:]:
                if float(row[heating]) > 0.0:
                    row[cooling] = "0.0"
        text = io.StringIO()
        lines = [rows[0]] + [[shortest_f32(cell or "0") for cell in row] for row in rows[1:]]
        csv.writer(text, lineterminator="\n").writerows(lines)
        write(name, text.getvalue())
    write("schema.json", json.dumps(schema, indent=1) + "\n")
    cut_dynamics(wheel / DYNAMICS_FROM, out / "dynamics")
    (out / "LICENSE-CityLearn").write_bytes(next(wheel.parents[0].parent.glob("*dist-info/**/LICENSE")).read_bytes())


def cut_dynamics(dataset, out):
    out.mkdir(parents=True, exist_ok=True)

    def write(name, data):
        with open(out / f"{name}.gz", "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
            packed.write(data)

    for name in [f"{home}.csv" for home in DYNAMICS_HOMES] + ["weather.csv", "carbon_intensity.csv", "pricing.csv"]:
        rows = list(csv.reader((dataset / name).open()))[: DYNAMICS_ROWS + 1]
        text = io.StringIO()
        lines = [rows[0]] + [[shortest_f32(cell or "0") for cell in row] for row in rows[1:]]
        csv.writer(text, lineterminator="\n").writerows(lines)
        write(name, text.getvalue().encode())
    for home in DYNAMICS_HOMES:
        write(f"{home}.safetensors", safetensors(dataset / f"{home}.pth"))


def safetensors(path):
    """The weights of a network, without CityLearn's states of the training."""
    import torch

    content = torch.load(path, map_location="cpu")
    header, body = {}, b""
    for name, tensor in content.get("model_state_dict", content).items():
        data = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


# --- changes of the cut -----------------------------------------------------------------------------------

OBSERVED = [
    f"{use}_{what}"
    for use in ["cooling", "heating", "dhw"]
    for what in ["demand", "electricity_consumption", "storage_electricity_consumption", "device_efficiency", "storage_soc"]
] + ["electrical_storage_electricity_consumption", "electrical_storage_soc", "power_outage"]


INDOORS = [f"indoor_dry_bulb_temperature_{u}_{w}" for u in ["cooling", "heating"] for w in ["set_point", "delta"]]
INDOORS += ["indoor_dry_bulb_temperature", "hvac_mode", "comfort_band", "occupant_count"]


def observe_all(schema):
    for name in OBSERVED:
        schema["observations"][name] = {"active": True, "shared_in_central_agent": False}


def give_devices(schema):
    """Heating devices and storages of both kinds, explicit and sampled parameters, limits on power."""
    tank = "citylearn.energy_model.StorageTank"
    pump, heater = "citylearn.energy_model.HeatPump", "citylearn.energy_model.ElectricHeater"
    first, second, third = schema["buildings"].values()
    first["heating_device"] = {"type": pump, "autosize": True, "autosize_attributes": {"safety_factor": 4.5}, "attributes": {}}
    first["heating_storage"] = {
        "type": tank, "autosize": True, "autosize_attributes": {"safety_factor": 2.5},
        "attributes": {"efficiency": 0.81, "loss_coefficient": 0.01, "initial_soc": 0.3, "max_output_power": 9.0},
    }
    second["heating_device"] = {"type": heater, "autosize": True, "autosize_attributes": {"safety_factor": 4.0}, "attributes": {}}
    second["heating_storage"] = {"type": tank, "autosize": True, "attributes": {"max_input_power": 7.0}}
    # 2.5 cannot start a home with an electric heater for rooms and a heat pump for hot water.
    third["dhw_device"] = {
        "type": pump, "autosize": True, "autosize_attributes": {"safety_factor": 3.5},
        "attributes": {"efficiency": 0.25, "target_heating_temperature": 50.0},
    }
    third["heating_device"] = {
        "type": pump, "autosize": False,
        "attributes": {"nominal_power": 60.0, "efficiency": 0.22, "target_heating_temperature": 45.0},
    }
    third["heating_storage"] = {"type": tank, "autosize": False, "attributes": {"capacity": 50.0}}
    third["dhw_storage"] = {"type": tank, "autosize": True, "autosize_attributes": {"safety_factor": 3.0}, "attributes": {}}
    third["inactive_actions"], third["inactive_observations"] = [], []
    for building in [first, second, third]:
        # CityLearn 2.5 counts the first row of a device twice before it acts on it.
        building["cooling_device"]["autosize_attributes"] = {"safety_factor": 4.0}
        building["dhw_device"].setdefault("autosize_attributes", {"safety_factor": 4.0})
    schema["actions"]["heating_storage"] = {"active": True}
    observe_all(schema)


def with_outages(schema):
    """Outages from the data (a column that the recording adds) and from the model."""
    give_devices(schema)
    first, second, third = schema["buildings"].values()
    model = "citylearn.power_outage.ReliabilityMetricsPowerOutage"
    first["power_outage"] = {"simulate_power_outage": True, "stochastic_power_outage": False}
    second["power_outage"] = {
        "simulate_power_outage": True, "stochastic_power_outage": True,
        "stochastic_power_outage_model": {"type": model, "attributes": {"random_seed": 5, "saifi": 80.0, "caidi": 400.0}},
    }
    third["power_outage"] = {"simulate_power_outage": False}


def two_homes(schema):
    """Two homes with dynamics, one with an outage; every observation that they have."""
    schema["buildings"] = {name: schema["buildings"][name] for name in DYNAMICS_HOMES}
    schema["simulation_end_time_step"] = DYNAMICS_ROWS - 1
    model = "citylearn.power_outage.ReliabilityMetricsPowerOutage"
    schema["buildings"]["Building_2"]["power_outage"] = {
        "simulate_power_outage": True, "stochastic_power_outage": True,
        "stochastic_power_outage_model": {"type": model, "attributes": {"random_seed": 5, "saifi": 80.0, "caidi": 400.0}},
    }
    observe_all(schema)
    # A device that is missing has a random efficiency.
    del schema["observations"]["heating_device_efficiency"]
    for name in INDOORS:
        schema["observations"][name] = {"active": True, "shared_in_central_agent": False}


def sized(schema):
    """As in the data, with large enough devices for the first row of 2.5."""
    for building in schema["buildings"].values():
        for device in ["cooling_device", "dhw_device"]:
            building[device]["autosize_attributes"] = {"safety_factor": 4.0}
        building["heating_device"] = building["dhw_device"]


# --- record ---------------------------------------------------------------------------------------------

YEARS = {f"zone_{i}": f"citylearn_challenge_2020_climate_zone_{i}" for i in [1, 2, 3, 4]} | {"2021": "citylearn_challenge_2021"}

# name: (data set or None for the cut, change of the schema, steps)
RUNS = {"cut": (None, sized, 300), "cut_heating": (None, give_devices, 300), "cut_outages": (None, with_outages, 300)}
RUNS |= {name: (dataset, None, 120) for name, dataset in YEARS.items()}
# Buildings with dynamics; the cut has two of the first one's homes.
DYNAMICS = {"2023_1": "citylearn_challenge_2023_phase_1", "2023_2": "citylearn_challenge_2023_phase_2_local_evaluation"}
DYNAMICS |= {"2023_3": "citylearn_challenge_2023_phase_3_1", "baeda": "baeda_3dem"}
RUNS |= {name: (dataset, None, 200) for name, dataset in DYNAMICS.items()}
RUNS |= {"cut_dynamics": (DYNAMICS_FROM, two_homes, 300)}

USES = ["cooling", "heating", "dhw"]
COLUMNS = {
    "net": lambda b: b.net_electricity_consumption,
    "electrical_storage_soc": lambda b: b.electrical_storage.soc,
    "cooling_storage_soc": lambda b: b.cooling_storage.soc,
    "heating_storage_soc": lambda b: b.heating_storage.soc,
    "dhw_storage_soc": lambda b: b.dhw_storage.soc,
    "cooling_device": lambda b: b.cooling_device.electricity_consumption,
    "heating_device": lambda b: b.heating_device.electricity_consumption,
    "dhw_device": lambda b: b.dhw_device.electricity_consumption,
}
DYNAMIC_COLUMNS = {
    "net": COLUMNS["net"],
    "electrical_storage_soc": COLUMNS["electrical_storage_soc"],
    "dhw_storage_soc": COLUMNS["dhw_storage_soc"],
    "cooling_device": COLUMNS["cooling_device"],
    "temperature": lambda b: b.energy_simulation.indoor_dry_bulb_temperature,
}


# Classes of rewards with their attributes.
REWARDS = [
    ("RewardFunction", {}),
    ("RewardFunction", {"exponent": 2.0}),
    ("MARL", {}),
    ("IndependentSACReward", {}),
    ("SolarPenaltyReward", {}),
    ("ComfortReward", {}),
    ("ComfortReward", {"band": 0.5, "lower_exponent": 1.5, "higher_exponent": 3.0}),
    ("SolarPenaltyAndComfortReward", {"coefficients": [0.3, 0.7]}),
]


def all_rewards(environment):
    """A reward that also computes those of all classes, which it returns as a list."""
    from citylearn import reward_function as module

    metadata = environment.get_metadata()
    functions = [getattr(module, name)(metadata, **attributes) for name, attributes in REWARDS]
    kept = [[] for _ in functions]

    class Every(module.RewardFunction):
        def calculate(self, observations):
            for values, function in zip(kept, functions):
                values.append(float(function.calculate(observations)[0]))
            return super().calculate(observations)

    environment.reward_function = Every(metadata)
    return kept


def unpack(source, folder):
    for path in source.glob("*.gz"):
        if not path.name.endswith(".bin.gz"):
            (folder / path.stem).write_bytes(gzip.decompress(path.read_bytes()))


def outage_column(folder):
    """Two outages a week in the home with the column."""
    path = folder / f"{HOMES[0]}.csv"
    rows = list(csv.reader(path.open()))
    rows[0].append("power_outage")
    for i, row in enumerate(rows[1:]):
        row.append("1" if i > 0 and i % 77 in range(30, 41) else "0")
    with open(path, "w", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows(rows)


def prepared(wheel, out, name, temporary):
    dataset, change, _ = RUNS[name]
    source, target = temporary / "source", temporary / "target"
    source.mkdir()
    target.mkdir()
    if dataset is None:
        unpack(out, source)
    schema = convert(wheel / dataset if dataset else source, target)
    if change:
        change(schema)
    if name == "cut_outages":
        outage_column(target)
    return schema


def record(wheel, out, name, temporary):
    import numpy

    schema = prepared(wheel, out, name, temporary)
    in_cut, steps = name.startswith("cut"), RUNS[name][2]
    environment, wrapped = make_environment(schema)
    space = environment.action_space[0]
    kept = all_rewards(environment)
    raw = [[float(x) for x in environment.observations[0]]]
    normalized = [[float(x) for x in wrapped.observation(environment.observations)[0]]]
    rewards, step = [], 0
    # The cut runs to its end, where its indicators are taken.
    while not environment.terminated and (in_cut or step < steps):
        sine = numpy.array([0.8 * math.sin(0.3 * step + i) for i in range(len(space.low))], dtype="f4")
        observations, reward, _, _, _ = environment.step([[float(x) for x in numpy.clip(sine, space.low, space.high)]])
        rewards.append(float(reward[0]))
        if step < 12:
            raw.append([float(x) for x in observations[0]])
            normalized.append([float(x) for x in wrapped.observation(observations)[0]])
        step += 1
        if step % 100 == 0:
            print(name, step, file=sys.stderr, flush=True)
    total, step = sum(rewards), min(step, steps)
    buildings = environment.buildings
    # The whole data sets are compared by fewer numbers.
    has_dynamics = name in DYNAMICS or name == "cut_dynamics"
    columns = DYNAMIC_COLUMNS if has_dynamics else COLUMNS if in_cut else dict(list(COLUMNS.items())[:3])
    table = numpy.concatenate([[numpy.asarray(of(b))[:step] for b in buildings] for of in columns.values()]).T
    result = about(name, step) | {
        "columns": list(columns),
        "buildings": [building.name for building in buildings],
        "action_names": environment.action_names[0],
        "action_low": [float(x) for x in space.low],
        "action_high": [float(x) for x in space.high],
        "return": total,
        "first_rewards": rewards[:12],
        "nominal_power": [[float(getattr(b, f"{u}_device").nominal_power) for u in USES] for b in buildings],
        "capacity": [[float(getattr(b, f"{u}_storage").capacity) for u in USES] for b in buildings],
    }
    if in_cut:
        result |= {
            "rewards": [
                {"class": name, "attributes": attributes, "values": values[:100]}
                for (name, attributes), values in zip(REWARDS, kept)
            ],
            "schema": schema | {"root_directory": None},
            "observation_names": environment.observation_names[0],
            "observations": raw,
            "normalized_observation_names": wrapped.observation_names[0],
            "normalized_observations": normalized,
            "indicators": [
                [row["name"], row["cost_function"], float(row["value"])]
                for _, row in environment.evaluate().iterrows()
                if row["value"] is not None and math.isfinite(row["value"])
            ],
        }
    write_run(out, result, table, packed=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["cut", "record"])
    parser.add_argument("--wheel", type=Path, required=True, help="folder `citylearn/data` of the unpacked wheel 2.1.2")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--run", choices=sorted(RUNS), nargs="*", help="runs to record, all by default")
    arguments = parser.parse_args()
    if arguments.command == "cut":
        cut(arguments.wheel.resolve(), arguments.out)
    else:
        for name in arguments.run or RUNS:
            with tempfile.TemporaryDirectory() as temporary:
                record(arguments.wheel.resolve(), arguments.out, name, Path(temporary))


if __name__ == "__main__":
    main()
