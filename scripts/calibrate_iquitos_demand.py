"""Hourly energy of the electric vehicles in the Iquitos microgrid, fitted to published sums.

    python scripts/calibrate_iquitos_demand.py

The study publishes the vehicles' demand per hour of the day rounded to 0.1 kWh, its daily sum, and what a year of the
site adds up to under simple controllers. Rounded hours miss those sums by up to some hundred kWh. This script looks
for the smallest correction (least squares, at most 0.05 kWh per hour) with which a year of the site meets the daily
sum and the yearly sums to 0.001 kWh of import, and prints the table of
`crates/brasa-energy/src/iquitos/profiles.rs`. It needs numpy only (made with 2.x).

Method: Gauss-Newton on the constraints with numeric derivatives; each round takes the smallest step from the rounded
values that meets the linearized constraints. The last digits of the published sums (0.01 kWh) are all that is known,
so many profiles fit; the smallest correction is the one that adds nothing else.
"""

import numpy

# Published: kWh per hour of the day, rounded to 0.1.
ROUNDED_KWH = numpy.array(
    [47.5] * 9 + [50.6, 71.2, 110.4, 159.2, 223.9, 268.0] + [272.0] * 6 + [213.8, 47.5, 47.5], dtype=float
)
# Six of them are the installed power, which nothing exceeds: they are exact.
FREE = ROUNDED_KWH < 272.0
DAILY_KWH = 3252.0
MAX_CORRECTION_KWH = 0.05
TOLERANCE_KWH = 0.001
# Peaks are not fitted: the installed power fixes them, and they must agree to the published digits.
TOLERANCE_PEAK_KW = 0.005

# Published sums of a year: import, PV curtailed and battery output in kWh, and the highest hour of import in kW.
FIGURES = ("import", "curtailed", "out", "peak")
ANCHORS = {
    "A greedy": (1.0, True, (5_659_637.56, 23_240.97, 1_170_331.91, 2110.72)),
    "B at rest": (1.0, False, (6_829_969.47, 1_318_104.47, 0.0, 2373.40)),
    "C no PV": (0.0, False, (13_555_005.00, 0.0, 0.0, 2373.40)),
    "D PV / 1000": (0.001, True, (13_545_244.26, 0.0, 1_717.60, 2373.40)),
}

# The site: closed forms, as in profiles.rs.
DAYS = 365
HOURS = numpy.arange(24)
MALL_KW = numpy.array([3, 3, 3, 3, 3, 4, 5, 6, 7, 7, 7, 6, 6, 6, 6, 6, 7, 8, 8, 7, 6, 5, 4, 3]) * 33_885.0 / 129.0
CAPACITY_KWH, POWER_KW, EFFICIENCY, LOW, HIGH, START = 4520.0, 2712.0, 0.95, 0.10, 0.95, 0.50


def pv_year():
    """PV energy per hour of the year, a bell over the day and a season of 5 %."""
    bell = numpy.where((HOURS >= 5) & (HOURS <= 17), numpy.exp(-((HOURS - 12.0) ** 2) / (2 * 3.5**2)), 0.0)
    season = 1.0 + 0.05 * numpy.sin(2 * numpy.pi * (numpy.arange(DAYS) - 79.0) / 365.0)
    return (8_043_140.0 / (DAYS * bell.sum()) * season[:, None] * bell[None, :]).ravel()


PV_KWH = pv_year()


def simulate(vehicles_kwh, pv_scale, battery):
    """The FIGURES of a year: PV to all load, surplus to the battery, battery to all load."""
    net = numpy.tile(MALL_KW + vehicles_kwh, DAYS) - pv_scale * PV_KWH
    flow = numpy.zeros(len(net))
    if battery:
        low, high, stored = LOW * CAPACITY_KWH, HIGH * CAPACITY_KWH, START * CAPACITY_KWH
        for hour, need in enumerate(net.tolist()):
            if need > 0.0:
                flow[hour] = min(need, POWER_KW, (stored - low) * EFFICIENCY)
                stored -= flow[hour] / EFFICIENCY
            else:
                flow[hour] = -min(-need, POWER_KW, (high - stored) / EFFICIENCY)
                stored -= flow[hour] * EFFICIENCY
    grid = net - flow
    imported = numpy.maximum(grid, 0.0)
    return imported.sum(), numpy.maximum(-grid, 0.0).sum(), numpy.maximum(flow, 0.0).sum(), imported.max()


def sums(vehicles_kwh):
    """Everything that must meet a published number."""
    values = [vehicles_kwh.sum()]
    for pv_scale, battery, _ in ANCHORS.values():
        values += simulate(vehicles_kwh, pv_scale, battery)[:3]
    return numpy.array(values)


def main():
    targets = [DAILY_KWH]
    for _, _, figures in ANCHORS.values():
        targets += figures[:3]
    targets = numpy.array(targets)
    # The sum of a day is an exact number, the others are rounded.
    weights = numpy.where(numpy.arange(len(targets)) == 0, 1e5, 1.0)

    correction = numpy.zeros(24)
    for round_ in range(20):
        now = sums(ROUNDED_KWH + correction)
        missed = targets - now
        print(f"round {round_}: largest miss {numpy.abs(missed).max():.6f} kWh")
        if numpy.abs(missed).max() < TOLERANCE_KWH:
            break
        step = 1e-2
        derivatives = numpy.column_stack(
            [(sums(ROUNDED_KWH + correction + step * row) - now) / step for row in numpy.eye(24)[FREE]]
        )
        # The smallest correction from the rounded values, not from the last round's.
        wanted = missed + derivatives @ correction[FREE]
        correction[FREE], *_ = numpy.linalg.lstsq(weights[:, None] * derivatives, weights * wanted, rcond=1e-9)

    # Printed with nine digits, checked as printed.
    fitted = numpy.round(ROUNDED_KWH + correction, 9)
    print("largest correction", numpy.abs(fitted - ROUNDED_KWH).max(), "kWh")
    assert numpy.abs(fitted - ROUNDED_KWH).max() <= MAX_CORRECTION_KWH
    print("sum of a day", fitted.sum())
    for name, (pv_scale, battery, figures) in ANCHORS.items():
        results = list(zip(FIGURES, simulate(fitted, pv_scale, battery), figures))
        for key, value, figure in results:
            assert abs(value - figure) < (TOLERANCE_PEAK_KW if key == "peak" else TOLERANCE_KWH), (name, key, value)
        print(name, ", ".join(f"{key} {value:.4f} ({value - figure:+.4f})" for key, value, figure in results))
    for hour, value in enumerate(fitted):
        print(f"    {value:.9f}, // {hour}")


if __name__ == "__main__":
    main()
