// The page of an evacuation, driven as a person would.
const shown = ({ number }) => Number(number.data);
root.scrollIntoView();
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
// An exit is at the opening of its plan, outside of all other places.
replay.buildings.forEach(building => building.nodes.forEach((node, i) => {
  if (node.kind !== "exit") return;
  const corners = flat => { const list = []; for (let k = 0; k < flat.length; k += 2) list.push([flat[k], flat[k + 1]]); return list; };
  const own = corners(node.outline), others = building.nodes.filter((other, k) => k !== i && other.floor === node.floor && other.outline.length);
  check(others.some(other => isInside(corners(other.outline), ...node.at)), false, `${building.name}: ${node.name} is outside`);
  const [x, y] = [0, 1].map(k => [Math.min(...own.map(p => p[k])), Math.max(...own.map(p => p[k]))]);
  building.ways.filter(way => way.opening && (way.a === i || way.b === i)).forEach(({ opening: [x1, y1, x2, y2] }) => {
    const middle = [(x1 + x2) / 2, (y1 + y2) / 2], far = Math.hypot(...[x, y].map(([low, high], k) => Math.max(low - middle[k], 0, middle[k] - high)));
    check(far < 0.7, true, `${building.name}: ${node.name} is at its opening`);
  });
}));
check(shown(tickFact), Math.floor(view.time), "ticks next to seconds");
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
