"""Records walking and egress times of JuPedSim, a simulator of pedestrians in continuous space.

    pip install jupedsim==1.4.2 shapely
    python scripts/record_jupedsim.py crates/brasa-evacuation/tests/data/jupedsim.json

Alone: one person walks through a corridor at its desired speed. Room: people leave a room of 8 m by 8 m through a door of
`door_m`; the time is that of the last one, for a few seeds of their places. Hall: people leave a hall of 16 m by 16 m
through two exits in the middles of opposite walls. JuPedSim does not choose exits: a given number of people, those with
the shortest way, goes to the first one. The record has the time for each number; the smallest is the best split. The
model is the collision-free speed model with its default parameters.
"""

import json
import sys
from importlib.metadata import version
from math import dist

import jupedsim
from shapely import Polygon


def simulate(area, groups, speed):
    """Seconds until everybody has left, at most 600: some block each other for good. A group shares an exit area."""
    simulation = jupedsim.Simulation(model=jupedsim.CollisionFreeSpeedModel(), geometry=area, dt=0.01)
    for exit_area, positions in groups:
        exit_id = simulation.add_exit_stage(exit_area)
        journey = simulation.add_journey(jupedsim.JourneyDescription([exit_id]))
        for position in positions:
            simulation.add_agent(
                jupedsim.CollisionFreeSpeedModelAgentParameters(
                    position=position, journey_id=journey, stage_id=exit_id, desired_speed=speed, radius=0.2
                )
            )
    while simulation.agent_count() > 0 and simulation.elapsed_time() < 600:
        simulation.iterate()
    return simulation.elapsed_time()


def alone(length_m, speed):
    area = Polygon([(0, 0), (length_m + 2, 0), (length_m + 2, 2), (0, 2)])
    exit_area = Polygon([(length_m + 1, 0), (length_m + 2, 0), (length_m + 2, 2), (length_m + 1, 2)])
    return simulate(area, [(exit_area, [(1.0, 1.0)])], speed)


def room(n_people, door_m, speed, seed):
    low, high = 4 - door_m / 2, 4 + door_m / 2
    area = Polygon(
        [(0, 0), (8, 0), (8, low), (10, low), (10, high), (8, high), (8, 8), (0, 8)]
    )
    inside = Polygon([(0.5, 0.5), (7.5, 0.5), (7.5, 7.5), (0.5, 7.5)])
    positions = jupedsim.distribute_by_number(
        polygon=inside, number_of_agents=n_people, distance_to_agents=0.5, distance_to_polygon=0.3, seed=seed
    )
    exit_area = Polygon([(9.5, low), (10, low), (10, high), (9.5, high)])
    return simulate(area, [(exit_area, positions)], speed)


def hall(n_people, n_first, doors_m, speed, seed):
    """Of `n_people`, the `n_first` with the shortest way to the first of two exits take it."""
    (a, b), (c, d) = [(8 - door_m / 2, 8 + door_m / 2) for door_m in doors_m]
    area = Polygon(
        [(0, 0), (16, 0), (16, c), (18, c), (18, d), (16, d), (16, 16), (0, 16), (0, b), (-2, b), (-2, a), (0, a)]
    )
    inside = Polygon([(0.5, 0.5), (15.5, 0.5), (15.5, 15.5), (0.5, 15.5)])
    positions = jupedsim.distribute_by_number(
        polygon=inside, number_of_agents=n_people, distance_to_agents=0.5, distance_to_polygon=0.3, seed=seed
    )
    positions.sort(key=lambda place: dist(place, (0, 8)) - dist(place, (16, 8)))
    first = Polygon([(-2, a), (-1.5, a), (-1.5, b), (-2, b)])
    second = Polygon([(17.5, c), (18, c), (18, d), (17.5, d)])
    return simulate(area, [(first, positions[:n_first]), (second, positions[n_first:])], speed)


def main(path):
    data = {
        "versions": {"jupedsim": version("jupedsim")},
        "alone": [
            {"length_m": length, "speed_m_per_s": speed, "secs": alone(length, speed)}
            for length, speed in [(40, 1.0), (40, 0.8), (20, 0.5)]
        ],
        "room": [
            {
                "people": people,
                "door_m": door_m,
                "speed_m_per_s": 0.8,
                "secs": [room(people, door_m, 0.8, seed) for seed in range(3)],
            }
            for people, door_m in [(20, 1.0), (60, 1.0), (60, 2.0)]
        ],
        "hall": [
            {
                "people": 120,
                "doors_m": doors_m,
                "speed_m_per_s": 0.8,
                "splits": [
                    {"first": first, "secs": [hall(120, first, doors_m, 0.8, seed) for seed in range(3)]}
                    for first in range(12, 73, 6)
                ],
            }
            for doors_m in [(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]
        ],
    }
    with open(path, "w") as file:
        json.dump(data, file, indent=1)
        file.write("\n")
    print(json.dumps(data))


if __name__ == "__main__":
    main(sys.argv[1])
