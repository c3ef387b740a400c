"""Steps per second of the installed CityLearn on the 2022 phase 1 district, under random actions.

    python benches/peers/citylearn.py --dataset DATASET [--steps 2000]

DATASET is what `scripts/record_citylearn.py convert` writes. Prints one line of JSON. One step moves the whole
district of five buildings, as one step of one environment of `brasa_citylearn::CityLearnBatch` does; the
clock runs over `step` alone, which includes reward and observations.
"""

import argparse
import json
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=2000)
    arguments = parser.parse_args()

    # This file has the package's name, and its folder comes first in the search path.
    here = Path(__file__).resolve().parent
    sys.path = [path for path in sys.path if Path(path or ".").resolve() != here]
    import numpy
    import pandas
    from citylearn.citylearn import CityLearnEnv
    from citylearn.data import DataSet

    # Both look for sizing tables on the network when an environment is made; nothing here is autosized.
    DataSet.get_pv_sizing_data = lambda self: pandas.DataFrame()
    DataSet.get_battery_sizing_data = lambda self: pandas.DataFrame()

    schema = json.loads((arguments.dataset / "schema.json").read_text())
    schema["root_directory"] = str(arguments.dataset.resolve())
    environment = CityLearnEnv(schema, central_agent=True)
    environment.reset()
    actions = numpy.random.RandomState(7).uniform(-1.0, 1.0, (arguments.steps, 5)).tolist()
    warm_up = min(50, arguments.steps)
    for action in actions[:warm_up]:
        environment.step([action])
    begin = time.perf_counter()
    for action in actions[warm_up:]:
        environment.step([action])
    seconds = time.perf_counter() - begin
    result = {
        "peer": "citylearn",
        "version": version("citylearn"),
        "numpy": numpy.__version__,
        "python": platform.python_version(),
        "district": "citylearn_challenge_2022_phase_1",
        "buildings": 5,
        "environments": 1,
        "steps": arguments.steps - warm_up,
        "seconds": round(seconds, 3),
        "district_steps_per_second": round((arguments.steps - warm_up) / seconds, 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
