"""Records walking and egress times of JuPedSim, a simulator of pedestrians in continuous space.

    pip install jupedsim==1.4.2 shapely
    python scripts/record_jupedsim.py crates/brasa-evacuation/tests/data/jupedsim.json

Alone: one person walks through a corridor at its desired speed. Room: people leave a room of 8 m by 8 m through a door of
`door_m`; the time is that of the last one, for a few seeds of their places. The model is the collision-free speed model
with its default parameters.
"""

import json
import sys
from importlib.metadata import version

import jupedsim
from shapely import Polygon


def simulate(area, positions, exit_area, speed):
    """Seconds until everybody is in `exit_area`."""
    simulation = jupedsim.Simulation(model=jupedsim.CollisionFreeSpeedModel(), geometry=area, dt=0.01)
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
    return simulate(area, [(1.0, 1.0)], exit_area, speed)


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
    return simulate(area, positions, exit_area, speed)


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
    }
    with open(path, "w") as file:
        json.dump(data, file, indent=1)
        file.write("\n")
    print(json.dumps(data))


if __name__ == "__main__":
    main(sys.argv[1])
