// ---- charts ------------------------------------------------------------------------------------------------------------

const plots = [];
const axis = { labelSize: 22, stroke: color("soft"), grid: { stroke: color("grid") }, ticks: { stroke: color("line") }, font: '12px system-ui, "DejaVu Sans", sans-serif' };
// As wide as the longest number.
const sized = (u, values) => { ruler.font = axis.font; return 16 + Math.max(24, ...(values ?? []).map(text => ruler.measureText(text ?? "").width)); };
const grouped = (u, values) => values.map(value => value == null ? "" : value.toLocaleString("en", { maximumSignificantDigits: 6 }));
const axes = (x, y) => [{ ...axis, label: x, space: 64, values: grouped }, { ...axis, label: y, size: sized, values: grouped }];

// Shapes on lines, around (0, 0): with the color they tell lines apart, and on paper without color too.
const around = (n, turn = 0, radii = [1]) => Array.from({ length: n }, (_, i) => {
  const angle = (i + turn) / n * 2 * Math.PI, r = radii[i % radii.length];
  return [r * Math.sin(angle), -r * Math.cos(angle)];
});
const SHAPES = [around(16), around(4, 0.5, [1.25]), around(3, 0, [1.4]), around(4, 0, [1.35]), around(3, 1.5, [1.4]), around(10, 0, [1.4, 0.6]),
  [[-0.4, -1.2], [0.4, -1.2], [0.4, -0.4], [1.2, -0.4], [1.2, 0.4], [0.4, 0.4], [0.4, 1.2], [-0.4, 1.2], [-0.4, 0.4], [-1.2, 0.4], [-1.2, -0.4], [-0.4, -0.4]],
  around(6, 0, [1.15])];
const shapePath = (shape, x, y, r) => "M" + SHAPES[shape % SHAPES.length].map(([a, b]) => `${(x + r * a).toFixed(2)} ${(y + r * b).toFixed(2)}`).join("L") + "Z";

const line = (label, color, extra) => Object.assign({ label, stroke: color, width: 1.5, points: { show: false } }, extra);
const FEW = 12;
// Series that the legend names; others are edges of bands.
const isNamed = series => series.class !== "bound";

// About every 90 pixels along a series, and at different places for different series. A series without a line has all its marks.
function marked(u, i) {
  const series = u.series[i], xs = u.data[0], ys = u.data[i], every = 90, offset = (i * 37) % every, chosen = [];
  if (series.shape == null) return chosen;
  if (!series.width) return [...xs.keys()].filter(k => ys[k] != null);
  let next = offset, last = -1;
  for (let k = 0; k < xs.length; k++) {
    if (ys[k] == null) continue;
    last = k;
    const x = u.valToPos(xs[k], "x");
    if (x < next) continue;
    chosen.push(k);
    next = offset + every * (Math.floor((x - offset) / every) + 1);
  }
  return chosen.length || last < 0 ? chosen : [last];
}
function drawShapes(u, i) {
  const series = u.series[i], { ctx } = u, ratio = devicePixelRatio;
  if (!series.show) return;
  ctx.save();
  ctx.fillStyle = series.stroke(u, i);
  for (const k of marked(u, i)) {
    const x = u.valToPos(u.data[0][k], "x", true), y = u.valToPos(u.data[i][k], "y", true);
    if (y < u.bbox.top - 1 || y > u.bbox.top + u.bbox.height + 1) continue;
    ctx.fill(new Path2D(shapePath(series.shape, x, y, 3.6 * ratio)));
  }
  ctx.restore();
}

// A line of the legend as it is drawn.
function swatch(series) {
  const picture = draw("svg", { width: 28, height: 14, viewBox: "0 0 28 14", "aria-hidden": true }), stroke = series.stroke.variable ?? series.stroke();
  draw("path", { d: "M1 7H27", style: `stroke:${stroke}`, "stroke-width": series.width, "stroke-dasharray": series.dash?.join(" ") }, picture);
  if (series.shape != null) draw("path", { d: shapePath(series.shape, 14, 7, 3.6), style: `fill:${stroke}` }, picture);
  return picture;
}

// What a chart shows, in a sentence.
function summaryOf(title, options, columns) {
  const [x, y] = options.axes, ends = columns[0].length ? [columns[0][0], columns[0][columns[0].length - 1]] : [];
  const at = value => options.time ? options.time.long(value) : significant(value, 6);
  const ranges = options.series.slice(1).map((series, i) => {
    const values = columns[i + 1].filter(value => value != null);
    if (!isNamed(series) || !values.length) return null;
    const low = Math.min(...values), high = Math.max(...values);
    return low === high ? `${series.label} is ${significant(low)}` : `${series.label} is between ${significant(low)} and ${significant(high)}, at the end ${significant(values[values.length - 1])}`;
  }).filter(Boolean);
  return `${title}: ${y.label}, ${ends.length ? `${x.label} from ${at(ends[0])} to ${at(ends[1])}` : "no values"}. ${ranges.join(". ")}.`;
}

// A chart with its title, a legend, buttons to save it, a summary for screen readers, and a cursor that arrow keys move. `target` is an
// element or its id. Of the options those of uPlot are passed on; `title` names the chart, `time` gives dates.
function plot(target, options, columns) {
  const parent = typeof target === "string" ? document.getElementById(target) : target;
  const title = options.title ?? options.axes[1].label, figure = make("figure", "", parent);
  const caption = make("figcaption", "", figure);
  make("strong", title, caption);
  const series = options.series.map(one => ({ ...one })), named = series.slice(1).filter(isNamed);
  named.forEach((one, i) => { if (named.length > 1 && one.shape === undefined) one.shape = i; });
  named.forEach(one => { if (typeof one.stroke === "string") { const plain = one.stroke; one.stroke = () => plain; } });
  // A few values are points: a line through one of them would not be seen.
  series.forEach((one, i) => {
    if (i && isNamed(one) && one.shape == null && columns[i].filter(value => value != null).length < FEW) one.points = { show: true, size: 6 };
  });
  const legend = make("ul", "", figure, "legend"), box = make("div", "", figure, "plot"), said = make("output", "", figure, "sr");
  const summary = make("p", summaryOf(title, { ...options, series }, columns), figure, "sr");
  summary.id = `summary-${plots.length}-${Math.random().toString(36).slice(2, 8)}`;
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-roledescription", "chart");
  box.setAttribute("aria-label", `${title}. The arrow keys read values.`);
  box.setAttribute("aria-describedby", summary.id);
  const values = new Map();
  const at = value => options.time ? options.time.long(value) : significant(value, 6);
  const show = u => {
    const { idx } = u.cursor;
    values.forEach((output, i) => {
      const text = idx == null ? "" : significant(u.data[i][idx]) || "–";
      if (output.textContent !== text) output.textContent = text;
    });
    when.textContent = idx == null ? "" : `${options.time ? "" : options.axes[0].label + " "}${at(u.data[0][idx])}`;
  };
  const when = make("span", "", null, "value");
  const hooks = { ...options.hooks, drawSeries: [drawShapes], setCursor: [show] };
  // A name that is longer than its axis is in the title alone.
  ruler.font = axis.font;
  const fits = ruler.measureText(options.axes[1].label).width < options.height - 70;
  const drawn = fits ? options.axes : [options.axes[0], { ...options.axes[1], label: undefined }];
  const u = new uPlot({ ...options, axes: drawn, title: undefined, width: box.clientWidth || 600, legend: { show: false }, scales: { x: { time: Boolean(options.time) }, ...options.scales },
    tzDate: at => uPlot.tzDate(new Date(at * 1e3), "Etc/UTC"), series, hooks }, columns, box);
  if (named.length > 1) series.forEach((one, i) => {
    if (!i || !isNamed(one)) return;
    const button = make("button", "", make("li", "", legend));
    button.type = "button";
    button.append(swatch(one), one.label);
    button.setAttribute("aria-pressed", "true");
    values.set(i, make("span", "", button, "value"));
    button.onclick = () => {
      const isShown = !u.series[i].show;
      u.setSeries(i, { show: isShown });
      button.setAttribute("aria-pressed", String(isShown));
    };
  });
  else values.set(series.findIndex((one, i) => i && isNamed(one)), make("span", "", make("li", "", legend), "value"));
  make("li", "", legend).append(when);
  const bar = tools(caption, title, { svg: () => chartSvg(u, title, options), rows: () => chartRows(u, options) });
  box.onkeydown = event => {
    const n = u.data[0].length, now = u.cursor.idx, far = event.shiftKey ? 10 : 1;
    const to = { ArrowRight: now == null ? 0 : now + far, ArrowLeft: now == null ? n - 1 : now - far, Home: 0, End: n - 1 }[event.key];
    if (to === undefined || !n || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const k = Math.max(0, Math.min(n - 1, to));
    u.setCursor({ left: u.valToPos(u.data[0][k], "x"), top: 10 });
    said.textContent = [when.textContent, ...[...values].filter(([i]) => u.series[i].show).map(([i, output]) => `${series[i].label} ${output.textContent}`)].join(", ");
  };
  const chart = { u, figure, bar, title, options, destroy() { sizes.unobserve(box); u.destroy(); saved.splice(saved.findIndex(one => one.box === bar), 1); plots.splice(plots.indexOf(chart), 1); } };
  box.chart = u;
  plots.push(chart);
  sizes.observe(box);
  return chart;
}
const sizes = new ResizeObserver(entries => entries.forEach(({ target }) => {
  const { chart } = target, width = target.clientWidth;
  if (chart && width && width !== chart.width) chart.setSize({ width, height: chart.height });
}));
darkness.addEventListener("change", () => plots.forEach(({ u }) => u.redraw()));

// ---- dates -------------------------------------------------------------------------------------------------------------

// A time axis from the date of the first step: `at(hours)` gives seconds, `axis` the axis of a chart. Without a date hours are counted.
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
function timeFrom(start) {
  if (!start) return null;
  // Dates without a year are those of a common year.
  const { year, month, day, hour, weekday } = start, first = Date.UTC(year ?? 2001, month - 1, day) / 1000;
  const parts = seconds => {
    const date = new Date(seconds * 1000), days = Math.floor((seconds - first) / 86400);
    return { month: MONTHS[date.getUTCMonth()], day: date.getUTCDate(), year: date.getUTCFullYear(), minutes: date.getUTCHours() * 60 + date.getUTCMinutes(),
      weekday: weekday == null ? null : DAYS[(((weekday + days) % 7) + 7) % 7] };
  };
  const clock = minutes => `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}`;
  const date = ({ weekday, month, day }, isLong = true) => `${isLong && weekday ? weekday + " " : ""}${month} ${day}`;
  return {
    at: hours => first + 3600 * (hour + hours),
    date: seconds => date(parts(seconds)) + (year == null ? "" : `, ${parts(seconds).year}`),
    long: seconds => `${date(parts(seconds))}${year == null ? "" : " " + parts(seconds).year}, ${clock(parts(seconds).minutes)}`,
    axis: (label, options) => ({ ...axis, label, space: 76, ...options,
      values: (u, splits, index, space, step) => splits.map(seconds => {
        const now = parts(seconds);
        return step >= 28 * 86400 ? now.month : now.minutes === 0 ? date(now) : clock(now.minutes);
      }) }),
  };
}
