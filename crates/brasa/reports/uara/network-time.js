
// ---- time ----------------------------------------------------------------------------------------------------------

const controls = html("div", { class: "row" }, timeBox), play = html("div", { class: "play" }, controls);
const ICONS = { start: "M3 3h2v10H3zM14 3v10L6 8z", back: "M12 3v10L4 8z", play: "M4 2v12l10-6z", pause: "M4 2h3v12H4zM9 2h3v12H9z", next: "M4 3v10l8-5z", end: "M11 3h2v10h-2zM2 3v10l8-5z" };
function button(icon, label, action, style = "") {
  const made = html("button", { type: "button", title: label, "aria-label": label, class: style }, play);
  made.icon = svg("path", { d: ICONS[icon] }, svg("svg", { width: 16, height: 16, viewBox: "0 0 16 16", "aria-hidden": true }, made));
  made.onclick = action;
  return made;
}
button("start", "To the first step (Home)", () => seek(0));
button("back", "One step back (←)", () => seek(view.moment - 1));
const go = button("play", "Play (space)", () => toggle(), "go");
button("next", "One step on (→)", () => seek(view.moment + 1));
button("end", "To the last step (End)", () => seek(Infinity));
const when = html("span", { class: "when" }, controls);
html("span", { class: "hint" }, controls, "satisfied users at each step");
const timeTools = html("span", { class: "screen" }, controls);

const GUTTER = 44, TALL = 58;
const axisBox = html("div", { class: "time" }, timeBox);
const chart = svg("svg", { role: "img", "aria-label": "Satisfied users at each step" }, axisBox);
const slider = html("input", { type: "range", min: 0, step: 1, "aria-label": "Step" }, axisBox);
slider.oninput = () => seek(Number(slider.value));
let cursor = null, across = () => 0;

// What is shown, as lines of files and as a sentence.
const share = frame => Math.round(1000 * frame.share) / 10;
function timeRows() {
  const lines = panels.map(panel => decode(episodeOf(panel)));
  const at = (frames, step) => { const found = frames.find(frame => frame.step === step); return found ? [share(found), found.rate] : ["", ""]; };
  const columns = panels.flatMap((panel, i) => { const name = names[view.controllers[i]]; return [`${name}: satisfied users, %`, `${name}: sum of rates, Mb/s`]; });
  return [["step", ...columns], ...moments().map(step => [step + 1, ...lines.flatMap(frames => at(frames, step))])];
}
const timeText = () => "Satisfied users at each step. " + panels.map((panel, i) => {
  const shares = decode(episodeOf(panel)).map(share);
  return `${names[view.controllers[i]]}: between ${Math.min(...shares)} and ${Math.max(...shares)} %, at the end ${shares[shares.length - 1]} %`;
}).join(". ") + ".";
function userRows(panel) {
  const head = ["user", "x, m", "y, m", "station", "channel", "power level", "SINR, dB", "rate, Mb/s", "satisfied"];
  return [head, ...frameOf(panel).users.map((user, i) => [i + 1, user.x, user.y, stationNames[user.station].name, user.channel + 1, user.level + 1, user.sinr, user.rate, user.satisfied ? "yes" : "no"])];
}
tools(timeTools, "satisfied users", { svg: () => paperCopy(chart), rows: timeRows });
panels.forEach((panel, i) => {
  tools(panel.tools, `map ${i + 1}`, { svg: () => paperCopy(panel.map.picture), rows: () => userRows(panel) }, "map");
  tools(panel.tools, `channels ${i + 1}`, { svg: () => paperCopy(panel.grid.picture) }, "channels");
});

// One line for each controller, over the steps of the slider.
function drawChart() {
  const steps = moments(), width = Math.max(timeBox.clientWidth - GUTTER - 8, 100), end = Math.max(steps.length - 1, 1);
  chart.textContent = "";
  set(chart, { width: width + GUTTER, height: TALL + 8, viewBox: `0 0 ${width + GUTTER} ${TALL + 8}` });
  chart.setAttribute("aria-label", timeText());
  const lines = panels.map(panel => decode(episodeOf(panel)));
  const low = Math.min(0.9, Math.floor(10 * Math.min(...lines.flat().map(frame => frame.share))) / 10);
  across = i => GUTTER + width * i / end;
  const up = share => 6 + (TALL - 6) * (1 - share) / (1 - low);
  for (const share of [1, low]) {
    svg("line", { x1: GUTTER, x2: GUTTER + width, y1: up(share), y2: up(share), stroke: "var(--line)" }, chart);
    svg("text", { x: GUTTER - 8, y: up(share) + 4, "text-anchor": "end" }, chart, `${Math.round(100 * share)} %`);
  }
  [...panels].reverse().forEach(panel => {
    const points = lines[panel.index].map(frame => [across(steps.indexOf(frame.step)), up(frame.share)]);
    if (points.length > 1) svg("path", { d: "M" + points.map(p => p.map(x => x.toFixed(1)).join(" ")).join("L"), style: `stroke:${LINES[panel.index]}` }, chart);
    const [x, y] = points[points.length - 1];
    svg("circle", { cx: x, cy: y, r: 3.5, fill: LINES[panel.index] }, chart);
    // Over before the other: as it ended.
    const rest = across(steps.length - 1);
    if (x < rest) svg("path", { d: `M${x.toFixed(1)} ${y.toFixed(1)}H${rest.toFixed(1)}`, stroke: LINES[panel.index], "stroke-dasharray": "2 5" }, chart);
  });
  cursor = svg("line", { y1: 0, y2: TALL + 8, stroke: "var(--ink)", "stroke-width": 1.5 }, chart);
}
const momentAt = event => {
  const x = event.clientX - chart.getBoundingClientRect().left, last = moments().length - 1;
  return Math.round((x - GUTTER) / (across(Math.max(last, 1)) - GUTTER) * Math.max(last, 1));
};
chart.addEventListener("pointerdown", event => seek(momentAt(event)));
chart.addEventListener("pointermove", event => { if (event.buttons & 1) seek(momentAt(event)); });

function show() {
  const steps = moments();
  panels.forEach(panel => { panel.map.show(); panel.grid.show(); showFacts(panel); showTip(panel); });
  only.checked = view.only;
  slider.value = view.moment;
  slider.setAttribute("aria-valuetext", `step ${steps[view.moment] + 1}`);
  say(when, `step ${steps[view.moment] + 1} of ${steps[steps.length - 1] + 1}`);
  set(cursor, { transform: `translate(${across(view.moment).toFixed(1)})` });
  set(go.icon, { d: view.playing ? ICONS.pause : ICONS.play });
}
// Draws anew what does not change with time.
function rebuild() {
  showEpisode();
  slider.max = moments().length - 1;
  slider.disabled = moments().length < 2;
  panels.forEach(panel => { panel.showController(); panel.map.build(); panel.grid.build(); });
  drawChart();
  show();
}
function change(what) {
  const isOther = "episode" in what || "controllers" in what;
  const steps = moments(), wasLast = view.moment >= steps.length - 1, step = steps[view.moment];
  Object.assign(view, what);
  if (!isOther) { show(); return; }
  // The same step, or the end where the end was shown.
  const others = moments(), found = others.findLastIndex(other => other <= step);
  Object.assign(view, { moment: wasLast ? others.length - 1 : Math.max(0, found), playing: false });
  rebuild();
}
function seek(moment) {
  view.playing = false;
  change({ moment: Math.max(0, Math.min(moment, moments().length - 1)) });
}
const STEP_MILLISECONDS = 200;
let timer = 0;
function toggle() {
  const last = moments().length - 1;
  clearInterval(timer);
  view.playing = !view.playing && last > 0;
  if (view.playing) {
    if (view.moment >= last) view.moment = 0;
    timer = setInterval(advance, STEP_MILLISECONDS);
  }
  show();
}
function advance() {
  const last = moments().length - 1;
  if (view.playing) change({ moment: Math.min(view.moment + 1, last), playing: view.moment + 1 < last });
  if (!view.playing) clearInterval(timer);
}
addEventListener("keydown", event => {
  const { target } = event, isSpace = event.key === " ";
  const own = /^(SELECT|TEXTAREA)$/.test(target.tagName) || isSpace && (target.tagName === "BUTTON" || target.type === "checkbox");
  const box = root.getBoundingClientRect();
  // Only while it can be seen: elsewhere these keys scroll the page.
  if (own || event.ctrlKey || event.metaKey || event.altKey || box.bottom < 80 || box.top > innerHeight - 80) return;
  const far = event.shiftKey ? 10 : 1;
  const keys = { " ": toggle, ArrowLeft: () => seek(view.moment - far), ArrowRight: () => seek(view.moment + far), Home: () => seek(0), End: () => seek(Infinity),
                 Escape: () => change({ focus: null, pinned: false }), u: () => change({ only: !view.only }),
                 "+": () => zoom(2 * view.zoom.by), "-": () => zoom(view.zoom.by / 2), 0: () => zoom(1) };
  if (!(event.key in keys)) return;
  event.preventDefault();
  keys[event.key]();
});
let laid = 0;
addEventListener("resize", () => { if (root.clientWidth !== laid) { laid = root.clientWidth; rebuild(); } });

function drawLegend() {
  const picture = draw => { const made = svg("svg", { width: 22, height: 22, viewBox: "-11 -11 22 22" }); draw(made); return made; };
  const user = (bad, style) => picture(s => {
    const group = svg("g", { class: "user" + bad, style: paint(style) }, s);
    svg("circle", { class: "ring", r: 9.5 }, group);
    svg("circle", { class: "dot", r: 6.5 }, group);
    svg("text", { y: 3, "font-size": 8 }, group, style + 1);
  });
  const station = tier => picture(s => svg("path", { class: `station tier-${tier}`, d: STATIONS[tier] }, s));
  const held = bad => picture(s => {
    const group = svg("g", { class: "held" + bad, style: paint(4) }, svg("g", { class: "grid" }, s));
    svg("rect", { x: -8, y: -6, width: 16, height: 12, rx: 2, fill: "var(--channel)", stroke: bad ? "var(--bad)" : "none", "stroke-width": 2.5 }, group);
  });
  const pair = picture(s => [-8, 0.5].forEach(x => svg("rect", { x, y: -6, width: 7.5, height: 12, rx: 2, style: paint(4), fill: "var(--channel)" }, s)));
  const lines = [["map", [...network.tiers.map((name, tier) => [station(tier), name + " station"]), [user("", 4), "satisfied user: color and number are its channel"],
                          [user(" bad", 8), "unsatisfied user"]]],
                 ["grid", [[held(""), "satisfied user, by its number"], [held(" bad"), "unsatisfied user"], [pair, "users on the same channel of the same station"]]]];
  if (network.has_edges) lines[0][1].push([picture(s => svg("circle", { class: "cell", r: 9 }, s)), "edge of a cell"]);
  for (const [name, items] of lines) {
    const line = html("div", { class: "legend" }, legends);
    html("b", {}, line, name);
    for (const [icon, text] of items) html("span", {}, line).append(icon, text);
  }
}

drawLegend();
laid = root.clientWidth;
view.moment = moments().length - 1;
rebuild();

// A link may name the moment: #network,trained,greedy,2,40 is step 40 of the second episode.
{
  const [, left, right, episode, step] = location.hash.split(",");
  if (names.includes(left)) {
    const controllers = [left, right].slice(0, panels.length).map(name => find(name, 0));
    change({ controllers, episode: Math.max(0, Math.min(firstOf.length - 1, (Number(episode) || 1) - 1)) });
    if (step) seek(moments().findLastIndex(other => other < Number(step)));
  }
}
