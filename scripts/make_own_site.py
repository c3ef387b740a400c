"""Writes the sample folder `examples/own-site`: a week of an invented supermarket with PV, a battery and light vehicles.

    python scripts/make_own_site.py

All numbers are closed forms or from a fixed seed; none are measured. Times are of UTC+01:00.
"""

import math
import random
from datetime import datetime, timedelta
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "examples" / "own-site"
START = datetime(2024, 6, 3)  # a Monday
DAYS = 7


def write(name, header, rows):
    """A CSV file."""
    text = "\n".join([header, *(",".join(map(str, row)) for row in rows)])
    (FOLDER / name).write_text(text + "\n")


def bell(hour, middle, width):
    """A normal curve of height 1."""
    return math.exp(-0.5 * ((hour - middle) / width) ** 2)


def main():
    rng = random.Random(7)
    hours = [START + timedelta(hours=hour) for hour in range(24 * DAYS)]
    stamp = [hour.strftime("%Y-%m-%d %H:%M") for hour in hours]
    sky = [rng.uniform(0.45, 1.0) for _ in range(DAYS)]
    pv = [round(300 * sky[i // 24] * max(0.0, bell(h.hour + 0.5, 13, 2.8) - 0.02), 1) for i, h in enumerate(hours)]
    write("pv.csv", "time [UTC+01:00],pv [kW]", zip(stamp, pv))

    def load(hour):
        is_open = hour.weekday() < 6 and 7 <= hour.hour < 21
        return round((60 + (90 if is_open else 0) + 15 * bell(hour.hour, 17, 3)) * rng.uniform(0.95, 1.05), 1)

    write("load.csv", "time [UTC+01:00],load [kW]", zip(stamp, map(load, hours)))

    def price(hour):
        season = 1.1 if hour.weekday() < 5 else 0.9
        shape = 1 + 0.3 * bell(hour.hour, 8, 1.5) + 0.6 * bell(hour.hour, 20, 2) - 0.6 * bell(hour.hour, 13, 2.5)
        return round(110 * season * shape, 2)

    write("prices.csv", "time [UTC+01:00],price [EUR/MWh]", zip(stamp, map(price, hours)))
    carbon = [round(320 - 170 * bell(h.hour, 13, 3) + 60 * bell(h.hour, 20, 2), 1) for h in hours]
    write("carbon.csv", "time [UTC+01:00],carbon [g/kWh]", zip(stamp, carbon))

    sessions = []
    for day in range(DAYS):
        for _ in range(28 if day < 5 else 40 if day == 5 else 0):
            begin = START + timedelta(days=day, minutes=int(60 * min(19.5, max(7.5, rng.gauss(13.5, 3.5)))))
            end = begin + timedelta(minutes=int(min(240, max(30, rng.lognormvariate(math.log(75), 0.5)))))
            kind, most = rng.choice([("moto", 1.9), ("moto", 1.9), ("mototaxi", 3.8)])
            energy = round(most * rng.uniform(0.4, 1.0), 2)
            sessions.append((begin.strftime("%Y-%m-%d %H:%M"), end.strftime("%Y-%m-%d %H:%M"), energy, kind))
    write("vehicles.csv", "arrival [UTC+01:00],departure [UTC+01:00],energy [kWh],class", sorted(sessions))
    write("sockets.csv", "class,sockets,power [kW],battery [kWh]", [("moto", 10, 2, 2.1), ("mototaxi", 4, 3, 4.3)])


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    main()
