// A week of power flows before and after.
const w = data.week;
document.getElementById("week").innerHTML =
  '<h2>A week of power flows</h2><p id="week-note"></p><div class="plots" id="flows"></div>';
document.getElementById("week-note").textContent =
  `The week of the largest import, from step ${w.first_step.toLocaleString("en")}. Before: ${w.before_name}. After: trained. ` +
  "Battery power is positive when charging, grid power negative when exporting.";
const hours = w.before.grid.map((_, i) => i);
const all = [...w.before.grid, ...w.after.grid, ...w.before.load, ...w.after.load, ...w.before.pv,
             ...w.before.battery, ...w.after.battery];
const span = [Math.min(...all), Math.max(...all)], pad = 0.05 * (span[1] - span[0]);
const sync = uPlot.sync("week");
for (const [name, f] of [["before (" + w.before_name + ")", w.before], ["after (trained)", w.after]]) {
  const series = [{ label: "hour" }, line("load", "#495057"), line("PV", "#f59f00", { fill: "#f59f0018" }),
                  line("battery", "#1c7ed6"), line("grid", "#d9480f", { width: 2 })];
  const columns = [hours, f.load, f.pv, f.battery, f.grid];
  if (f.ev.some(x => x)) { series.push(line("vehicles", "#9c36b5")); columns.push(f.ev); }
  plot("flows", { height: 250, title: name, cursor: { sync: { key: sync.key } },
    scales: { x: { time: false }, y: { range: [span[0] - pad, span[1] + pad] } }, axes: axes("hour of the week", "kW"), series }, columns);
}
plot("flows", { height: 150, title: "state of charge", cursor: { sync: { key: sync.key } },
  scales: { x: { time: false }, y: { range: [0, 1] } }, axes: axes("hour of the week", "share"),
  series: [{ label: "hour" }, line("before", "#adb5bd"), line("after", "#1c7ed6", { width: 2 })] },
  [hours, w.before.soc, w.after.soc]);
