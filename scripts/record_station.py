"""Records episodes of a charging station, computed by a second implementation in plain Python.

    python scripts/record_station.py crates/brasa-energy/tests/data/station/episodes.json.gz

It follows the equations of `docs/reference/station.md` in its own way: the tree by recursion, cars and sockets as objects, one
environment at a time. Prices, PV and sessions are made up here and written as CSV, so that both implementations read the same
files; actions are random. Needs Python 3.9 and no packages. The file is the same for every run.
"""

import gzip
import json
import math
import random
import struct
import sys

START = 19_783 * 1440  # 2024-03-01 00:00, in minutes since 1970


def stamp(minute, offset=0):
    """A time of March 2024 as CSV has it; `offset` is that of the clock in minutes, March 1 the earliest day."""
    minute = minute - START + offset
    return f"2024-03-{1 + minute // 1440:02}T{minute % 1440 // 60:02}:{minute % 60:02}"


def single(x):
    """The nearest number of 32 bits, as actions are."""
    return struct.unpack("f", struct.pack("f", x))[0]


def short(row):
    """A row without zeros and without digits beyond the tolerance."""
    return {name: round(value, 11) for name, value in row.items() if value != 0}


class Car:
    def __init__(self, energy, kw, kind, leaves):
        self.energy, self.kw, self.kind, self.leaves = energy, kw, kind, leaves
        self.stored = 0.0


class Socket:
    def __init__(self, group):
        self.group, self.car, self.power = group, None, 0.0
        self.kw = group["phases"] * group["voltage_v"] * group["current_a"] / 1000.0

    def rate(self, car):
        return min(self.kw, car.kw) if car.kind in (self.group["kind"], "any") else 0.0


class Node:
    """A splitter or a group: what hangs on it are nodes and leaves, a leaf being [wanted kW, positive for demand]."""

    def __init__(self, efficiency=1.0, limit=math.inf, back=math.inf):
        self.efficiency, self.limit, self.back = efficiency, limit, back
        self.nodes, self.leaves = [], []

    def near(self, far):
        return far / self.efficiency if far > 0 else far * self.efficiency

    def ask(self, report):
        """Power wanted from above, within the limits; adds what is cut off to `report`."""
        self.wants = [leaf[0] for leaf in self.leaves] + [node.ask(report) for node in self.nodes]
        wanted = self.near(sum(self.wants))
        kept = max(-self.back, min(self.limit, wanted))
        report.append(abs(wanted - kept))
        return kept

    def grant(self, near):
        """Hands `near` kW out: the direction that prevails is cut in proportion. Returns the losses below."""
        far = near * self.efficiency if near > 0 else near / self.efficiency
        plus = sum(want for want in self.wants if want > 0)
        minus = sum(want for want in self.wants if want < 0)
        cut_plus = cut_minus = 1.0
        if plus + minus > 0:
            cut_plus = min(1.0, (far - minus) / plus)
        elif plus + minus < 0:
            cut_minus = min(1.0, (far - plus) / minus)
        given = [want * (cut_plus if want > 0 else cut_minus) for want in self.wants]
        for leaf, kw in zip(self.leaves, given):
            leaf[0] = kw
        lost = near - far
        for node, kw in zip(self.nodes, given[len(self.leaves) :]):
            lost += node.grant(kw)
        return lost


def simulate(config, prices, pv, sessions, actions):
    hours = config["step_minutes"] / 60.0
    penalize = config["limits"] == "penalize"
    battery = config["battery"]
    stored = battery["soc_start"] * battery["capacity_kwh"]
    low, high = battery["soc_min"] * battery["capacity_kwh"], battery["soc_max"] * battery["capacity_kwh"]
    standing = 1.0 - (1.0 - battery["standing_loss_per_day"]) ** (hours / 24.0)
    sockets = [Socket(group) for group in config["sockets"] for _ in range(group["count"])]
    weights = config["reward"]

    def arrive(step):
        turned_away = 0
        for begin, end, energy, kind, kw in sessions:
            length = config["step_minutes"]
            first = (begin - START) // length
            if first != step:
                continue
            last = max(first + 1, (end - START) // length)
            car = Car(energy, kw, kind, last)
            need = energy / ((last - first) * hours)
            free = [socket for socket in sockets if socket.car is None and socket.rate(car) > 0]
            enough = [socket for socket in free if socket.rate(car) >= need]
            if enough:
                min(enough, key=lambda socket: (socket.rate(car), socket.kw)).car = car
            elif free:
                max(free, key=lambda socket: socket.rate(car)).car = car
            else:
                turned_away += 1
        return turned_away

    pending = arrive(0)
    rows = []
    for step, action in enumerate(actions):
        nodes = {}
        for item in config["nodes"]:
            limit = item.get("limit_kw", math.inf)
            back = limit if item.get("parent") else min(limit, config["prices"]["export_limit_kw"])
            nodes[item["name"]] = Node(item["efficiency"], limit, back)
            if "parent" in item:
                nodes[item["parent"]].nodes.append(nodes[item["name"]])
        root = nodes[config["nodes"][0]["name"]]

        # Leaves: battery, PV, and the sockets behind their groups.
        order = action[0] * battery["power_kw"]
        room = max(0.0, (high - stored) / battery["charge_efficiency"] / hours)
        rest = max(0.0, (stored - low) * battery["discharge_efficiency"] / hours)
        battery_leaf = [min(order, room) if order > 0 else -min(-order, rest)]
        nodes[battery["parent"]].leaves.append(battery_leaf)
        pv_leaf = [-pv[step]]
        nodes[config["pv"]["parent"]].leaves.append(pv_leaf)
        socket_leaves, groups = [], {}
        for socket, act in zip(sockets, action[1:]):
            group = socket.group
            if group["name"] not in groups:
                shared = group.get("limit_kw", math.inf)
                groups[group["name"]] = Node(1.0, shared, shared)
                nodes[group["parent"]].nodes.append(groups[group["name"]])
            kw = act * socket.kw if config["v2g"] else (act + 1.0) / 2.0 * socket.kw
            car = socket.car
            if car is None:
                kw = 0.0
            else:
                most = min(socket.rate(car), (car.energy - car.stored) / hours)
                least = -min(socket.rate(car), car.stored / hours) if config["v2g"] else 0.0
                kw = max(least, min(most, kw))
            leaf = [kw / group["efficiency"] if kw > 0 else kw * group["efficiency"]]
            groups[group["name"]].leaves.append(leaf)
            socket_leaves.append(leaf)

        report = []
        if penalize:
            # The limits only report: the tree is asked without them.
            limits = []

            def measure(node):
                far = sum(leaf[0] for leaf in node.leaves) + sum(measure(child) for child in node.nodes)
                near = node.near(far)
                limits.append(max(0.0, near - node.limit, -near - node.back))
                lost.append(near - far)
                return near

            lost = []
            grid = measure(root)
            report, lost = limits, sum(lost)
        else:
            grid = root.ask(report)
            lost = root.grant(grid)

        # What has flowed.
        into = out = socket_lost = 0.0
        for socket, leaf in zip(sockets, socket_leaves):
            kw = leaf[0] * socket.group["efficiency"] if leaf[0] > 0 else leaf[0] / socket.group["efficiency"]
            if socket.car is not None:
                socket.car.stored += kw * hours
            into, out = into + max(0.0, kw), out + max(0.0, -kw)
            socket_lost += leaf[0] - kw
        charge, discharge = max(0.0, battery_leaf[0]) * hours, max(0.0, -battery_leaf[0]) * hours
        moved = stored + battery["charge_efficiency"] * charge - discharge / battery["discharge_efficiency"]
        after = max(low, moved * (1.0 - standing)) if moved > low else moved
        change, stored = after - stored, after
        unmet = 0.0
        departed = 0
        for socket in sockets:
            if socket.car is not None and socket.car.leaves <= step + 1:
                need = socket.car.energy - socket.car.stored
                unmet += need if need > 1e-9 else 0.0
                departed += 1
                socket.car = None
        turned_away, pending = pending + arrive(step + 1), 0
        imported, exported = max(0.0, grid) * hours, max(0.0, -grid) * hours
        revenue = (into - out) * hours * config["prices"]["sell_per_kwh"]
        sell = prices[step] - config["prices"]["export_discount_per_kwh"]
        cost = imported * prices[step] - exported * sell
        excess = sum(report) * hours
        reward = revenue - cost + weights["stored_per_kwh"] * change - weights["unmet_per_kwh"] * unmet
        reward -= weights["excess_per_kwh"] * excess + weights["turned_away"] * turned_away
        reward -= weights["degradation_per_kwh"] * (out * hours + discharge)
        rows.append({
            "grid_import_kwh": imported,
            "grid_export_kwh": exported,
            "pv_curtailed_kwh": (pv[step] + pv_leaf[0]) * hours,
            "battery_in_kwh": charge,
            "battery_out_kwh": discharge,
            "battery_change_kwh": change,
            "network_lost_kwh": lost * hours,
            "socket_lost_kwh": socket_lost * hours,
            "ev_delivered_kwh": into * hours,
            "ev_returned_kwh": out * hours,
            "ev_unmet_kwh": unmet,
            "excess_kwh": excess,
            "revenue": revenue,
            "energy_cost": cost,
            "departed": departed,
            "turned_away": turned_away,
            "reward": reward,
        })
    return rows


def episode(seed, step_minutes, limits, v2g):
    rng = random.Random(seed)
    node = lambda name, parent, limit, efficiency: {
        "name": name, "efficiency": efficiency, "limit_kw": limit, **({"parent": parent} if parent else {})
    }
    group = lambda name, parent, count, kind, volt, ampere, phases, efficiency: {
        "name": name, "parent": parent, "count": count, "kind": kind, "voltage_v": volt, "current_a": ampere,
        "phases": phases, "efficiency": efficiency,
    }
    config = {
        "step_minutes": step_minutes,
        "episode_steps": 1440 // step_minutes,
        "first_day": 0,
        "utc_offset_hours": 1.0,
        "limits": limits,
        "v2g": v2g,
        "nodes": [
            node("grid", None, 90.0, 0.97), node("hub", "grid", 120.0, 0.98), node("row", "hub", 40.0, 0.99),
            node("fast", "hub", 110.0, 0.96), node("roof", "grid", 50.0, 0.95),
        ],
        "sockets": [
            group("ac", "row", 4, "ac", 230.0, 16.0, 3, 0.98), group("dc", "fast", 2, "dc", 400.0, 200.0, 1, 0.93),
            group("late", "hub", 1, "ac", 230.0, 32.0, 1, 1.0),
        ],
        "battery": {
            "parent": "hub", "capacity_kwh": 60.0, "power_kw": 45.0, "charge_efficiency": 0.94,
            "discharge_efficiency": 0.91, "soc_min": 0.1, "soc_max": 0.95, "soc_start": 0.4,
            "standing_loss_per_day": 0.05,
        },
        "pv": {"parent": "roof", "peak_kw": 80.0},
        "prices": {"export_discount_per_kwh": 0.02, "export_limit_kw": 25.0, "sell_per_kwh": 0.4},
        "reward": {
            "unmet_per_kwh": 0.3, "excess_per_kwh": 0.05, "degradation_per_kwh": 0.04, "turned_away": 1.5,
            "overtime_per_hour": 0.0, "stored_per_kwh": 0.1,
        },
    }
    config["sockets"][1]["limit_kw"] = 95.0
    # Prices of hours in UTC from two hours before midnight, PV of quarters of an hour on the local clock.
    hourly = [round(rng.uniform(-40.0, 300.0), 2) for _ in range(30)]
    quarters = [round(max(0.0, 80.0 * math.sin(math.pi * (q - 24) / 48)) * rng.random(), 3) for q in range(96)]
    sessions = []
    for _ in range(60):
        begin = START + rng.randrange(0, 1440)
        end = begin + rng.randrange(10, 600)
        sessions.append((begin, end, round(rng.uniform(1.0, 60.0), 2), rng.choice(["ac", "dc", "any"]), rng.choice([3.7, 11.0, 22.0, 50.0, 150.0])))
    sessions.sort(key=lambda session: (session[0] - START) // step_minutes)
    n = 1440 // step_minutes
    prices = [hourly[2 + step * step_minutes // 60] / 1000.0 for step in range(n)]
    if step_minutes > 15:
        pv = [sum(quarters[4 * step : 4 * step + 4]) / 4 for step in range(n)]
    else:
        pv = [quarters[step * step_minutes // 15] for step in range(n)]
    width = 1 + sum(group["count"] for group in config["sockets"])
    actions = [[single(rng.uniform(-1.0, 1.0)) if rng.random() < 0.7 else rng.choice([-1.0, 1.0]) for _ in range(width)] for _ in range(n)]
    # Clocks differ: prices are on that of UTC, one hour behind, which begins on February 29.
    before = lambda minute: stamp(minute) if minute >= START else f"2024-02-29T{minute % 1440 // 60:02}:00"
    csv = {
        "prices": "time [UTC],price [EUR/MWh]\n"
        + "".join(f"{before(START + 60 * (hour - 3))},{price}\n" for hour, price in enumerate(hourly)),
        "pv": "time [UTC+01:00],pv [kW]\n" + "".join(f"{stamp(START + 15 * q)},{kw}\n" for q, kw in enumerate(quarters)),
        "sessions": "arrival [UTC+01:00],departure [UTC+01:00],energy [kWh],socket,power [kW]\n"
        + "".join(f"{stamp(b)},{stamp(e)},{kwh},{kind},{kw}\n" for b, e, kwh, kind, kw in sessions),
    }
    return {"config": config, "csv": csv, "actions": actions, "steps": [short(row) for row in simulate(config, prices, pv, sessions, actions)]}


def main():
    cases = [(1, 5, "curtail", True), (2, 15, "curtail", False), (3, 15, "penalize", True), (4, 60, "curtail", True)]
    text = json.dumps([episode(*case) for case in cases])
    with open(sys.argv[1], "wb") as file:
        file.write(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
