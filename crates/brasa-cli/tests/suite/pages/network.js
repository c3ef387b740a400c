// The page of a network, driven as a person would.
const shown = (panel, name) => Number(document.getElementById(`network-${panel.index}-${name}`).textContent);
// Somebody plays long enough to be stopped on the way.
const longest = names.map((_, c) => c).sort((a, b) => network.controllers[b].episodes[0].frames.length - network.controllers[a].episodes[0].frames.length)[0];
root.scrollIntoView();
check(view.moment, moments().length - 1, "the last step at first");
network.controllers.forEach((controller, c) => controller.episodes.forEach((episode, e) => {
  const controllers = [c, ...view.controllers.slice(1)], name = `${controller.name} in episode ${e + 1}`, panel = panels[0];
  change({ controllers, episode: e });
  press("End");
  near(shown(panel, "satisfied"), 100 * episode.final_qos_rate, 0.051, name + ": satisfied users at the end");
  // Means need all steps.
  if (episode.frames.length === episode.steps) {
    const sums = { share: 0, rate: 0 };
    moments().forEach((step, i) => {
      seek(i);
      if (step >= episode.steps) return;
      sums.share += shown(panel, "satisfied") / 100;
      sums.rate += shown(panel, "rate");
    });
    near(sums.share / episode.steps, episode.qos_rate, 0.0006, name + ": mean of satisfied users");
    near(sums.rate / episode.steps, episode.sum_rate_mbps, 0.006 + 0.0006 * decode(episode)[0].users.length, name + ": mean of the sum of rates");
  }
  // What is drawn is what is counted.
  const frame = frameOf(panel), { width, height } = panel.map.picture.getBoundingClientRect();
  const bad = panel.box.querySelectorAll(".map .user.bad").length;
  check([bad, panel.box.querySelectorAll(".grid .held.bad").length], Array(2).fill(frame.users.length - frame.satisfied), name + ": rings");
  const off = panel.map.users().filter(({ group }) => {
    const [x, y] = group.getAttribute("transform").match(/-?[\d.]+/g).map(Number);
    return !(x >= 0 && y >= 0 && x <= width && y <= height);
  });
  check(off.length, 0, name + ": off the map");
  const places = new Set(panel.grid.held().map(({ group }) => group.getAttribute("transform")));
  check(places.size, frame.users.length, name + ": users in the grid");
  change({ only: true });
  check(panel.box.querySelectorAll(".map .user:not(.gone)").length, bad, name + ": only unsatisfied");
  change({ only: false });
}));
panels.forEach(panel => frameOf(panel).users.forEach((user, i) => {
  change({ focus: { user: i }, pinned: true });
  const { users } = frameOf(panel), same = users.filter(other => other.channel === user.channel).length;
  check(panel.box.querySelectorAll(".map .user:not(.quiet)").length, same, `users on the channel of user ${i + 1}`);
  const text = panel.tip.textContent;
  check([text.includes(`channel ${user.channel + 1}`), text.includes(`${user.rate.toFixed(3)} Mb/s`)], [true, true], `words about user ${i + 1}`);
}));
// The grid leads to users as well.
const { picture, at: [x, y] } = panels[0].grid.anchor({ user: 0 }), box = picture.getBoundingClientRect();
press("Escape");
picture.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + x, clientY: box.top + y, bubbles: true }));
const met = view.focus && frameOf(panels[0]).users[view.focus.user], of = frameOf(panels[0]).users[0];
check(met && [met.station, met.channel], [of.station, of.channel], "a user in the grid");
press("Escape");
check([view.focus, panels[0].tip.style.display], [null, "none"], "released");
press("ArrowDown", { target: panels[0].map.picture });
check(view.focus, { user: 0 }, "the first user by keyboard");
press("ArrowUp", { target: panels[0].map.picture });
check(view.focus, { station: stationNames.length - 1 }, "the last station by keyboard");
press("Escape");
change({ controllers: view.controllers.map(() => longest), episode: 0 });
press("Home");
press("ArrowRight");
press("ArrowRight");
press("ArrowLeft");
check(view.moment, Math.min(2, moments().length - 1) - 1, "steps by keyboard");
slider.value = 0;
slider.dispatchEvent(new Event("input"));
check(view.moment, 0, "the slider");
press(" ");
check(view.playing, true, "playing");
advance();
check(view.moment, 1, "time goes on");
press(" ");
check(view.playing, false, "paused");
press("+");
check(view.zoom.by, 2, "zoom");
press("0");
check(view.zoom.by, 1, "no zoom");
root.querySelectorAll(".choice").forEach(group => check(group.querySelectorAll("[aria-pressed=true]").length, 1, "one choice"));
