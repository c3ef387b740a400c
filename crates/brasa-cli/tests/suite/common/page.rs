//! Helpers for tests of reports: write one with a short run, read its data, open it in a browser.
#![allow(clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{arg, succeed};

/// Trains `experiment` and returns the directory of the run.
pub fn train(dir: &Path, experiment: &str) -> PathBuf {
    let (config, out) = (dir.join("experiment.toml"), dir.join("run"));
    std::fs::write(&config, experiment).expect("the directory can be written");
    succeed(&["train", arg(&config), "--out", arg(&out), "--quiet"]);
    out
}

/// Training of seconds.
pub const SMALL: &str =
    "[train]\ntotal_env_steps = 256\nn_envs = 2\n[ppo]\nn_steps = 32\nbatch_size = 64\nlearning_rate = 1e-2\n";

pub fn has_gymnasium(python: &str) -> bool {
    Command::new(python).args(["-c", "import gymnasium"]).output().is_ok_and(|output| output.status.success())
}

/// A run in an environment of Gymnasium that renders; `None` without Gymnasium.
pub fn train_rendered_gymnasium(dir: &Path) -> Option<PathBuf> {
    let python = std::env::var("BRASA_PYTHON").unwrap_or_else(|_| "python3".into());
    if !has_gymnasium(&python) {
        eprintln!("SKIPPED: {python} has no gymnasium; set BRASA_PYTHON to a Python with gymnasium");
        return None;
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../brasa-gym/tests/python/brasa_gym_envs.py");
    let scenario = format!("[scenario.gymnasium]\nid = \"brasa/Rendered-v0\"\nimport = [\"{file}\"]\nn_workers = 1\n");
    Some(train(dir, &format!("{scenario}{SMALL}")))
}

/// The figures of the policy in an output of `eval` or `baseline`, without times.
pub fn trained(output: &str) -> Value {
    let mut all: Value = serde_json::from_str(output).expect("it is JSON");
    let mut row = all["controllers"]["trained"].take();
    row.as_object_mut().expect("the policy has a row").retain(|name, _| !name.contains("seconds"));
    row
}

/// The data of the page.
pub fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("const data = ").expect("the page has data");
    let (text, _) = rest.split_once(";\n// ---- colors").expect("the data end");
    serde_json::from_str(text).expect("the data are JSON")
}

/// The items of a list.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

/// A browser that runs without a screen. Prints a notice if there is none.
pub fn browser() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found =
        std::env::split_paths(&paths).flat_map(|dir| names.map(|name| dir.join(name))).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("SKIPPED: no chromium, chromium-browser or google-chrome on the PATH; nobody has looked at the page");
    }
    found
}

/// The document after its scripts ran, and their console output.
pub fn opened(browser: &Path, profile: &Path, page: &Path, hash: &str) -> (String, Vec<String>) {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=60000", "--enable-logging=stderr"])
        .args(["--window-size=1400,1000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}{hash}", page.display()))
        .output()
        .expect("the browser starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let console = said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    (String::from_utf8_lossy(&output.stdout).into_owned(), console)
}

/// The text of the element with this id.
pub fn text<'a>(document: &'a str, id: &str) -> &'a str {
    let found = document.split_once(&format!("id=\"{id}\">")).and_then(|(_, rest)| rest.split_once('<'));
    found.unwrap_or_else(|| panic!("no {id} in {} bytes", document.len())).0
}

/// What a test finds on the page of `source`: `checks` run where the page reads its link, with the names of the page's script, and the page
/// says PASS or FAIL. Second, the console output.
pub fn checked(browser: &Path, dir: &Path, source: &str, checks: &str) -> (String, Vec<String>) {
    const LINK: &str = "// A link may name the moment: #";
    let test = include_str!("../pages/check.js").replace("// The checks of a page.", checks);
    let (before, after) = source.rsplit_once(LINK).expect("the page reads its link");
    let path = dir.join("checked.html");
    std::fs::write(&path, format!("{before}{test}{LINK}{after}")).expect("the directory can be written");
    let (document, console) = opened(browser, &dir.join("profile"), &path, "");
    (text(&document, "checked").to_owned(), console)
}

/// What `layout.js` finds in `page` at several widths, by day or by night, or on paper: a line for each fault.
pub fn layout_faults(browser: &Path, dir: &Path, page: &Path, is_dark: bool) -> Vec<String> {
    let source = std::fs::read_to_string(page).expect("the page is there");
    let checked = |begin: &str| {
        let look = format!("{begin}\n{}", include_str!("layout.js"));
        format!("<script>addEventListener('load', () => setTimeout(() => {{\n{look}\n}}, 500));</script></body>")
    };
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).expect("the directory can be written");
    write("screen.html", &source.replace("</body>", &checked("")));
    // The rules of paper on a screen that is as wide as a page of A4 without its margins.
    write("paper.html", &source.replace("@media print", "@media screen").replace("</body>", &checked("forPrint();")));
    let frame = |(name, width): &(&str, u32)| format!("<iframe src=\"{name}.html\" width={width} height=900></iframe>");
    let frames = [("screen", 360), ("screen", 800), ("screen", 1400), ("paper", 688)];
    let n = frames.len();
    let frames: String = frames.iter().map(frame).collect();
    let listen = "addEventListener('message', ({ data }) => { const line = document.createElement('pre'); \
        line.className = 'told'; line.textContent = JSON.stringify(data); document.body.append(line); });";
    write("around.html", &format!("<!doctype html><body><script>{listen}</script>{frames}</body>"));
    let scheme = format!("--blink-settings=preferredColorScheme={}", if is_dark { 0 } else { 1 });
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=60000", "--dump-dom"])
        .args(["--window-size=1500,1000", &scheme])
        .arg(format!("--user-data-dir={}", dir.join("profile").display()))
        .arg(format!("file://{}", dir.join("around.html").display()))
        .output()
        .expect("the browser starts");
    let document = String::from_utf8_lossy(&output.stdout).into_owned();
    let told: Vec<Value> = document
        .split("<pre class=\"told\">")
        .skip(1)
        .map(|rest| {
            let text = rest.split("</pre>").next().unwrap_or_default();
            let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
            serde_json::from_str(&text).expect("the page tells JSON")
        })
        .collect();
    assert_eq!(told.len(), n, "a page told nothing: {}", String::from_utf8_lossy(&output.stderr));
    let faults = told.iter().flat_map(|told| {
        assert_eq!(told["isDark"], is_dark);
        let width = told["width"].clone();
        list(&told["failures"]).iter().map(move |fault| format!("{width} px: {}", fault.as_str().unwrap_or_default()))
    });
    faults.collect()
}

/// The page has no fault of its layout by day, by night and on paper, and none for screen readers, if `BRASA_AXE` names `axe.min.js` of
/// the package `axe-core`.
pub fn assert_layout(browser: &Path, dir: &Path, page: &Path) {
    for is_dark in [false, true] {
        let faults = layout_faults(browser, dir, page, is_dark);
        assert!(faults.is_empty(), "by {}:\n{}", if is_dark { "night" } else { "day" }, faults.join("\n"));
    }
    let Some(axe) = std::env::var_os("BRASA_AXE") else {
        eprintln!("SKIPPED: BRASA_AXE does not name axe.min.js of the package axe-core");
        return;
    };
    let axe = std::fs::read_to_string(&axe).expect("BRASA_AXE names a file");
    let source = std::fs::read_to_string(page).expect("the page is there");
    let script = format!(
        "<script>{axe}</script><script>addEventListener('load', () => setTimeout(async () => {{\n\
        const {{ violations }} = await axe.run();\n\
        const found = violations.map(({{ id, nodes }}) => `${{id}}: ${{nodes.map(node => node.target).join(' ')}}`);\n\
        const told = document.createElement('pre'); told.id = 'axe'; told.textContent = `${{found.length}} findings ${{found.join('; ')}}`;\n\
        document.body.append(told);\n}}, 500));</script></body>"
    );
    let path = dir.join("axe.html");
    std::fs::write(&path, source.replace("</body>", &script)).expect("the directory can be written");
    let (document, _) = opened(browser, &dir.join("profile"), &path, "");
    let found = text(&document, "axe");
    assert!(found.starts_with("0 findings"), "{found}");
}
