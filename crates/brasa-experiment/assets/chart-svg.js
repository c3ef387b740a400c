// ---- charts as files -----------------------------------------------------------------------------------------------------

// The lines of a CSV file of a chart.
function chartRows(u, options) {
  const names = u.series.slice(1).map(series => series.label), at = value => options.time ? options.time.long(value) : value;
  return [[options.axes[0].label, ...names], ...u.data[0].map((x, k) => [at(x), ...u.data.slice(1).map(column => column[k])])];
}

// A chart as a picture for a paper, by day, with what is switched on.
function chartSvg(u, title, options) {
  const named = u.series.map((series, i) => ({ series, i })).filter(({ series, i }) => i && isNamed(series) && series.show);
  // The legend in as many lines as it needs.
  const entries = [];
  let right = 0, row = 0;
  if (named.length > 1) for (const { series } of named) {
    const width = 30 + textWidth(series.label);
    if (right + width > PAPER_PT && right > 0) { right = 0; row++; }
    entries.push({ series, x: right, y: 14 + 12 * row });
    right += width + 10;
  }
  const top = entries.length ? 26 + 12 * row : 16, high = Math.max(110, Math.min(230, PAPER_PT * u.height / u.width)), low = top + high;
  const [xs, ys] = u.axes, labels = axis => axis._values ?? [], left = 18 + Math.max(...labels(ys).map(text => textWidth(text ?? "")), 10);
  const edge = PAPER_PT - 10, picture = paper(low + 30), { min, max } = u.scales.x, y = u.scales.y;
  const across = value => left + (edge - left) * (max > min ? (value - min) / (max - min) : 0.5);
  const up = value => low - high * (y.max > y.min ? (value - y.min) / (y.max - y.min) : 0.5);
  const text = (x, y, content, more) => draw("text", { x: x.toFixed(1), y: y.toFixed(1), fill: "#22252b", ...more }, picture, content);
  draw("title", {}, picture, title);
  const clip = `clip-${Math.random().toString(36).slice(2, 8)}`;
  draw("rect", { x: left, y: top, width: edge - left, height: high }, draw("clipPath", { id: clip }, picture));
  (xs._splits ?? []).forEach((value, i) => {
    const x = across(value);
    if (x < left - 0.5 || x > edge + 0.5 || !labels(xs)[i]) return;
    draw("path", { d: `M${x.toFixed(1)} ${top}V${low.toFixed(1)}`, stroke: "#e3e5e8", "stroke-width": 0.5 }, picture);
    text(Math.min(x, PAPER_PT - textWidth(labels(xs)[i]) / 2), low + 11, labels(xs)[i], { "text-anchor": "middle" });
  });
  (ys._splits ?? []).forEach((value, i) => {
    const at = up(value);
    if (at < top - 0.5 || at > low + 0.5 || !labels(ys)[i]) return;
    draw("path", { d: `M${left.toFixed(1)} ${at.toFixed(1)}H${edge}`, stroke: "#e3e5e8", "stroke-width": 0.5 }, picture);
    text(left - 4, at + 3, labels(ys)[i], { "text-anchor": "end" });
  });
  draw("path", { d: `M${left.toFixed(1)} ${top}V${low.toFixed(1)}H${edge}`, fill: "none", stroke: "#5b626d", "stroke-width": 0.6 }, picture);
  text((left + edge) / 2, low + 24, options.axes[0].label, { "text-anchor": "middle" });
  if (textWidth(options.axes[1].label) < high + 20) text(0, 0, options.axes[1].label, { "text-anchor": "middle", transform: `translate(8 ${(top + high / 2).toFixed(1)}) rotate(-90)` });
  const lines = draw("g", { "clip-path": `url(#${clip})` }, picture);
  const point = (i, k) => `${across(u.data[0][k]).toFixed(1)} ${up(u.data[i][k]).toFixed(1)}`;
  // Bands between two series.
  for (const { series: [a, b], fill } of u.bands ?? []) {
    if (!u.series[a].show) continue;
    const known = [...u.data[0].keys()].filter(k => u.data[a][k] != null && u.data[b][k] != null);
    if (known.length > 1) draw("path", { d: "M" + [...known.map(k => point(a, k)), ...known.reverse().map(k => point(b, k))].join("L") + "Z", fill: onPaper(fill), stroke: "none" }, lines);
  }
  for (const { series, i } of named) {
    const stroke = onPaper(series.stroke), parts = [];
    let isOpen = false;
    u.data[0].forEach((_, k) => {
      if (u.data[i][k] == null) { if (!series.spanGaps) isOpen = false; return; }
      parts.push((isOpen ? "L" : "M") + point(i, k));
      isOpen = true;
    });
    if (!parts.length) continue;
    draw("path", { d: parts.join(""), fill: "none", stroke, "stroke-width": 0.7 * series.width, "stroke-dasharray": series.dash?.map(x => x / 2).join(" "), "stroke-linejoin": "round" }, lines);
    for (const k of marked(u, i)) draw("path", { d: shapePath(series.shape, across(u.data[0][k]), up(u.data[i][k]), 2.2), fill: stroke }, lines);
    // A series of a few points, of which one alone would be no line.
    if (parts.length < FEW && series.shape == null) u.data[i].forEach((value, k) => { if (value != null) draw("circle", { cx: across(u.data[0][k]).toFixed(1), cy: up(value).toFixed(1), r: 2, fill: stroke }, lines); });
  }
  for (const { series, x, y } of entries) {
    const stroke = onPaper(series.stroke);
    draw("path", { d: `M${x} ${y - 3}h22`, stroke, "stroke-width": 0.7 * series.width, "stroke-dasharray": series.dash?.map(x => x / 2).join(" ") }, picture);
    if (series.shape != null) draw("path", { d: shapePath(series.shape, x + 11, y - 3, 2.2), fill: stroke }, picture);
    text(x + 26, y, series.label);
  }
  return picture;
}

// ---- print -------------------------------------------------------------------------------------------------------------

// A page of paper gets the pictures for papers instead of what fits the window.
const PAPER_COLUMNS = 5;
function forPrint() {
  // Tables with more columns than fit, in parts.
  document.querySelectorAll(".table:not(:has(> .print)) table").forEach(table => {
    const n = Math.max(...[...table.rows].map(row => row.cells.length)), scroll = table.closest(".scroll");
    if (n <= PAPER_COLUMNS + 1) return;
    const print = make("div", "", scroll.parentElement, "print");
    for (let first = 1; first < n; first += PAPER_COLUMNS) {
      const part = table.cloneNode(true);
      [...part.rows].forEach(row => [...row.cells].forEach((cell, i) => { if (i && (i < first || i >= first + PAPER_COLUMNS)) cell.remove(); }));
      print.append(part);
    }
    scroll.classList.add("screen");
  });
  document.querySelectorAll("figure > .print, .plan > .print").forEach(old => old.remove());
  plots.forEach(({ u, figure, title, options }) => make("div", "", figure, "print").append(chartSvg(u, title, options)));
}
addEventListener("beforeprint", forPrint);
