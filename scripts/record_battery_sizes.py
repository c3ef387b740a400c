"""Records the batteries that CityLearn sizes by itself.

    record_battery_sizes.py --models battery_choices.yaml --out crates/brasa-citylearn/tests/data/battery_sizes.json

Needs the PyPI packages citylearn 2.5.0 (3.0.2 gives the same) and PyYAML. The models are `citylearn/data/misc/battery_choices.yaml` of
CityLearn's repository, which the package downloads. A case has the seed of
the battery, the mean daily peak of the building in kW, and the settings of `autosize`: `duration` in hours (drawn if missing),
`safety_factor`, `parallel`. Its result is capacity (kWh), nominal power (kW), depth of discharge, efficiency, loss coefficient and capacity
loss coefficient.
"""

import argparse
import json
from pathlib import Path

import pandas
import yaml
from citylearn.energy_model import Battery

PLAIN = {"duration": None, "safety_factor": 1.0, "parallel": False}
GIVEN = {"duration": 4.0, "safety_factor": 1.5, "parallel": True}
CASES = [
    # Three homes of the published data sets.
    (614_960_472, 4.472322940826416, PLAIN),
    (700_274_799, 7.430134296417236, PLAIN),
    (834_521_172, 3.6182336807250977, PLAIN),
    # No model is as small.
    (2022, 0.5, PLAIN),
    (7, 12.25, GIVEN),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    # As `DataSet.get_battery_sizing_data`.
    models = yaml.safe_load(arguments.models.read_text())
    models = pandas.DataFrame([{"model": name, **values["attributes"]} for name, values in models.items()])
    models = models.set_index("model")
    cases = []
    for seed, peak_kw, settings in CASES:
        battery = Battery(0.0, 0.0, random_seed=seed)
        sized = battery.autosize(peak_kw, sizing_data=models, **settings)
        own = [battery.depth_of_discharge, battery.efficiency, battery.loss_coefficient, battery.capacity_loss_coefficient]
        # What a model lacks stays as it was drawn.
        result = [*sized[:2], *(drawn if pandas.isna(given) else given for given, drawn in zip(sized[2:], own))]
        cases.append({"seed": seed, "peak_kw": peak_kw, **settings, "result": [float(x) for x in result]})
    lines = ",\n".join(json.dumps(case) for case in cases)
    arguments.out.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
