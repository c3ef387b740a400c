// One day of everybody: the temperature inside.
document.getElementById("day").innerHTML = '<h2>A day in the room</h2><div class="plots" id="day-plot"></div>';
const days = data.day.map(row => ({ name: row.name, day: row.episodes[0] }));
const inside = days.map(({ day }) => day.values[day.names.indexOf("inside")]);
plot("day-plot", { title: "Temperature inside", height: 260, axes: axes("step", "inside [°C]"),
  series: [{}, ...days.map(({ name }, i) => line(name, color("c" + i % 8)))] }, [inside[0].map((_, i) => i), ...inside]);
