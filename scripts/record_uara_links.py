"""Ratios and rates of links that share channels, from the formulas alone.

    python scripts/record_uara_links.py

Writes `crates/brasa-uara/tests/data/links.json`: random networks with random links, and what every user then gets. It
needs numpy only (made with 2.x) and shares no code with the crate: interference is a matrix product over all pairs
of users here, and lists per channel there.

Formulas: a received power is `10^((tx - at_1_m - decade log10 d) / 10)` mW, 0 beyond the radius of the station; a gated
network counts it as interference within the radius only, one that is not gated everywhere. Per link, a user hears
the station of every other user on its channel, once for each such user. Per transmitter, a station serves, of the users within
its radius who ask for a channel, the one that receives it best (the first of equals), and sends nothing for the
others. The ratio is signal / (interference + noise), 0 beyond the radius and for those turned down, and the rate
is bandwidth * log2(1 + ratio), up to the largest spectral efficiency where there is one.
"""

import json
from pathlib import Path

import numpy

BANDWIDTH_HZ = 180e3
NOISE_MW = 10 ** (-174 / 10) * BANDWIDTH_HZ
# Radius in m, transmitted power in dBm, loss at 1 m and per decade of distance in dB.
TIERS = [(500.0, 40.0, 34.0, 40.0), (100.0, 30.0, 34.0, 40.0), (30.0, 20.0, 37.0, 30.0)]
N_USERS, N_CHANNELS = 12, 3
TIER_OF_STATION = numpy.array([0, 1, 1, 2, 2, 2])


def network(rng, gated):
    """Powers at full power, and who is reached: two [users, stations] arrays."""
    stations = rng.uniform(-60.0, 60.0, (len(TIER_OF_STATION), 2))
    users = rng.uniform(-90.0, 90.0, (N_USERS, 2))
    distance = numpy.linalg.norm(users[:, None] - stations[None], axis=2)
    radius, tx, at_1_m, decade = numpy.array(TIERS)[TIER_OF_STATION].T
    received = 10 ** ((tx - at_1_m - decade * numpy.log10(distance)) / 10)
    reached = distance <= radius
    return numpy.where(reached | (not gated), received, 0.0), reached


def ratios(received, reached, station, channel, share, per_transmitter):
    everybody = numpy.arange(N_USERS)
    sends = numpy.ones(N_USERS, dtype=bool)
    if per_transmitter:
        sends[:] = False
        for pair in set(zip(station.tolist(), channel.tolist())):
            asking = everybody[(station == pair[0]) & (channel == pair[1]) & reached[:, pair[0]]]
            if asking.size:
                sends[asking[numpy.argmax(received[asking, pair[0]])]] = True
    heard = received[:, station] * share  # [user, whose signal]
    disturbs = (channel[:, None] == channel[None]) & sends[None] & ~numpy.eye(N_USERS, dtype=bool)
    interference = (heard * disturbs).sum(axis=1)
    served = sends & reached[everybody, station]
    return numpy.where(served, heard.diagonal() / (interference + NOISE_MW), 0.0)


def main():
    rng = numpy.random.default_rng(2019)
    cases = []
    for number in range(32):
        gated, per_transmitter = number % 2 == 0, number // 2 % 2 == 1
        levels = [1.0] if number // 4 % 2 == 0 else [0.1, 0.5, 1.0]
        max_bits = None if number // 8 % 2 == 0 else 6.0
        received, reached = network(rng, gated)
        station = rng.integers(len(TIER_OF_STATION), size=N_USERS)
        # Half of the users choose among the stations that reach them.
        for user in range(0, N_USERS, 2):
            station[user] = rng.choice(numpy.flatnonzero(reached[user]))
        channel = rng.integers(N_CHANNELS, size=N_USERS)
        power = rng.integers(len(levels), size=N_USERS)
        sinr = ratios(received, reached, station, channel, numpy.array(levels)[power], per_transmitter)
        bits = numpy.minimum(numpy.log2(1 + sinr), numpy.inf if max_bits is None else max_bits)
        cases.append(
            {
                "per_transmitter": per_transmitter,
                "power_levels": levels,
                "max_bits_per_hz": max_bits,
                "received_mw": received.ravel().tolist(),
                "reached": reached.ravel().astype(int).tolist(),
                "station": station.tolist(),
                "channel": channel.tolist(),
                "power": power.tolist(),
                "sinr": sinr.tolist(),
                "rate_mbps": (BANDWIDTH_HZ * bits / 1e6).tolist(),
            }
        )
    record = {
        "made_by": f"scripts/record_uara_links.py, numpy {numpy.__version__}",
        "n_users": N_USERS,
        "n_stations": len(TIER_OF_STATION),
        "n_channels": N_CHANNELS,
        "bandwidth_hz": BANDWIDTH_HZ,
        "noise_mw": NOISE_MW,
        "cases": cases,
    }
    folder = Path(__file__).parent.parent / "crates/brasa-uara/tests/data"
    folder.mkdir(exist_ok=True)
    (folder / "links.json").write_text(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
