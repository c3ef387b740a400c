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
    svg("line", { x1: at, x2: at, y1: HEAD - 3, y2: height, stroke: "var(--grid)" }, gantt);
    svg("text", { x: at, y: 12, "text-anchor": secs === 0 ? "start" : at > width - 20 ? "end" : "middle" }, gantt, clock(secs / replay.tick_secs));
  }
  frames.crew.forEach(({ list }, r) => {
    const y = HEAD + r * LINE + 3;
    svg("circle", { cx: 14, cy: y + 9, r: 9, fill: "var(--crew)" }, gantt);
    svg("text", { x: 14, y: y + 13, "text-anchor": "middle", style: "fill:var(--on-crew);font-weight:700" }, gantt, r + 1);
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
  put(tickFact, t, run.ticks);
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

// Where everybody is now, and what every responder did when, as lines of a file.
function placesNow() {
  const { building, frames, run } = current(), t = Math.min(Math.floor(view.time), run.ticks), name = node => building.nodes[node]?.name;
  const crew = frames.crew.map((_, r) => { const c = crewAt(frames, r, t); return [`responder ${r + 1}`, DOING[c.doing], name(c.node), name(c.to)]; });
  const people = frames.people.map((_, i) => { const p = personAt(frames, i, t); return [`person ${i + 1}, ${MOBILITY[building.people[i]]}`, STATES[p.state], name(p.node), name(p.to)]; });
  return [["who", "state", "place", "to", "tick", "seconds"], ...[...crew, ...people].map(row => [...row, t, t * replay.tick_secs])];
}
function activities() {
  const { frames, run, building } = current();
  return [["responder", "activity", "place", "first tick", "last tick", "from, s", "to, s"], ...frames.crew.flatMap(({ list }, r) => list.map(({ start, n, spell: [, node, , doing] }) => {
    const end = Math.min(start + n, run.ticks);
    return [r + 1, DOING[doing], building.nodes[node].name, start, end, start * replay.tick_secs, end * replay.tick_secs];
  }))];
}
// The state of the plan in a sentence, for screen readers.
function planText() {
  const { run, building } = current(), t = Math.min(Math.floor(view.time), run.ticks), n = countAt(run, building, t);
  return `Plan of ${building.name}, ${clock(t)} min after the alarm (tick ${t} of ${run.ticks}): ${n.swept} of ${n.rooms} rooms swept, ${n.lost} lost, ${n.out} of ${n.people} people out, ${n.dead} dead, ${n.active} responders active.`;
}

function drawLegend() {
  const picture = draw => { const element = svg("svg", { width: 18, height: 18, viewBox: "-9 -9 18 18" }); draw(element); return element; };
  const box = (fill, extra) => picture(s => { svg("rect", { x: -8, y: -6, width: 16, height: 12, fill, stroke: "var(--mid)", ...extra }, s); });
  const person = (mobility, state) => picture(s => { const [fill, stroke] = personLook(state); svg("path", { class: "person", d: personPath(mobility, 5), fill, stroke }, s); });
  const lines = [
    ["rooms", [[box("var(--swept)"), "swept"], [box("var(--swept)", { "fill-opacity": 0.4 }), "swept once of twice"], [box("var(--flame)"), "on fire"], [box("var(--smoke)", { "fill-opacity": 0.62 }), "smoke"],
      [picture(s => { svg("rect", { x: -8, y: -6, width: 16, height: 12, fill: "var(--room)", stroke: "var(--mid)" }, s); svg("path", { d: "M-8 2L0-6M-5 6L7-6M3 6L8 1", stroke: "var(--ink)", "stroke-width": 2.5, opacity: .7 }, s); }), "lost: cannot be reached"]]],
    ["people", [[person(0, 0), "adult"], [person(1, 0), "child"], [person(2, 0), "limited mobility"], [person(0, 0), "unaware"], [person(0, 1), "waiting for help"], [person(0, 2), "walking out"], [person(0, 4), "led by a responder"],
      [picture(s => svg("path", { d: "M-4-4L4 4M4-4L-4 4", stroke: "var(--ink)", "stroke-width": 3 }, s)), "dead"]]],
    ["responders", [[picture(s => { const g = svg("g", { class: "crew" }, s); svg("circle", { class: "body", r: 7 }, g); svg("text", { y: 3.5, "font-size": 9.5 }, g, "1"); }), "on the way, or waiting"],
      [picture(s => { svg("circle", { class: "ring", r: 7.5 }, s); svg("circle", { r: 4, fill: "var(--crew)" }, s); }), "searching"],
      [picture(s => { svg("line", { class: "tether", x1: -8, x2: 3 }, s); svg("circle", { cx: 4, r: 4, fill: "var(--c5)", stroke: "var(--ink)" }, s); }), "whom they lead"]]],
    ["chart", [...ACTIVITIES.map(([name, color]) => [box(color, { stroke: "none" }), name]),
      [picture(s => svg("path", { d: "M0-8V8", stroke: "var(--safe)", "stroke-dasharray": "3 3", "stroke-width": 1.5 }, s)), "last room swept"]]],
  ];
  if (Object.values(replay.episodes[0].runs).some(run => run.attention)) {
    lines.push(["attention", [[picture(s => { svg("path", { class: "think", d: "M-8 0H0", "stroke-width": 6, opacity: .8 }, s); svg("path", { class: "think", d: "M0 0H8", "stroke-width": 1.5, opacity: .4 }, s); }), "how much the place at that end heeds the other"],
      [box("var(--think)", { "fill-opacity": 0.2, stroke: "var(--think)", "stroke-width": 2 }), "where the policy would go, by its probability"]]]);
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
  slider.setAttribute("aria-valuetext", `${clock(view.time)} min, tick ${Math.floor(view.time)}`);
  if (!view.playing) set(map.picture, { "aria-label": planText() });
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
  where.textContent = `${building.name}${end}; a tick is ${replay.tick_secs} s`;
  gantt.setAttribute("aria-label", `What each responder did: ${current().frames.crew.length} responders, ${run.ticks} ticks, ${clock(run.ticks)} min`);
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
  const { target } = event, isSpace = event.key === " ";
  const typing = /^(SELECT|TEXTAREA)$/.test(target.tagName) || isSpace && (target.tagName === "BUTTON" || target.type === "checkbox")
    || event.ctrlKey || event.metaKey || event.altKey;
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
tools(planTools, "plan", { svg: () => paperCopy(map.picture), rows: placesNow }, "plan");
tools(html("div", { class: "screen" }, root), "activities", { svg: () => paperCopy(gantt), rows: activities }, "activities");
laid = root.clientWidth;
// An episode in about half a minute.
{
  const secs = current().run.ticks * replay.tick_secs / 30;
  view.speed = [50, 20, 10, 5, 2].find(x => x <= secs * 1.5) || 1;
  speeds.value = view.speed;
}
rebuild();

// A link may name the moment: #replay,greedy,2,45 is second 45 of the second episode; `think` shows attention.
{
  const [, controller, episode, secs, think] = location.hash.split(",");
  if (replay.controllers.includes(controller)) {
    change({ controller, episode: Math.max(0, Math.min(replay.episodes.length - 1, (Number(episode) || 1) - 1)) });
    change({ think: think === "think" });
    seek(Math.round((Number(secs) || 0) / replay.tick_secs));
  }
}
