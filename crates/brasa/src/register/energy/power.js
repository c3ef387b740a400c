// Power flows of the policy beside one baseline, which the reader chooses.
const power = data.power, section = document.getElementById("power");
const policy = power.episodes.find(episode => episode.is_policy);
const others = power.episodes.filter(episode => !episode.is_policy);
const HOURS_OF_DAY = 24, isLong = power.n_steps * power.step_hours > 14 * HOURS_OF_DAY;
make("h2", "Power flows", section);
const bar = make("p", "", section, "row"), choice = make("label", "Trained policy beside ", bar), select = make("select", "", choice);
others.forEach(({ name }) => { const option = make("option", name, select); option.value = name; });
select.value = power.reference;
make("span", "Battery power is positive when charging, grid power negative when exporting.", bar);
const content = make("div", "", section);
let drawn = [];
const SMALL = 3, clock = hours => `${Math.floor(hours % 24)}:${String(Math.round(hours * 60 % 60)).padStart(2, "0")}`;

function place(parent) {
  const target = make("div", "", parent, "plots");
  target.id = `power-${drawn.length}-${parent.children.length}`;
  return target.id;
}
function chart(parent, options, columns) {
  const target = place(parent);
  plot(target, options, columns);
  drawn.push(plots[plots.length - 1]);
}

function week(parent, pair) {
  const first = power.first_step * power.step_hours, n = policy.grid.length;
  make("h3", isLong ? "The week of the largest import" : "The episode", parent);
  make("p", isLong ? `Hours ${first.toLocaleString("en")} to ${(first + n * power.step_hours).toLocaleString("en")} of the episode: the week in which ${power.reference} imports most.` : "", parent);
  const hours = Array.from({ length: n }, (_, i) => i * power.step_hours);
  const all = pair.flatMap(e => [...e.grid, ...e.load, ...e.pv, ...e.battery, ...e.ev]);
  const span = [Math.min(...all), Math.max(...all)], pad = 0.05 * (span[1] - span[0]);
  const sync = uPlot.sync("power"), x = isLong ? "hour of the week" : "hour";
  for (const e of pair) {
    const series = [{ label: "hour" }], columns = [hours];
    const add = (values, ...how) => values.some(v => v) && (series.push(line(...how)), columns.push(values));
    add(e.load, "load", "#495057");
    add(e.pv, "PV", "#f59f00", { fill: "#f59f0018" });
    add(e.battery, "battery", "#1c7ed6");
    add(e.ev, "vehicles", "#9c36b5");
    add(e.grid, "grid", "#d9480f", { width: 2 });
    if (power.grid_limit != null && power.grid_limit < 1.5 * span[1])
      add(hours.map(() => power.grid_limit), "limit of the grid", "#868e96", { dash: [7, 4] });
    chart(parent, { height: 250, title: e.is_policy ? "trained" : e.name, cursor: { sync: { key: sync.key } },
      scales: { x: { time: false }, y: { range: [span[0] - pad, span[1] + pad] } }, axes: axes(x, "kW"), series }, columns);
  }
  if (pair.some(e => e.soc.some(v => v)))
    chart(parent, { height: 150, title: "state of charge of the battery", cursor: { sync: { key: sync.key } },
      scales: { x: { time: false }, y: { range: [0, 1] } }, axes: axes(x, "share"),
      series: [{ label: "hour" }, line(pair[0].name, "#adb5bd"), line("trained", "#1c7ed6", { width: 2 })] },
      [hours, pair[0].soc, pair[1].soc]);
}

function year(parent, pair) {
  if (!isLong) return;
  make("h3", "Every hour of the episode", parent);
  make("p", "A column is a day, a row an hour of the day.", parent);
  const maps = [["grid_by_hour", "power from the grid", -power.grid_peak, power.grid_peak, "kW"]];
  if (pair.some(e => e.soc.some(v => v))) maps.push(["soc_by_hour", "state of charge of the battery", 0, 1, ""]);
  for (const [field, what, low, high, unit] of maps) for (const e of pair) {
    const codes = decoded(e[field]), days = Math.ceil(codes.length / HOURS_OF_DAY);
    heat(parent, { title: `${what}, ${e.is_policy ? "trained" : e.name}`, codes, rows: HOURS_OF_DAY, columns: days, low, high, unit,
      at: (row, column) => column * HOURS_OF_DAY + row, say: (row, column) => `day ${column + 1}, ${row}:00`,
      side: ["0:00", "12:00", "24:00"], foot: ["day 1", `day ${days}`], height: SMALL * HOURS_OF_DAY });
  }
}

function duration(parent, pair) {
  make("h3", "Load duration", parent);
  make("p", "The share of time with at least this power.", parent);
  const both = make("div", "", parent, "pair");
  const curves = [["grid_duration", "from the grid", power.grid_limit]];
  if (pair.some(e => e.ev.some(v => v))) curves.push(["ev_duration", "of all chargers", power.ev_limit]);
  for (const [field, what, limit] of curves) {
    const n = pair[0][field].length, shares = Array.from({ length: n }, (_, i) => 100 * i / Math.max(n - 1, 1));
    const most = Math.max(...pair.flatMap(e => e[field])), isNear = limit != null && limit < 1.5 * most;
    const series = [{ label: "% of time" }, line(pair[0].name, "#868e96"), line("trained", "#d9480f", { width: 2 })];
    const columns = [shares, pair[0][field], pair[1][field]];
    if (isNear) { series.push(line("limit", "#e03131", { dash: [7, 4] })); columns.push(shares.map(() => limit)); }
    const cell = make("div", "", both);
    chart(cell, { height: 220, title: what, scales: { x: { time: false } }, axes: axes("% of time", "kW"), series }, columns);
  }
}

function charging(parent, pair) {
  if (!power.sockets.length || !pair.some(e => e.at_sockets.length)) return;
  make("h3", "Who charged when", parent);
  make("p", "A row is a socket. Gray: a vehicle is there and does not charge.", parent);
  const n = power.sockets.length, steps = policy.grid.length;
  for (const e of pair)
    heat(parent, { title: e.is_policy ? "trained" : e.name, codes: decoded(e.at_sockets), rows: n, columns: steps,
      low: -power.socket_peak, high: power.socket_peak, unit: "kW", present: true, at: (row, column) => column * n + row,
      say: (row, column) => `${power.sockets[row]}, hour ${Math.floor(column * power.step_hours)} (${clock((power.first_step + column) * power.step_hours)})`,
      side: [power.sockets[0], power.sockets[n - 1]], foot: ["hour 0", `hour ${Math.round(steps * power.step_hours)}`],
      height: Math.max(SMALL, Math.min(16, Math.floor(320 / n))) * n });
}

function draw() {
  drawn.forEach(chart => { chart.destroy(); plots.splice(plots.indexOf(chart), 1); });
  drawn = [];
  content.replaceChildren();
  const pair = [others.find(({ name }) => name === select.value) ?? others[0], policy];
  [week, year, duration, charging].forEach(part => part(content, pair));
}
select.onchange = draw;
draw();
