// The replay of an evacuation: a map, a chart of what responders did, and one clock for both.
"use strict";
const replay = data.replay, root = document.getElementById("replay");

// ---- what happened -------------------------------------------------------------------------------------------------

const STATES = ["unaware", "waiting for help", "walking out", "led by an adult", "led by a responder", "out", "dead"];
const MOBILITY = ["adult", "child", "limited mobility"];
const [OUT, DEAD] = [5, 6];
const DOING = ["waits", "walks", "searches", "is down"];
const ACTIVITIES = [["search", "var(--crew)"], ["walk", "var(--walk)"], ["escort", "var(--escort)"], ["wait", "var(--idle)"], ["down", "var(--ink)"]];
const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// Lists of changes and of spells, as values at every tick.
function decode(run, building) {
  if (run.frames) return run.frames;
  const n = run.ticks + 1, nodes = building.nodes.length;
  const grid = (lists, Type = Uint8Array) => {
    const all = Array.from({ length: nodes }, () => new Type(n));
    for (const [node, list] of lists) {
      for (let i = 0, t = 0; i < list.length; i += 2) { t += list[i]; all[node].fill(list[i + 1], t); }
    }
    return all;
  };
  const spread = spells => {
    let start = 0;
    const of = new Uint16Array(n);
    const list = spells.map((spell, i) => {
      const out = { start, n: spell[0], spell };
      of.fill(i, start, start + spell[0]);
      start += spell[0];
      return out;
    });
    return { of, list };
  };
  const crew = run.crew.map(spread), people = run.people.map(spread);
  const harm = run.harm.map(list => {
    const all = new Uint8Array(n);
    for (let i = 0, t = 0; i < list.length; i += 2) { t += list[i]; all.fill(list[i + 1], t); }
    return all;
  });
  let tick = 0;
  const decisions = run.decisions.map(([since, responder, node]) => ({ tick: tick += since, responder, node }));
  run.frames = { n, fire: grid(run.fire), smoke: grid(run.smoke), lost: grid(run.lost), swept: grid(run.swept), crew, people, harm, decisions };
  return run.frames;
}
const bits = x => { let n = 0; for (; x; x &= x - 1) n++; return n; };

// Where somebody is at a tick: at a node, or a share of the way to another.
function crewAt(frames, r, t) {
  const { of, list } = frames.crew[r], { start, spell: [, node, to, doing, escorting, whole, before] } = list[of[t]];
  return { node, to, share: doing === 1 ? (t - start + before) / whole : 0, doing, escorting };
}
function personAt(frames, i, t) {
  const { of, list } = frames.people[i], { start, n, spell: [, node, to, state, leader] } = list[of[t]];
  return { node, to, share: node === to ? 0 : (t - start + 1) / (n + 1), state, leader };
}

function countAt(run, building, t) {
  const frames = decode(run, building);
  const active = frames.crew.filter((_, r) => crewAt(frames, r, t).doing !== 3).length;
  let swept = 0, lost = 0, rooms = 0;
  building.nodes.forEach((node, i) => {
    if (!node.sweeps) return;
    rooms++;
    if (bits(frames.swept[i][t]) >= Math.min(node.sweeps, Math.max(active, 1))) swept++;
    else if (frames.lost[i][t]) lost++;
  });
  let out = 0, dead = 0;
  frames.people.forEach((_, i) => { const { state } = personAt(frames, i, t); out += state === OUT; dead += state === DEAD; });
  return { rooms, swept, lost, people: frames.people.length, out, dead, active };
}

// ---- state ---------------------------------------------------------------------------------------------------------

const view = { controller: replay.controllers.includes("trained") ? "trained" : replay.controllers[0], episode: 0, time: 0, playing: false,
               speed: 10, think: false, layer: 0, decision: -1 };
const current = () => {
  const episode = replay.episodes[view.episode], run = episode.runs[view.controller], building = replay.buildings[episode.building];
  return { run, building, frames: decode(run, building) };
};
const clock = ticks => {
  const secs = Math.round(ticks * replay.tick_secs);
  return `${Math.floor(secs / 60)}:${String(secs % 60).padStart(2, "0")}`;
};
// The floor is known from where it is drawn.
const short = node => node.name.replace(/^F-?\d+_(?=.)/, "");

// ---- page ----------------------------------------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";
function svg(name, attributes, parent, text) {
  const element = document.createElementNS(SVG, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text != null) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}
function html(name, attributes, parent, text) {
  const element = document.createElement(name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text != null) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}
// Sets only what changed: most of a frame is as the one before.
function set(element, attributes) {
  const known = element.known || (element.known = {});
  for (const key in attributes) {
    const value = attributes[key];
    if (known[key] !== value) { known[key] = value; element.setAttribute(key, value); }
  }
}
function say(element, text) { if (element.said !== text) { element.said = text; element.textContent = text; } }

html("h2", {}, root, "Replay");
const top1 = html("div", { class: "row" }, root);
function choice(label, names, get, choose) {
  const group = html("div", { class: "choice", role: "group", "aria-label": label }, top1);
  const buttons = names.map((name, i) => {
    const button = html("button", { type: "button" }, group, name);
    button.onclick = () => choose(i);
    return button;
  });
  return () => buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(get() === i)));
}
const showController = choice("Controller", replay.controllers, () => replay.controllers.indexOf(view.controller),
  i => change({ controller: replay.controllers[i] }));
const showEpisode = choice("Episode", replay.episodes.map((_, i) => "episode " + (i + 1)), () => view.episode, i => change({ episode: i }));
const where = html("span", { style: "color:var(--soft);font-size:14px" }, top1);
const thinkLabel = html("label", { class: "push" }, top1);
const thinkBox = html("input", { type: "checkbox" }, thinkLabel);
thinkLabel.append("attention");
const layers = html("select", { "aria-label": "Layer of attention" }, top1);
thinkBox.onchange = () => change({ think: thinkBox.checked });
layers.onchange = () => change({ layer: Number(layers.value) });

const facts = html("div", { class: "facts row" }, root);
const fact = label => {
  const box = html("div", {}, facts), value = html("b", {}, box);
  html("span", {}, box, label);
  return { box, value, number: value.appendChild(document.createTextNode("")), of: html("small", {}, value) };
};
const timeFact = fact("since the alarm"), sweptFact = fact("rooms swept"), lostFact = fact("rooms lost"), outFact = fact("people out"),
      deadFact = fact("dead"), crewFact = fact("responders");

const stage = html("div", { class: "stage" }, root);
const mapBox = html("div", { class: "map" }, stage);
const tip = html("div", { class: "tip" }, stage);
const thought = html("div", { class: "thought" }, stage);

const controls = html("div", { class: "row" }, root);
const play = html("div", { class: "play" }, controls);
const ICONS = { start: "M3 3h2v10H3zM14 3v10L6 8z", back: "M12 3v10L4 8z", play: "M4 2v12l10-6z", pause: "M4 2h3v12H4zM9 2h3v12H9z", next: "M4 3v10l8-5z", end: "M11 3h2v10h-2zM2 3v10l8-5z" };
function button(icon, label, action, style = "") {
  const element = html("button", { type: "button", title: label, "aria-label": label, class: style }, play);
  const picture = svg("svg", { width: 16, height: 16, viewBox: "0 0 16 16", "aria-hidden": true }, element);
  element.icon = svg("path", { d: ICONS[icon] }, picture);
  element.onclick = action;
  return element;
}
button("start", "To the start (Home)", () => seek(0));
button("back", "One tick back (←)", () => step(-1));
const go = button("play", "Play (space)", () => toggle(), "go");
button("next", "One tick on (→)", () => step(1));
button("end", "To the end (End)", () => seek(current().run.ticks));
const speeds = html("select", { "aria-label": "Speed" }, controls);
[1, 2, 5, 10, 20, 50].forEach(x => html("option", { value: x }, speeds, x + "×"));
speeds.onchange = () => { view.speed = Number(speeds.value); };
const hint = html("span", { class: "push", style: "font-size:13px;color:var(--soft)" }, controls);
hint.innerHTML = "<kbd>space</kbd> play &nbsp;<kbd>←</kbd> <kbd>→</kbd> step &nbsp;<kbd>shift</kbd> 10 steps";

const axis = html("div", { class: "axis" }, root);
const slider = html("input", { type: "range", min: 0, step: 1, "aria-label": "Time" }, axis);
slider.oninput = () => seek(Number(slider.value));
const gantt = svg("svg", { class: "gantt", role: "img", "aria-label": "What each responder did" }, root);
const legends = html("div", {}, root);

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
  const picture = svg("svg", { width: size[0], height: size[1] }, mapBox);
  const hatch = svg("pattern", { id: "lost", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("defs", {}, picture));
  svg("path", { d: "M0 0V7", stroke: "#22252b", "stroke-width": 3, opacity: .65 }, hatch);
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
      place.tint = shape("", { fill: "#b2f2bb", "fill-opacity": 0 });
      place.smoke = shape("", { fill: "var(--smoke)", "fill-opacity": 0 });
      place.fire = shape("", { fill: "#fd7e14", "fill-opacity": 0 });
      place.lost = shape("", { fill: "url(#lost)", visibility: "hidden" });
      svg("path", { class: "wall", d: wallsOf(building, i).map(wall => path(wall.map(project))).join("") }, group);
    } else {
      svg("circle", { cx: center[0], cy: center[1], r: 2.5, fill: "#868e96" }, over);
    }
    // The name where it fits: in the upper left, or above the middle of what has arms.
    const wide = high[0] - low[0], tall = high[1] - low[1];
    if (node.kind === "exit") {
      // With the number of people who left there: in one line, in two, or above.
      const y = wide >= 52 ? center[1] + 4 : wide >= 32 && tall >= 36 ? center[1] - 4 : low[1] - 4;
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
      svg("path", { d: steps.join(""), stroke: "#ced4da", fill: "none" }, group);
    }
    if (node.sweeps && wide > 24) place.mark = svg("text", { class: "mark", x: high[0] - 4, y: high[1] - 5 }, over);
    place.flame = svg("path", { d: "M0-8C4-4 6-1 6 3A6 6 0 0 1-6 3C-6 0-4-2-3-4C-2-2-1-2 0-1C1-3 1-5 0-8Z", fill: "var(--ember)", stroke: "#fff", "stroke-width": 1, visibility: "hidden" }, over);
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
      if (way.kind !== "passage") svg("circle", { cx: middle[0], cy: middle[1], r: 2.5, fill: way.kind === "fire-door" ? "#a61e4d" : "#868e96" }, under);
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
  return [["#fff", "#868e96"], ["#fab005", "#e67700"], ["#74b816", "#5c940d"], ["#74b816", "#5c940d"], ["#22b8cf", "#0c8599"], ["#74b816", "#5c940d"], ["#22252b", "#22252b"]][state];
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

// ---- what the policy thought ----------------------------------------------------------------------------------------

function decisionNow() {
  const { decisions } = current().frames;
  let low = 0, high = decisions.length;
  while (low < high) { const middle = (low + high) >> 1; if (decisions[middle].tick <= view.time + 1e-9) low = middle + 1; else high = middle; }
  const held = decisions[view.decision];
  return held && held.tick === Math.floor(view.time) ? view.decision : low - 1;
}
function showThoughts() {
  const { run, building, frames } = current(), has = Boolean(run.attention), index = has && view.think ? decisionNow() : -1;
  thinkLabel.style.display = has ? "" : "none";
  layers.style.display = has && view.think && run.attention[0] && run.attention[0].length > 1 ? "" : "none";
  thinkBox.checked = view.think;
  thought.style.display = has && view.think ? "" : "none";
  const hide = element => set(element, { visibility: "hidden" });
  if (index < 0) {
    map.ways.forEach(way => way.think.forEach(hide));
    map.self.forEach(hide);
    map.options.forEach(hide);
    return;
  }
  const digits = run.attention[index][Math.min(view.layer, run.attention[index].length - 1)], weight = at => (DIGITS.indexOf(digits[at]) / 63) ** 2;
  const paint = (element, w) => set(element, { visibility: w < 0.01 ? "hidden" : "visible", "stroke-width": (0.8 + 8 * w).toFixed(2), opacity: (0.12 + 0.8 * w).toFixed(2) });
  // The half beside a node is what that node pays to the other end.
  map.ways.forEach((way, i) => { paint(way.think[1], weight(2 * i)); paint(way.think[0], weight(2 * i + 1)); });
  map.self.forEach((ring, i) => paint(ring, 0.5 * weight(2 * map.ways.length + i)));
  const likely = run.probabilities[index], chances = new Map();
  for (let i = 0; i < likely.length; i += 2) chances.set(likely[i], likely[i + 1]);
  map.options.forEach((outline, i) => {
    const p = (chances.get(i) || 0) / 100;
    set(outline, { visibility: p ? "visible" : "hidden", "stroke-width": (1 + 3 * p).toFixed(2), "stroke-opacity": (0.25 + 0.75 * p).toFixed(2), "fill-opacity": (0.25 * p).toFixed(3) });
  });
  const decision = frames.decisions[index], name = node => node < 0 ? "wait" : short(building.nodes[node]) + (building.floors.length > 1 ? ` (floor ${building.floors[building.nodes[node].floor].floor})` : "");
  const best = [...chances].sort((a, b) => b[1] - a[1]).slice(0, 4).map(([node, p]) => `${name(node)} ${p.toFixed(p < 10 ? 1 : 0)} %`).join("  ·  ");
  const key = `${index} ${best}`;
  if (thought.key !== key) {
    thought.key = key;
    thought.textContent = "";
    const leap = (label, by) => {
      const element = html("button", { type: "button", "aria-label": by < 0 ? "Decision before" : "Next decision" }, thought, label);
      element.onclick = () => leapTo(decisionNow() + by);
    };
    leap("‹", -1);
    html("span", {}, thought, `decision ${index + 1} of ${frames.decisions.length}`);
    leap("›", 1);
    const chosen = html("span", {}, thought, `at ${clock(decision.tick)} responder ${decision.responder + 1}: `);
    html("b", {}, chosen, name(decision.node));
    html("span", {}, thought, best);
  }
}
function leapTo(index) {
  const { decisions } = current().frames, decision = decisions[Math.max(0, Math.min(index, decisions.length - 1))];
  if (!decision) return;
  view.playing = false;
  view.time = decision.tick;
  view.decision = decisions.indexOf(decision);
  show();
}

// ---- chart ---------------------------------------------------------------------------------------------------------

const LINE = 26, GUTTER = 34, HEAD = 18;
let cursor = null, chart = null;
function drawGantt() {
  const { run, frames } = current(), width = root.clientWidth, plot = width - GUTTER, height = HEAD + LINE * frames.crew.length + 4;
  gantt.textContent = "";
  gantt.setAttribute("viewBox", `0 0 ${width} ${height}`);
  gantt.setAttribute("height", height);
  const x = tick => GUTTER + plot * tick / Math.max(run.ticks, 1), whole = run.ticks * replay.tick_secs;
  const every = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600].find(step => whole / step * 52 < plot) || 7200;
  for (let secs = 0; secs <= whole + 1e-9; secs += every) {
    const at = x(secs / replay.tick_secs);
    svg("line", { x1: at, x2: at, y1: HEAD - 3, y2: height, stroke: "#f1f3f5" }, gantt);
    svg("text", { x: at, y: 12, "text-anchor": secs === 0 ? "start" : at > width - 20 ? "end" : "middle" }, gantt, clock(secs / replay.tick_secs));
  }
  frames.crew.forEach(({ list }, r) => {
    const y = HEAD + r * LINE + 3;
    svg("circle", { cx: 14, cy: y + 9, r: 9, fill: "var(--crew)" }, gantt);
    svg("text", { x: 14, y: y + 13, "text-anchor": "middle", style: "fill:#fff;font-weight:700" }, gantt, r + 1);
    // Neighboring spells of one kind are one bar.
    const bars = [];
    for (const { start, n, spell: [, , , doing, escorting] } of list) {
      const kind = doing === 3 ? 4 : doing === 2 ? 0 : escorting ? 2 : doing === 1 ? 1 : 3, end = Math.min(start + n, run.ticks), last = bars[bars.length - 1];
      if (last && last.kind === kind) last.end = end; else bars.push({ kind, start, end });
    }
    for (const { kind, start, end } of bars) {
      if (end <= start) continue;
      const bar = svg("rect", { x: x(start), y, width: Math.max(x(end) - x(start) - 0.6, 0.5), height: 18, rx: 2, fill: ACTIVITIES[kind][1] }, gantt);
      svg("title", {}, bar, `responder ${r + 1}: ${ACTIVITIES[kind][0]}, ${clock(start)} to ${clock(end)}`);
    }
  });
  if (run.outcome.sweep_ticks != null) {
    const at = x(run.outcome.sweep_ticks);
    svg("path", { d: `M${at} ${HEAD - 3}V${height}`, stroke: "var(--safe)", "stroke-dasharray": "3 3" }, gantt).append(svg("title", {}, null, "last room swept"));
  }
  cursor = svg("g", {}, gantt);
  svg("line", { y1: HEAD - 4, y2: height, stroke: "var(--ember)", "stroke-width": 2 }, cursor);
  svg("path", { d: `M-5 ${HEAD - 8}H5L0 ${HEAD - 1}Z`, fill: "var(--ember)" }, cursor);
  chart = { x, width };
}
const tickAt = event => {
  const box = gantt.getBoundingClientRect(), at = (event.clientX - box.left) * chart.width / box.width;
  return Math.round(Math.max(0, Math.min(1, (at - GUTTER) / (chart.width - GUTTER))) * current().run.ticks);
};
gantt.addEventListener("pointerdown", event => {
  seek(tickAt(event));
  if (event.isTrusted) gantt.setPointerCapture(event.pointerId);
});
gantt.addEventListener("pointermove", event => { if (event.buttons & 1) seek(tickAt(event)); });

// ---- words ---------------------------------------------------------------------------------------------------------

let hovered = -1;
function showTip() {
  if (hovered < 0) { tip.style.display = "none"; return; }
  const { building, frames, run } = current(), t = Math.min(Math.floor(view.time), run.ticks), node = building.nodes[hovered], place = map.places[hovered];
  const lines = [`${node.kind}, ${node.area.toFixed(0)} m²`];
  const swept = frames.swept[hovered][t], names = frames.crew.map((_, r) => r).filter(r => swept >> r & 1).map(r => r + 1);
  if (node.sweeps) lines.push(names.length ? `swept by ${names.join(", ")}${node.sweeps > 1 ? ", needs two" : ""}` : node.sweeps > 1 ? "not swept, needs two" : "not swept");
  const percent = x => Math.round(100 * x / replay.levels) + " %";
  if (frames.fire[hovered][t]) lines.push("fire " + percent(frames.fire[hovered][t]));
  if (frames.smoke[hovered][t]) lines.push("smoke " + percent(frames.smoke[hovered][t]));
  if (frames.lost[hovered][t]) lines.push("lost");
  const here = new Map();
  frames.people.forEach((_, i) => { const p = personAt(frames, i, t); if (p.node === hovered && p.state !== OUT) { const key = MOBILITY[building.people[i]] + ", " + STATES[p.state]; here.set(key, (here.get(key) || 0) + 1); } });
  here.forEach((n, key) => lines.push(`${n} × ${key}`));
  frames.crew.forEach((_, r) => { const c = crewAt(frames, r, t); if (c.node === hovered && c.to === c.node) lines.push(`responder ${r + 1} ${DOING[c.doing]}, health ${100 - frames.harm[r][t]}`); });
  tip.textContent = "";
  html("b", {}, tip, node.name);
  lines.forEach(line => html("div", {}, tip, line));
  tip.style.display = "block";
  const box = map.picture.getBoundingClientRect(), outer = stage.getBoundingClientRect();
  const x = box.left - outer.left + (place.low[0] + place.high[0]) / 2, y = box.top - outer.top;
  tip.style.left = Math.max(4, Math.min(outer.width - tip.offsetWidth - 4, x - tip.offsetWidth / 2)) + "px";
  const above = y + place.low[1] - tip.offsetHeight - 6;
  tip.style.top = (above > 0 ? above : y + place.high[1] + 6) + "px";
}

function showFacts() {
  const { run, building } = current(), t = Math.min(Math.floor(view.time), run.ticks), n = countAt(run, building, t);
  const put = ({ number, of }, value, total) => { if (number.data !== String(value)) number.data = value; say(of, total == null ? "" : " of " + total); };
  put(timeFact, clock(view.time), clock(run.ticks));
  put(sweptFact, n.swept, n.rooms);
  put(lostFact, n.lost);
  put(outFact, n.out, n.people);
  put(deadFact, n.dead);
  put(crewFact, n.active, run.crew.length);
  deadFact.box.className = n.dead ? "bad" : "";
  for (const [{ box }, shown] of [[lostFact, replay.episodes.some(e => Object.values(e.runs).some(r => r.lost.length))], [outFact, n.people], [deadFact, n.people]]) {
    box.style.display = shown ? "" : "none";
  }
}

function drawLegend() {
  const picture = draw => { const element = svg("svg", { width: 18, height: 18, viewBox: "-9 -9 18 18" }); draw(element); return element; };
  const box = (fill, extra) => picture(s => { svg("rect", { x: -8, y: -6, width: 16, height: 12, fill, stroke: "#868e96", ...extra }, s); });
  const person = (mobility, state) => picture(s => { const [fill, stroke] = personLook(state); svg("path", { class: "person", d: personPath(mobility, 5), fill, stroke }, s); });
  const lines = [
    ["rooms", [[box("#b2f2bb"), "swept"], [box("#e0fae4"), "swept once of twice"], [box("#fd9a47"), "on fire"], [box("#868a8e"), "smoke"],
      [picture(s => { svg("rect", { x: -8, y: -6, width: 16, height: 12, fill: "#fff", stroke: "#868e96" }, s); svg("path", { d: "M-8 2L0-6M-5 6L7-6M3 6L8 1", stroke: "#22252b", "stroke-width": 2.5, opacity: .7 }, s); }), "lost: cannot be reached"]]],
    ["people", [[person(0, 0), "adult"], [person(1, 0), "child"], [person(2, 0), "limited mobility"], [person(0, 0), "unaware"], [person(0, 1), "waiting for help"], [person(0, 2), "walking out"], [person(0, 4), "led by a responder"],
      [picture(s => svg("path", { d: "M-4-4L4 4M4-4L-4 4", stroke: "#22252b", "stroke-width": 3 }, s)), "dead"]]],
    ["responders", [[picture(s => { const g = svg("g", { class: "crew" }, s); svg("circle", { class: "body", r: 7 }, g); svg("text", { y: 3.5, "font-size": 9.5 }, g, "1"); }), "on the way, or waiting"],
      [picture(s => { svg("circle", { class: "ring", r: 7.5 }, s); svg("circle", { r: 4, fill: "var(--crew)" }, s); }), "searching"],
      [picture(s => { svg("line", { class: "tether", x1: -8, x2: 3 }, s); svg("circle", { cx: 4, r: 4, fill: "#22b8cf", stroke: "#0c8599" }, s); }), "whom they lead"]]],
    ["chart", [...ACTIVITIES.map(([name, color]) => [box(color, { stroke: "none" }), name]),
      [picture(s => svg("path", { d: "M0-8V8", stroke: "var(--safe)", "stroke-dasharray": "3 3", "stroke-width": 1.5 }, s)), "last room swept"]]],
  ];
  if (Object.values(replay.episodes[0].runs).some(run => run.attention)) {
    lines.push(["attention", [[picture(s => { svg("path", { class: "think", d: "M-8 0H0", "stroke-width": 6, opacity: .8 }, s); svg("path", { class: "think", d: "M0 0H8", "stroke-width": 1.5, opacity: .4 }, s); }), "how much the place at that end heeds the other"],
      [box("#7048e833", { stroke: "#7048e8", "stroke-width": 2 }), "where the policy would go, by its probability"]]]);
  }
  for (const [name, items] of lines) {
    const line = html("div", { class: "legend" }, legends);
    html("b", {}, line, name);
    for (const [icon, text] of items) { const item = html("span", {}, line); item.append(icon, text); }
  }
}

// ---- time ----------------------------------------------------------------------------------------------------------

function show() {
  showMap();
  showThoughts();
  showFacts();
  if (hovered >= 0) showTip();
  slider.value = Math.floor(view.time);
  cursor.setAttribute("transform", `translate(${chart.x(view.time)})`);
  go.icon.setAttribute("d", view.playing ? ICONS.pause : ICONS.play);
  go.title = view.playing ? "Pause (space)" : "Play (space)";
}
// Draws anew what does not change with time.
function rebuild() {
  const { run, building } = current();
  showController();
  showEpisode();
  const end = { success: "", "all-down": ", ends with all responders down", timeout: ", ends without success" }[run.end];
  where.textContent = `${building.name}${end}`;
  slider.max = run.ticks;
  layers.textContent = "";
  (run.attention && run.attention[0] || []).forEach((_, i) => html("option", { value: i }, layers, "layer " + (i + 1)));
  layers.value = view.layer;
  thought.key = null;
  hovered = -1;
  drawMap();
  drawGantt();
  show();
}
function change(what) {
  const other = "episode" in what || "controller" in what;
  Object.assign(view, what);
  if (other) {
    view.time = Math.min(view.time, current().run.ticks);
    if ("episode" in what) { view.time = 0; view.playing = false; }
    view.decision = -1;
    rebuild();
  } else show();
}
function seek(tick) {
  view.time = Math.max(0, Math.min(tick, current().run.ticks));
  view.playing = false;
  view.decision = -1;
  show();
}
function step(by) { seek(by > 0 ? Math.floor(view.time) + by : Math.ceil(view.time) + by); }
function toggle() {
  view.playing = !view.playing;
  if (view.playing && view.time >= current().run.ticks) view.time = 0;
  before = null;
  if (view.playing) requestAnimationFrame(tick);
  show();
}
let before = null;
function advance(secs) {
  view.time = Math.min(current().run.ticks, view.time + secs * view.speed / replay.tick_secs);
  if (view.time >= current().run.ticks) view.playing = false;
  show();
}
function tick(now) {
  if (!view.playing) return;
  if (before != null) advance(Math.min(0.1, (now - before) / 1000));
  before = now;
  if (view.playing) requestAnimationFrame(tick);
}
addEventListener("keydown", event => {
  const typing = /^(SELECT|TEXTAREA)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey;
  const box = root.getBoundingClientRect();
  // Only while it can be seen: elsewhere these keys scroll the page.
  if (typing || box.bottom < 80 || box.top > innerHeight - 80) return;
  const far = event.shiftKey ? 10 : 1;
  const keys = { " ": toggle, ArrowLeft: () => step(-far), ArrowRight: () => step(far), Home: () => seek(0), End: () => seek(current().run.ticks),
                 "[": () => leapTo(decisionNow() - 1), "]": () => leapTo(decisionNow() + 1) };
  if (!(event.key in keys)) return;
  event.preventDefault();
  keys[event.key]();
});
let laid = 0;
addEventListener("resize", () => { if (root.clientWidth !== laid) { laid = root.clientWidth; rebuild(); } });

drawLegend();
laid = root.clientWidth;
// An episode in about half a minute.
{
  const secs = current().run.ticks * replay.tick_secs / 30;
  view.speed = [50, 20, 10, 5, 2].find(x => x <= secs * 1.5) || 1;
  speeds.value = view.speed;
}
rebuild();

// ---- self-test: `#selftest` drives the page as a person would ----------------------------------------------------------

if (location.hash.startsWith("#selftest")) {
  const failures = [];
  let checks = 0;
  const check = (is, expected, what) => {
    checks++;
    if (JSON.stringify(is) !== JSON.stringify(expected)) failures.push(`${what}: ${JSON.stringify(is)} instead of ${JSON.stringify(expected)}`);
  };
  const press = (key, extra) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...extra }));
  const shown = ({ number }) => Number(number.data);
  root.scrollIntoView();
  try {
    check(shown(outFact), 0, "out at the alarm");
    go.click();
    check(view.playing, true, "playing after a click");
    const early = view.time;
    advance(0.25);
    check(view.time > early, true, "time goes on");
    press(" ");
    check(view.playing, false, "paused by the space bar");
    seek(3);
    press("ArrowRight");
    check(view.time, 4, "a step on");
    press("ArrowLeft");
    press("ArrowLeft");
    check(view.time, 2, "two steps back");
    press("ArrowRight", { shiftKey: true });
    check(view.time, Math.min(12, current().run.ticks), "ten steps on");
    slider.value = 1;
    slider.dispatchEvent(new Event("input"));
    check(view.time, 1, "the slider");
    const box = gantt.getBoundingClientRect(), half = current().run.ticks / 2;
    const at = box.left + box.width * chart.x(half) / chart.width;
    gantt.dispatchEvent(new PointerEvent("pointerdown", { clientX: at, clientY: box.top + 20, bubbles: true }));
    check(Math.abs(view.time - half) <= 1, true, "a click into the chart");
    top1.querySelectorAll(".choice").forEach(group => check(group.querySelectorAll("[aria-pressed=true]").length, 1, "one choice"));
    replay.episodes.forEach((episode, e) => replay.controllers.forEach(controller => {
      change({ episode: e, controller });
      const name = `${controller} in episode ${e + 1}`, { run, building, frames } = current(), { outcome } = run;
      press("End");
      check(view.time, outcome.ticks, name + ": ticks");
      const open = shown(sweptFact) + shown(lostFact) < building.nodes.filter(node => node.sweeps).length;
      check(shown(outFact), outcome.rescued, name + ": people out");
      check(shown(deadFact), outcome.dead, name + ": dead");
      check(open, outcome.sweep_ticks == null, name + ": rooms left");
      if (outcome.sweep_ticks) {
        const left = t => { const n = countAt(run, building, t); return n.rooms - n.swept - n.lost; };
        check([left(outcome.sweep_ticks), left(outcome.sweep_ticks - 1) > 0], [0, true], name + ": the last sweep");
      }
      // Everybody is on paper at every moment, halves of ticks too.
      let off = 0;
      const { width, height } = map.picture.getBoundingClientRect();
      for (let t = 0; t <= run.ticks; t += Math.max(0.5, run.ticks / 40)) {
        view.time = t;
        showMap();
        for (const { mark } of [...map.people, ...map.crew.map(actor => ({ mark: actor.group }))]) {
          const [x, y] = mark.getAttribute("transform").match(/-?[\d.]+/g).map(Number);
          if (!(x >= -12 && y >= -12 && x <= width + 12 && y <= height + 12)) off++;
        }
      }
      check(off, 0, name + ": off the map");
      if (run.attention) {
        change({ think: true });
        leapTo(0);
        run.attention.forEach((layersOf, i) => layersOf.forEach(digits => check(digits.length, 2 * building.ways.length + building.nodes.length, name + ": digits of decision " + i)));
        frames.decisions.forEach((decision, i) => {
          const likely = run.probabilities[i], sum = likely.reduce((all, p, k) => k % 2 ? all + p : all, 0);
          const best = likely.reduce((top, p, k) => k % 2 && p > likely[2 * top + 1] ? (k - 1) / 2 : top, 0);
          check(sum > 80 && sum < 102, true, name + ": probabilities of decision " + i);
          // Nearly alike options may come in either order.
          const own = likely[likely.findIndex((node, k) => k % 2 === 0 && node === decision.node) + 1];
          check(likely[2 * best + 1] - own <= 0.11, true, name + ": the likeliest option of decision " + i);
        });
        check(map.ways.some(way => way.think.some(half => half.getAttribute("visibility") === "visible")), true, name + ": attention is drawn");
        change({ think: false });
        check(map.ways.some(way => way.think.some(half => half.getAttribute("visibility") === "visible")), false, name + ": attention is gone");
      }
    }));
    rebuild();
  } catch (error) {
    failures.push(String(error && error.stack || error));
  }
  document.title = failures.length ? "FAIL" : "PASS";
  html("pre", { id: "selftest" }, document.body, `${document.title} ${checks} checks\n${failures.slice(0, 20).join("\n")}`);
} else {
  // A link may name the moment: #replay,greedy,2,45 is second 45 of the second episode; `think` shows attention.
  const [, controller, episode, secs, think] = location.hash.split(",");
  if (replay.controllers.includes(controller)) {
    change({ controller, episode: Math.max(0, Math.min(replay.episodes.length - 1, (Number(episode) || 1) - 1)) });
    change({ think: think === "think" });
    seek(Math.round((Number(secs) || 0) / replay.tick_secs));
  }
}
