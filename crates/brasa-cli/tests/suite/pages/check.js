{
  const failures = [];
  let checks = 0;
  const hold = (is, expected, good, what) => {
    checks++;
    if (!good) failures.push(`${what}: ${JSON.stringify(is)} instead of ${JSON.stringify(expected)}`);
  };
  const check = (is, expected, what) => hold(is, expected, JSON.stringify(is) === JSON.stringify(expected), what);
  const near = (is, expected, by, what) => hold(is, expected, Math.abs(is - expected) <= by, what);
  const press = (key, { target = document.body, ...extra } = {}) =>
    target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...extra }));
  try {
    // The checks of a page.
  } catch (error) {
    failures.push(String(error && error.stack || error));
  }
  const told = `${failures.length ? "FAIL" : "PASS"} ${checks} checks\n${failures.slice(0, 20).join("\n")}`;
  html("pre", { id: "checked" }, document.body, told);
}
