// Power flows of the policy and of one baseline, which the reader chooses.
const power = data.power, section = document.getElementById("power");
const policy = power.episodes.find(episode => episode.is_policy);
const others = power.episodes.filter(episode => !episode.is_policy);
const HOURS_OF_DAY = 24, HOURS_OF_WEEK = 168, isLong = power.n_steps * power.step_hours > 14 * HOURS_OF_DAY;
const time = timeFrom(power.start), firstHour = power.first_step * power.step_hours, shownHours = power.grid_steps * power.step_hours;
// A time on the axis of a chart: seconds where dates are known, or else hours since the first one shown.
const onAxis = hours => time ? time.at(firstHour + hours) : hours;
const span = hours => Math.abs(hours - HOURS_OF_WEEK) < 1e-9 ? "week" : hours === HOURS_OF_DAY ? "day" : `${significant(hours)} hours`;
const clock = hours => `${Math.floor(hours % HOURS_OF_DAY)}:${String(Math.round(hours * 60 % 60)).padStart(2, "0")}`;
// The time of day at a number of hours after the first step of the episode.
const begin = power.start?.hour ?? 0;
const dateOf = hours => time ? time.date(time.at(hours)) : `day ${Math.floor(hours / HOURS_OF_DAY) + 1}`;
make("h2", "Power flows", section);
const bar = make("p", "", section, "row"), choice = make("label", "Trained policy and ", bar), select = make("select", "", choice);
others.forEach(({ name }) => { const option = make("option", name, select); option.value = name; });
select.value = power.reference;
make("span", "Battery power is positive when charging. Grid power is negative when exporting.", bar);
const content = make("div", "", section);
let drawn = [];
const SMALL = 3, title = e => e.is_policy ? "trained" : e.name;
const chart = (parent, options, columns) => drawn.push(plot(parent, options, columns));
const timeAxes = y => [time ? time.axis("date") : axes("hour", y)[0], axes("", y)[1]];

function week(parent, pair) {
  make("h3", isLong ? `The ${span(shownHours)} with the largest import` : `The episode: one ${span(shownHours)}`.replace(/one (?=\d)/, ""), parent);
  const ends = time ? ` from ${time.long(onAxis(0))} to ${time.long(onAxis(shownHours))}` : "";
  if (isLong) make("p", `The ${span(shownHours)} in which ${power.reference} imports most${ends || `, from hour ${significant(firstHour, 6)} of the episode`}.`, parent);
  const hours = Array.from({ length: power.grid_steps }, (_, i) => i * power.step_hours), xs = hours.map(onAxis);
  const all = pair.flatMap(e => [...e.grid, ...e.load, ...e.pv, ...e.battery, ...e.ev]);
  const range = [Math.min(...all), Math.max(...all)], pad = 0.05 * (range[1] - range[0]);
  const sync = uPlot.sync("power"), charts = make("div", "", parent, "charts");
  for (const e of pair) {
    const series = [{}], columns = [xs];
    const add = (values, ...how) => values.some(v => v) && (series.push(line(...how)), columns.push(values));
    add(e.load, "load", color("c7"), { shape: 3 });
    add(e.pv, "PV", color("c4"), { fill: (...given) => color("c4")(...given) + "20", shape: 2 });
    add(e.battery, "battery", color("c1"), { shape: 1 });
    add(e.ev, "vehicles", color("c2"), { shape: 5 });
    add(e.grid, "grid", color("c0"), { width: 2, shape: 0 });
    if (power.grid_limit != null && power.grid_limit < 1.5 * range[1])
      add(xs.map(() => power.grid_limit), "limit of the grid", color("soft"), { dash: [7, 4], shape: null });
    chart(charts, { height: 250, title: `Power, ${title(e)}`, cursor: { sync: { key: sync.key } }, time,
      scales: { x: { time: Boolean(time) }, y: { range: [range[0] - pad, range[1] + pad] } }, axes: timeAxes("kW"), series }, columns);
  }
  if (pair.some(e => e.soc.some(v => v)))
    chart(charts, { height: 150, title: "State of charge of the battery", cursor: { sync: { key: sync.key } }, time,
      scales: { x: { time: Boolean(time) }, y: { range: [0, 1] } }, axes: timeAxes("share"),
      series: [{}, line(pair[0].name, color("soft")), line("trained", color("c1"), { width: 2 })] },
      [xs, pair[0].soc, pair[1].soc]);
}

function year(parent, pair) {
  if (!isLong) return;
  make("h3", "Every hour of the episode", parent);
  make("p", "A column is a day, a row an hour of the day.", parent);
  const maps = [["grid_by_hour", "Power from the grid", -power.grid_peak, power.grid_peak, "kW"]];
  if (pair.some(e => e.soc.some(v => v))) maps.push(["soc_by_hour", "State of charge of the battery", 0, 1, ""]);
  const charts = make("div", "", parent, "charts");
  // Columns begin at midnight.
  const before = Math.floor(begin);
  for (const [field, what, low, high, unit] of maps) for (const e of pair) {
    const codes = decoded(e[field]), days = Math.ceil((before + codes.length) / HOURS_OF_DAY), day = column => column * HOURS_OF_DAY - begin;
    const quarter = i => dateOf(Math.max(0, day(Math.round(i * (days - 1) / 4))));
    drawn.push(heat(charts, { title: `${what}, ${title(e)}`, codes, rows: HOURS_OF_DAY, columns: days, low, high, unit, none: "no value",
      at: (row, column) => column * HOURS_OF_DAY + row - before, say: (row, column) => `${dateOf(Math.max(0, day(column)))}, ${row}:00`,
      rowName: row => `${row}:00`, columnName: column => dateOf(Math.max(0, day(column))),
      side: ["0:00", "12:00", "24:00"], foot: [0, 1, 2, 3, 4].slice(0, days > 30 ? 5 : 1).map(quarter), height: SMALL * HOURS_OF_DAY }));
  }
}

function duration(parent, pair) {
  make("h3", "Load duration", parent);
  make("p", "The share of time with at least this power.", parent);
  const both = make("div", "", parent, "pair");
  const curves = [["grid_duration", "Power from the grid", power.grid_limit]];
  if (pair.some(e => e.ev.some(v => v))) curves.push(["ev_duration", "Power of all chargers", power.ev_limit]);
  for (const [field, what, limit] of curves) {
    const n = pair[0][field].length, shares = Array.from({ length: n }, (_, i) => 100 * i / Math.max(n - 1, 1));
    const most = Math.max(...pair.flatMap(e => e[field])), isNear = limit != null && limit < 1.5 * most;
    const series = [{}, line(pair[0].name, color("soft")), line("trained", color("c0"), { width: 2 })];
    const columns = [shares, pair[0][field], pair[1][field]];
    if (isNear) { series.push(line("limit", color("bad"), { dash: [7, 4], shape: null })); columns.push(shares.map(() => limit)); }
    const cell = make("div", "", both);
    chart(cell, { height: 220, title: what, scales: { x: { time: false } }, axes: axes("% of time", "kW"), series }, columns);
  }
}

function charging(parent, pair) {
  if (!power.sockets.length || !pair.some(e => e.at_sockets.length)) return;
  make("h3", "Who charged when", parent);
  make("p", "A row is a socket. Gray: a vehicle is there and does not charge.", parent);
  const n = power.sockets.length, steps = power.grid_steps, charts = make("div", "", parent, "charts");
  const when = hours => time ? time.long(onAxis(hours)) : `hour ${Math.floor(hours)} (${clock(firstHour + hours)})`;
  const foot = hours => time ? time.long(onAxis(hours)) : `hour ${Math.round(hours)}`;
  for (const e of pair)
    drawn.push(heat(charts, { title: `Sockets, ${title(e)}`, codes: decoded(e.at_sockets), rows: n, columns: steps, none: "no vehicle",
      low: -power.socket_peak, high: power.socket_peak, unit: "kW", present: true, at: (row, column) => column * n + row,
      say: (row, column) => `${power.sockets[row]}, ${when(column * power.step_hours)}`,
      rowName: row => power.sockets[row], columnName: column => when(column * power.step_hours),
      side: n > 1 ? [power.sockets[0], power.sockets[n - 1]] : [power.sockets[0]], foot: [foot(0), foot(steps * power.step_hours)],
      height: Math.max(SMALL, Math.min(16, Math.floor(320 / n))) * n }));
}

function drawAll() {
  drawn.forEach(one => one.destroy());
  drawn = [];
  content.replaceChildren();
  const pair = [others.find(({ name }) => name === select.value) ?? others[0], policy];
  [week, year, duration, charging].forEach(part => part(content, pair));
}
select.onchange = drawAll;
drawAll();
