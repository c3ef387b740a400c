// One day of everybody: the temperature inside.
document.getElementById("day").innerHTML = '<h2>A day in the room</h2><div class="plots" id="day-plot"></div>';
const days = data.day.map(row => ({ name: row.name, day: row.episodes[0] }));
const inside = days.map(({ day }) => day.values[day.names.indexOf("inside")]);
const colors = [color("rule"), color("ember"), color("floor")];
plot("day-plot", { height: 260, axes: axes("step", "inside [°C]"),
  series: [{ label: "step" }, ...days.map(({ name }, i) => line(name, colors[i % 3]))] }, [inside[0].map((_, i) => i), ...inside]);
