// ---- map -----------------------------------------------------------------------------------------------------------

const LABEL = 24, PAD = 14, LEAST_SCALE = 12;
let map = null;

// Floors in as many columns as make them largest.
function arrange(building, width) {
  const boxes = building.floors.map(f => [f.low[0], f.low[1], f.high[0], f.high[1]]);
  const union = boxes.reduce((a, b) => [Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[2], b[2]), Math.max(a[3], b[3])]);
  const area = b => (b[2] - b[0]) * (b[3] - b[1]);
  if (area(union) < 1.6 * Math.max(...boxes.map(area))) boxes.fill(union);
  const w = Math.max(...boxes.map(b => b[2] - b[0])), h = Math.max(...boxes.map(b => b[3] - b[1]));
  const tall = Math.min(720, Math.max(420, 0.72 * innerHeight));
  let best = null;
  for (let columns = 1; columns <= boxes.length; columns++) {
    const rows = Math.ceil(boxes.length / columns);
    const scale = Math.min((width - PAD * (columns + 1)) / columns / w, (tall - rows * (LABEL + PAD)) / rows / h, 60);
    if (!best || scale > best.scale * 1.02) best = { columns, rows, scale };
  }
  const scale = Math.max(best.scale, LEAST_SCALE), { columns, rows } = best;
  const cell = [w * scale + PAD, h * scale + LABEL + PAD];
  const origins = boxes.map((box, i) => {
    const column = i % columns, row = Math.floor(i / columns);
    return [PAD + column * cell[0] - box[0] * scale, LABEL + row * cell[1] + box[3] * scale];
  });
  return { scale, origins, boxes, size: [columns * cell[0] + PAD, rows * cell[1] + 4] };
}

function drawMap() {
  const { building } = current(), { scale, origins, boxes, size } = arrange(building, Math.max(mapBox.clientWidth, 200));
  mapBox.textContent = "";
  const picture = svg("svg", { width: size[0], height: size[1], viewBox: `0 0 ${size[0]} ${size[1]}`, role: "img" }, mapBox);
  const hatch = svg("pattern", { id: "lost", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("defs", {}, picture));
  svg("path", { d: "M0 0V7", stroke: "var(--ink)", "stroke-width": 3, opacity: .65, class: "lost" }, hatch);
  const on = floor => ([x, y]) => [origins[floor][0] + x * scale, origins[floor][1] - y * scale];
  const pairs = flat => { const list = []; for (let i = 0; i < flat.length; i += 2) list.push([flat[i], flat[i + 1]]); return list; };
  const path = points => "M" + points.map(p => p[0].toFixed(1) + " " + p[1].toFixed(1)).join("L");
  const layer = () => svg("g", {}, picture);
  const [under, ground, gaps, over, thinks, tethers, persons, crews] = Array.from({ length: 8 }, layer);

  if (building.floors.length > 1) {
    building.floors.forEach((f, i) => {
      const [x, y] = on(i)([boxes[i][0], boxes[i][3]]);
      svg("text", { class: "floor", x, y: y - 8 }, under, f.floor === 0 ? "ground floor" : "floor " + f.floor);
    });
  }
  const places = building.nodes.map((node, i) => {
    const project = on(node.floor), corners = pairs(node.outline).map(project), center = project(node.at);
    const low = [0, 1].map(k => Math.min(...corners.map(c => c[k]), center[k])), high = [0, 1].map(k => Math.max(...corners.map(c => c[k]), center[k]));
    const group = svg("g", { class: "place " + node.kind }, ground);
    const place = { center, low, high, corners, group, floor: node.floor };
    place.d = corners.length ? path(corners) + "Z" : "";
    const shape = (name, attributes) => svg("path", { d: place.d, class: name, ...attributes }, group);
    if (corners.length) {
      const base = shape("base");
      base.onpointerenter = () => { hovered = i; showTip(); };
      base.onpointerleave = () => { hovered = -1; showTip(); };
      place.tint = shape("", { fill: "var(--swept)", "fill-opacity": 0 });
      place.smoke = shape("", { fill: "var(--smoke)", "fill-opacity": 0 });
      place.fire = shape("", { fill: "var(--flame)", "fill-opacity": 0 });
      place.lost = shape("", { fill: "url(#lost)", visibility: "hidden" });
      svg("path", { class: "wall", d: wallsOf(building, i).map(wall => path(wall.map(project))).join("") }, group);
    } else {
      svg("circle", { cx: center[0], cy: center[1], r: 2.5, fill: "var(--mid)" }, over);
    }
    // The name where it fits: in the upper left, or above the middle of what has arms.
    const wide = high[0] - low[0], tall = high[1] - low[1];
    if (node.kind === "exit") {
      // With the number of people who left there: in one line, in two, or above.
      const y = wide >= 52 ? low[1] + 14 : wide >= 32 && tall >= 36 ? center[1] - 4 : low[1] - 4;
      place.exit = svg("text", { class: "name", x: center[0], y, "text-anchor": "middle", style: "fill:var(--safe);font-weight:600" }, over, "EXIT");
      if (wide < 52 && y > low[1]) place.through = svg("text", { x: center[0], y: center[1] + 12, "text-anchor": "middle", "font-size": 12, style: "fill:var(--safe)" }, over);
    } else if (corners.length && node.kind !== "stair") {
      const label = short(node), needs = label.length * 6.4 + 2, above = node.kind === "hall" ? [[center[0] - needs / 2, center[1] - 9]] : [];
      const at = fitting(corners, [[low[0] + 4, low[1] + 13], ...above], needs, 9);
      if (at) svg("text", { class: "name", x: at[0], y: at[1] }, over, label);
    }
    if (node.kind === "stair") {
      const steps = [];
      for (let k = 1; k < 6; k++) { const x = low[0] + (high[0] - low[0]) * k / 6; steps.push(`M${x} ${low[1] + 3}V${high[1] - 3}`); }
      svg("path", { d: steps.join(""), stroke: "var(--thin)", fill: "none" }, group);
    }
    if (node.sweeps && wide > 24) place.mark = svg("text", { class: "mark", x: high[0] - 4, y: high[1] - 5 }, over);
    place.flame = svg("path", { d: "M0-8C4-4 6-1 6 3A6 6 0 0 1-6 3C-6 0-4-2-3-4C-2-2-1-2 0-1C1-3 1-5 0-8Z", fill: "var(--ember)", stroke: "var(--room)", "stroke-width": 1, visibility: "hidden" }, over);
    const [x, y] = fitting(corners, [[low[0] + 4, high[1] - 3], [center[0] - 24, center[1] + 14]], 14, 18) || [center[0] - 7, center[1] + 9];
    place.flame.setAttribute("transform", `translate(${x + 8} ${y - 9})`);
    place.seats = seats(place, scale);
    return place;
  });
  const ways = building.ways.map((way, index) => {
    const ends = [building.nodes[way.a].floor, building.nodes[way.b].floor];
    const from = pairs(way.from).map(on(ends[0])), to = pairs(way.to).map(on(ends[1]));
    if (way.opening) {
      const [p, q] = pairs(way.opening).map(on(ends[0]));
      const line = { x1: p[0], y1: p[1], x2: q[0], y2: q[1] };
      if (way.kind !== "passage") svg("line", { class: "leaf" + (way.kind === "fire-door" ? " fire" : ""), ...line }, gaps);
    } else if (way.link) {
      const [p, q] = pairs(way.link).map(on(ends[0]));
      svg("line", { class: "link", x1: p[0], y1: p[1], x2: q[0], y2: q[1] }, under);
      const middle = from[from.length - 1];
      if (way.kind !== "passage") svg("circle", { cx: middle[0], cy: middle[1], r: 2.5, fill: way.kind === "fire-door" ? "var(--guard)" : "var(--mid)" }, under);
    } else {
      for (const [half, other] of [[from[from.length - 1], ends[1]], [to[0], ends[0]]]) {
        const here = half === to[0] ? ends[1] : ends[0];
        const sign = svg("g", { class: "flight", transform: `translate(${half})` }, over);
        svg("circle", { r: 8 }, sign);
        svg("text", { y: 4 }, sign, other > here ? "↑" : "↓");
      }
    }
    const think = [from, [...to].reverse()].map(half => svg("path", { class: "think", d: path(half), visibility: "hidden" }, thinks));
    return { from, to, level: ends[0] === ends[1], think, index };
  });
  const between = new Map();
  building.ways.forEach((way, i) => { between.set(way.a * 65536 + way.b, [i, 0]); between.set(way.b * 65536 + way.a, [i, 1]); });
  map = { building, places, ways, between, scale, thinks, tethers, persons, crews, picture, people: [], crew: [], self: [], options: [] };
  map.self = places.map(place => svg("circle", { class: "think", cx: place.center[0], cy: place.center[1], r: 11, visibility: "hidden" }, thinks));
  map.options = places.map(place => svg("path", { class: "option", d: place.d || "M0 0", visibility: "hidden" }, thinks));
  drawActors();
}

// The walls of a place without the openings in them.
function wallsOf(building, i) {
  const flat = building.nodes[i].outline, n = flat.length / 2, walls = [];
  const gaps = building.ways.filter(way => way.opening && (way.a === i || way.b === i)).map(way => way.opening);
  for (let k = 0; k < n; k++) {
    const a = [flat[2 * k], flat[2 * k + 1]], j = (k + 1) % n, b = [flat[2 * j], flat[2 * j + 1]];
    const length = Math.hypot(b[0] - a[0], b[1] - a[1]), dir = [(b[0] - a[0]) / length, (b[1] - a[1]) / length];
    if (!(length > 0)) continue;
    const reach = (x, y) => [(x - a[0]) * dir[0] + (y - a[1]) * dir[1], Math.abs((x - a[0]) * dir[1] - (y - a[1]) * dir[0])];
    let left = [[0, length]];
    for (const [x1, y1, x2, y2] of gaps) {
      const [p, q] = [reach(x1, y1), reach(x2, y2)], low = Math.min(p[0], q[0]), high = Math.max(p[0], q[0]);
      // Openings lie half a wall's thickness off.
      if (Math.max(p[1], q[1]) > 0.35 || high < 0.02 || low > length - 0.02) continue;
      left = left.flatMap(([s, e]) => [[s, Math.min(e, low)], [Math.max(s, high), e]].filter(([from, to]) => to - from > 0.01));
    }
    for (const [s, e] of left) walls.push([[a[0] + s * dir[0], a[1] + s * dir[1]], [a[0] + e * dir[0], a[1] + e * dir[1]]]);
  }
  return walls;
}

function isInside(corners, x, y) {
  let is = false;
  for (let i = 0, j = corners.length - 1; i < corners.length; j = i++) {
    const [a, b] = [corners[i], corners[j]];
    if ((a[1] > y) !== (b[1] > y) && x < (b[0] - a[0]) * (y - a[1]) / (b[1] - a[1]) + a[0]) is = !is;
  }
  return is;
}
// The first of some points around which a box lies inside.
function fitting(corners, points, w, h) {
  return points.find(([x, y]) => [[0, 0], [w, 0], [0, -h], [w, -h]].every(([dx, dy]) => isInside(corners, x + dx, y + dy)));
}

// Places to stand in a room: a grid around its middle, the middle itself left to responders.
function seats(place, scale) {
  const gap = Math.max(11, 0.75 * scale), [cx, cy] = place.center, list = [];
  for (let row = -4; row <= 4; row++) {
    for (let column = -6; column <= 6; column++) {
      const x = column * gap, y = (row + 0.5) * gap;
      const m = 6;
      const free = [[-m, -m], [m, -m], [-m, m], [m, m]].every(([a, b]) => isInside(place.corners, cx + x + a, cy + y + b));
      if (free && Math.abs(y) + Math.abs(x) > 0.9 * gap) list.push([x, y]);
    }
  }
  list.sort((a, b) => (a[0] ** 2 + 2 * a[1] ** 2) - (b[0] ** 2 + 2 * b[1] ** 2) || b[1] - a[1] || a[0] - b[0]);
  return list.length ? list : [[0, 0]];
}

function personLook(state) {
  const alone = ["var(--c2)", "var(--ink)"];
  return [["var(--room)", "var(--soft)"], ["var(--c4)", "var(--ink)"], alone, alone, ["var(--c5)", "var(--ink)"], alone, ["var(--ink)", "var(--ink)"]][state];
}
function personPath(mobility, r) {
  if (mobility === 0) return `M${-r} 0A${r} ${r} 0 1 1 ${r} 0A${r} ${r} 0 1 1 ${-r} 0Z`;
  if (mobility === 1) return `M0 ${-1.15 * r}L${1.1 * r} ${0.85 * r}H${-1.1 * r}Z`;
  return `M${-r} ${-r}H${r}V${r}H${-r}Z`;
}

function drawActors() {
  const { frames, building } = current();
  for (const layer of [map.tethers, map.persons, map.crews]) layer.textContent = "";
  const r = Math.min(7, Math.max(3.6, 0.2 * map.scale)), body = Math.min(14, Math.max(8, 0.36 * map.scale));
  const homes = new Map();
  map.radius = { person: r, body };
  map.people = building.people.map((mobility, i) => {
    const home = frames.people[i].list[0].spell[1], seat = homes.get(home) || 0;
    homes.set(home, seat + 1);
    return { mobility, home, seat, mark: svg("path", { class: "person", d: personPath(mobility, r) }, map.persons),
             tether: svg("line", { class: "tether", visibility: "hidden" }, map.tethers) };
  });
  const n = frames.crew.length;
  map.crew = frames.crew.map((_, k) => {
    const group = svg("g", { class: "crew" }, map.crews);
    const ring = svg("circle", { class: "ring", r: body + 4, visibility: "hidden" }, group);
    svg("circle", { class: "body", r: body }, group);
    svg("text", { y: 0.36 * body, "font-size": 1.05 * body }, group, k + 1);
    return { group, ring, aside: [(k - (n - 1) / 2) * Math.min(2.2 * body, 90 / n), 0] };
  });
}

// ---- where everybody is --------------------------------------------------------------------------------------------

function along(points, share) {
  let length = 0;
  for (let i = 1; i < points.length; i++) length += Math.hypot(points[i][0] - points[i - 1][0], points[i][1] - points[i - 1][1]);
  let left = share * length;
  for (let i = 1; i < points.length; i++) {
    const [a, b] = [points[i - 1], points[i]], step = Math.hypot(b[0] - a[0], b[1] - a[1]);
    if (left <= step && step > 0) return [a[0] + (b[0] - a[0]) * left / step, a[1] + (b[1] - a[1]) * left / step];
    left -= step;
  }
  return points[points.length - 1];
}
// A point on the way between two nodes, with the place that somebody takes aside of it: nothing at the door.
function pointOn(node, to, share, aside) {
  const found = map.between.get(node * 65536 + to), at = (n, [x, y]) => [x + aside(n)[0], y + aside(n)[1]];
  if (!found || share <= 0) return at(node, map.places[node].center);
  if (share >= 1) return at(to, map.places[to].center);
  const [index, flipped] = found, way = map.ways[index], real = flipped ? 1 - share : share;
  let point;
  if (way.level) point = along([...way.from, ...way.to.slice(1)], real);
  else point = real < 0.5 ? along(way.from, 2 * real) : along(way.to, 2 * real - 1);
  const off = aside(share < 0.5 ? node : to), weight = Math.abs(1 - 2 * share);
  return [point[0] + off[0] * weight, point[1] + off[1] * weight];
}
// A point between two ticks: on along the way, over every node between.
function glide(a, b, u, aside) {
  const parts = [];
  if (a.node === b.node && a.to === b.to) return pointOn(a.node, a.to, a.share + (b.share - a.share) * u, aside);
  let node = a.node;
  if (a.to !== a.node) { parts.push([a.node, a.to, a.share, 1]); node = a.to; }
  if (node !== b.node && map.between.has(node * 65536 + b.node)) parts.push([node, b.node, 0, 1]);
  if (b.to !== b.node) parts.push([b.node, b.to, 0, b.share]);
  const total = parts.reduce((sum, p) => sum + p[3] - p[2], 0);
  let left = u * total;
  for (const [from, to, low, high] of parts) {
    if (left <= high - low) return pointOn(from, to, low + left, aside);
    left -= high - low;
  }
  return pointOn(b.node, b.to, b.share, aside);
}

function showMap() {
  const { frames, building, run } = current(), t = Math.min(Math.floor(view.time), run.ticks), u = view.time - t, next = Math.min(t + 1, run.ticks);
  const L = replay.levels, active = countAt(run, building, t).active, through = new Map();
  const exits = frames.people.map((_, i) => personAt(frames, i, t));
  exits.forEach(p => { if (p.state === OUT) through.set(p.node, (through.get(p.node) || 0) + 1); });
  map.places.forEach((place, i) => {
    const node = building.nodes[i], n = bits(frames.swept[i][t]), needed = Math.min(node.sweeps, Math.max(active, 1));
    const fire = frames.fire[i][t] / L, smoke = frames.smoke[i][t] / L, lost = frames.lost[i][t];
    if (place.tint) {
      set(place.tint, { "fill-opacity": !node.sweeps || !n ? 0 : n >= needed ? 0.75 : 0.32 });
      set(place.smoke, { "fill-opacity": (0.62 * smoke).toFixed(3) });
      set(place.fire, { "fill-opacity": fire ? (0.3 + 0.6 * fire).toFixed(3) : 0 });
      set(place.lost, { visibility: lost ? "visible" : "hidden" });
    }
    set(place.flame, { visibility: fire ? "visible" : "hidden" });
    if (place.mark) say(place.mark, node.sweeps && n >= needed && n ? "✓" : needed > 1 ? `${n}/${needed}` : "");
    const left = through.get(i) || "";
    if (place.through) say(place.through, String(left));
    else if (place.exit) say(place.exit, `EXIT ${left}`);
  });
  const positions = map.crew.map((actor, r) => {
    const here = crewAt(frames, r, t), point = glide(here, crewAt(frames, r, next), u, () => actor.aside);
    set(actor.group, { transform: `translate(${point[0].toFixed(1)} ${point[1].toFixed(1)})`, class: "crew" + (here.doing === 3 ? " down" : "") });
    set(actor.ring, { visibility: here.doing === 2 ? "visible" : "hidden", transform: `rotate(${(view.time * replay.tick_secs * 30 % 360).toFixed(0)})` });
    return point;
  });
  const points = [];
  map.people.forEach((actor, i) => {
    const here = exits[i], seat = n => { const s = map.places[n].seats; return s[(n === actor.home ? actor.seat : i * 7) % s.length]; };
    const after = personAt(frames, i, next);
    // Close behind whoever escorts it; at the end of a search it steps up.
    const behind = leader => {
      const [x, y] = positions[leader], turn = (i * 2.4) % 6.28, far = map.radius.body + map.radius.person + 3;
      return [x + far * Math.cos(turn), y + far * Math.sin(turn)];
    };
    let point = here.state === 4 ? behind(here.leader) : glide(here, after, u, seat);
    if (here.state !== 4 && after.state === 4) {
      const from = pointOn(here.node, here.to, here.share, seat), to = behind(after.leader);
      point = [from[0] + (to[0] - from[0]) * u, from[1] + (to[1] - from[1]) * u];
    }
    points[i] = point;
    const [fill, stroke] = personLook(here.state), gone = here.state === OUT;
    set(actor.mark, { transform: `translate(${point[0].toFixed(1)} ${point[1].toFixed(1)})`, fill, stroke, visibility: gone ? "hidden" : "visible",
      d: here.state === DEAD ? `M-5-5L5 5M5-5L-5 5` : personPath(actor.mobility, map.radius.person), "stroke-width": here.state === DEAD ? 3 : 1.5 });
  });
  map.people.forEach((actor, i) => {
    const { state, leader } = exits[i], end = state === 4 ? positions[leader] : state === 3 ? points[leader] : null;
    set(actor.tether, end ? { x1: points[i][0].toFixed(1), y1: points[i][1].toFixed(1), x2: end[0].toFixed(1), y2: end[1].toFixed(1), visibility: "visible" } : { visibility: "hidden" });
  });
}

