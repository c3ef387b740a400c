"""Records a room in many coordinate systems, as PROJ has them.

    pip install pyproj==3.7.2
    python scripts/record_projections.py crates/brasa-floorplan/tests/data/projections.json

The room is 12 m by 8 m on the ellipsoid: its corners are found by geodesics from the first one. It is projected to each system of
EPSG, with x first as in GeoJSON.
"""

import json
import sys

from pyproj import Geod, Transformer, __version__

# Where each system is used: degrees east and north.
PLACES = {
    4326: (-73.25, -3.75),
    4258: (9.0, 50.0),
    3857: (10.75, 60.0),
    24878: (-73.25, -3.75),
    32718: (-73.25, -3.75),
    25832: (9.0, 50.0),
    2154: (2.35, 48.85),
    27700: (-0.1, 51.5),
    2056: (7.45, 46.95),
    28992: (4.9, 52.4),
    31370: (4.35, 50.85),
    2263: (-74.0, 40.7),
    3067: (25.0, 60.2),
    5367: (-84.1, 9.9),
    2193: (174.8, -41.3),
}

earth = Geod(ellps="WGS84")
rooms = []
for code, first in PLACES.items():
    ring, azimuth, at = [first], 70.0, first
    for side in (12.0, 8.0, 12.0):
        east, north, _ = earth.fwd(*at, azimuth, side)
        at, azimuth = (east, north), azimuth - 90.0
        ring.append(at)
    area_m2 = earth.polygon_area_perimeter(*zip(*ring))[0]
    project = Transformer.from_crs(4326, code, always_xy=True)
    corners = [project.transform(*corner) for corner in ring]
    rooms.append({"epsg": code, "corners": corners, "area_m2": abs(area_m2), "degrees": ring})
with open(sys.argv[1], "w") as file:
    json.dump({"pyproj": __version__, "rooms": rooms}, file, indent=1)
    file.write("\n")
