//! Rules for source files: a module doc, a maximum length, no backend by name, learners that do not wait
//! for the device, an extensible crate without names of built-in parts, names of the field, no trailing spaces.

use super::Finding;
use super::masked::mask;

/// Largest number of lines of a file without its tests and without the examples of its documentation.
const MAX_LINES: usize = 600;
/// The crates that name backends: one opens them, one registers fused operations for them.
const BACKEND_CRATES: [&str; 2] = ["crates/brasa-device/", "crates/brasa-kernels/"];
/// Constructors of Burn's `Device` that select a backend.
const CONSTRUCTORS: [&str; 14] = [
    "default",
    "cpu",
    "flex",
    "ndarray",
    "cuda",
    "rocm",
    "wgpu",
    "vulkan",
    "metal",
    "webgpu",
    "libtorch",
    "libtorch_cuda",
    "libtorch_mps",
    "libtorch_vulkan",
];
/// Features that compile a backend in.
const BACKEND_FEATURES: [&str; 11] =
    ["flex", "ndarray", "cpu", "cuda", "rocm", "wgpu", "vulkan", "metal", "webgpu", "tch", "libtorch"];

/// The crates of the path from environments to updates, which must not wait for the device.
const DEVICE_CRATES: [&str; 10] = [
    "crates/brasa-core/src/",
    "crates/brasa-buffers/src/",
    "crates/brasa-nn/src/",
    "crates/brasa-gat/src/",
    "crates/brasa-train/src/",
    "crates/brasa-ppo/src/",
    "crates/brasa-a2c/src/",
    "crates/brasa-sac/src/",
    "crates/brasa-td3/src/",
    "crates/brasa-dqn/src/",
];
/// The crate for experiments of any program, which must not contain names of built-in parts.
const OPEN_CRATE: &str = "crates/brasa-experiment/";
const OURS: [&str; 24] = [
    "ppo",
    "a2c",
    "sac",
    "td3",
    "dqn",
    "gat",
    "q_network",
    "pair_q_network",
    "team_q_network",
    "graph_network",
    "deterministic_actor",
    "citylearn",
    "iquitos",
    "evacuation",
    "uara",
    "cart-pole",
    "cartpole",
    "pendulum",
    "acrobot",
    "mountain-car",
    "carbon",
    "carbon_kg",
    "qos_rate",
    "sum_rate_mbps",
];
/// Names that say nothing to a reader of the field: pictures, and words for a place in a program.
const PICTURES: [&str; 9] = [
    "Answer",
    "InLoop",
    "JudgedChoice",
    "JudgedDensity",
    "Played",
    "Question",
    "Started",
    "Surroundings",
    "squashed_draw",
];
/// Methods of Burn's `Tensor` that wait for the device.
const WAITING: [&str; 5] = ["into_data", "to_data", "try_into_data", "into_scalar", "try_into_scalar"];
/// Text of a comment in the previous line that allows waiting, or says that there is nothing to wait for.
const WAITS: [&str; 2] = ["Waits for the device", "Host only"];

/// Checks one Rust file.
pub fn check_rust(name: &str, text: &str) -> Vec<Finding> {
    let finding =
        |line: usize, rule: &'static str, message: String| Finding { file: name.to_owned(), line, rule, message };
    let mut findings = Vec::new();
    if !text.starts_with("//!") {
        let message = "say in the first lines, after `//!`, what the file is for".into();
        findings.push(finding(1, "module-doc", message));
    }
    let masked = mask(text);
    let n_lines = masked.lines().take_while(|line| !line.contains("#[cfg(test)]")).count();
    let length = n_lines - example_lines(text.lines().take(n_lines));
    if length > MAX_LINES && !is_test_or_bench(name) {
        let message = format!("{length} lines without tests, at most {MAX_LINES}: split it by concept");
        findings.push(finding(length, "file-length", message));
    }
    for (word, at) in PICTURES.iter().flat_map(|word| words(&masked, word).map(move |at| (word, at))) {
        let is_declared =
            ["struct", "enum", "trait", "type", "fn"].iter().any(|keyword| masked[..at].trim_end().ends_with(keyword));
        if is_declared {
            let message = format!("`{word}` is a picture: use the term of the field");
            findings.push(finding(line_at(text, at), "name", message));
        }
    }
    if !BACKEND_CRATES.iter().any(|exempt| name.starts_with(exempt)) {
        for (offset, what) in backend_names(text, &masked) {
            let message = format!("`{what}` belongs in brasa-device: take a `&Device`, or open one by profile or name");
            findings.push(finding(line_at(text, offset), "backend-name", message));
        }
    }
    if name.starts_with(OPEN_CRATE) {
        // Strings and comments are also searched: a name anywhere is a closed list.
        let text = text.to_lowercase();
        for word in OURS {
            for at in words(&text, word) {
                let message = format!("`{word}` is one of many: whoever registers it names it");
                findings.push(finding(line_at(&text, at), "closed-list", message));
            }
        }
    }
    if DEVICE_CRATES.iter().any(|path| name.starts_with(path)) && !is_test_or_bench(name) {
        let code = &masked[..masked.find("#[cfg(test)]").unwrap_or(masked.len())];
        for method in WAITING {
            for at in words(code, method) {
                let line = line_at(text, at);
                let before = text.lines().take(line - 1).last().unwrap_or_default();
                if !WAITS.iter().any(|said| before.contains(said)) {
                    let [waits, host] = WAITS;
                    let message = format!(
                        "`{method}` waits for the device: keep the value a tensor, read it with `read_back`, or say \
                         `// {waits}` or `// {host}` in the line before"
                    );
                    findings.push(finding(line, "device-wait", message));
                }
            }
        }
    }
    findings
}

/// Finds spaces and tabs at the ends of lines.
pub fn trailing_spaces(name: &str, text: &str) -> Vec<Finding> {
    let spaced = text.lines().enumerate().filter(|(_, line)| line.ends_with([' ', '\t']));
    let message = || "remove the spaces at the end of the line".to_owned();
    spaced
        .map(|(at, _)| Finding { file: name.to_owned(), line: at + 1, rule: "trailing-space", message: message() })
        .collect()
}

fn is_test_or_bench(name: &str) -> bool {
    name.ends_with("/tests.rs") || name.split('/').rev().skip(1).any(|folder| folder == "tests" || folder == "benches")
}

fn line_at(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// Byte offset and text of every selection of a backend.
fn backend_names(text: &str, masked: &str) -> Vec<(usize, String)> {
    let mut places = Vec::new();
    for at in words(masked, "Device") {
        let rest = &masked[at + "Device".len()..];
        let called = rest.strip_prefix("::").unwrap_or_default();
        let end = called.find(|c: char| !is_word(c)).unwrap_or(called.len());
        if CONSTRUCTORS.contains(&&called[..end]) {
            places.push((at, format!("Device::{}", &called[..end])));
        } else if rest.trim_start().starts_with("as Default>") {
            places.push((at, "<Device as Default>".into()));
        }
    }
    for at in words(masked, "feature") {
        // The name of the feature is a literal, so it is read from the unmasked text.
        let value = text[at + "feature".len()..].trim_start().strip_prefix('=').map(str::trim_start);
        let feature = value.and_then(|value| value.strip_prefix('"')?.split('"').next());
        if let Some(feature) = feature.filter(|feature| BACKEND_FEATURES.contains(feature)) {
            places.push((at, format!("feature = \"{feature}\"")));
        }
    }
    places.sort();
    places
}

/// Offsets of `word` as a whole word.
fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| !text[..*at].ends_with(is_word) && !text[at + word.len()..].starts_with(is_word))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Number of lines of code blocks in the documentation of a library.
fn example_lines<'a>(lines: impl Iterator<Item = &'a str>) -> usize {
    let mut is_open = false;
    let comments = lines.filter_map(|line| line.trim_start().strip_prefix("///"));
    comments
        .filter(|comment| {
            let is_fence = comment.trim_start().starts_with("```");
            is_open ^= is_fence;
            is_open || is_fence
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(name: &str, text: &str) -> Vec<(usize, &'static str)> {
        check_rust(name, text).into_iter().map(|finding| (finding.line, finding.rule)).collect()
    }

    const LIBRARY: &str = "crates/brasa-nn/src/mlp.rs";

    #[test]
    fn a_file_needs_a_module_doc() {
        assert_eq!(rules(LIBRARY, "//! Layers.\nfn f() {}\n"), []);
        for text in ["", "fn f() {}\n", "// Layers.\n//! Layers.\n", "\n//! Layers.\n"] {
            assert_eq!(rules(LIBRARY, text), [(1, "module-doc")], "{text:?}");
        }
    }

    #[test]
    fn a_file_may_not_be_long_without_its_tests() {
        let body = |n: usize| format!("//! Layers.\n{}", "fn f() {}\n".repeat(n - 1));
        let tests = format!("#[cfg(test)]\n{}", "fn f() {}\n".repeat(500));
        assert_eq!(rules(LIBRARY, &(body(600) + &tests)), []);
        assert_eq!(rules(LIBRARY, &(body(601) + &tests)), [(601, "file-length")]);
        for exempt in ["crates/brasa-nn/tests/golden.rs", "benches/benches/gae.rs"] {
            assert_eq!(rules(exempt, &body(900)), [], "{exempt}");
        }
        let example = "/// Adds.\n///\n/// ```\n/// f();\n/// ```\n";
        assert_eq!(rules(LIBRARY, &(body(598) + example)), []);
        assert_eq!(rules(LIBRARY, &(body(599) + example)), [(601, "file-length")]);
        // A word in a string does not end the code.
        let quoted = body(300) + "const TESTS: &str = \"#[cfg(test)]\";\n" + &body(400);
        assert_eq!(rules(LIBRARY, &quoted), [(701, "file-length")]);
    }

    #[test]
    fn backends_are_named_in_one_crate_only() {
        for line in [
            "let device = Device::default();",
            "let device = burn::tensor::Device::flex();",
            "let device = Device::cuda(0);",
            "let device = <Device as Default>::default();",
            "#[cfg(feature = \"cuda\")]",
            "if cfg!(feature=\"wgpu\") {}",
            "#[cfg_attr(not( feature = \"flex\" ), allow(unused))]",
        ] {
            let text = format!("//! Layers.\n\n{line}\n");
            assert_eq!(rules(LIBRARY, &text), [(3, "backend-name")], "{line}");
            assert_eq!(rules("crates/brasa-device/src/open.rs", &text), [], "{line}");
        }
    }

    #[test]
    fn words_that_only_look_like_backends_pass() {
        for line in [
            "// Device::default() takes the first backend.",
            "let words = \"Device::cuda(0)\";",
            "let profile = DeviceProfile::default();",
            "let config = MyDevice::default();",
            "let device = Device::default_profile();",
            "let device = device.autodiff();",
            "#[cfg(feature = \"tensor\")]",
        ] {
            assert_eq!(rules(LIBRARY, &format!("//! Layers.\n{line}\n")), [], "{line}");
        }
    }

    #[test]
    fn nothing_on_the_way_to_an_update_waits_for_the_device() {
        let text = "//! Learner.\nlet a = x.into_scalar::<f32>();\n// Waits for the device.\nlet b = x.into_data();\n\
                    // Host only.\nlet b = x.to_data();\n// into_data\n#[cfg(test)]\nlet c = x.into_data();\n";
        for path in ["crates/brasa-sac/src/sac.rs", LIBRARY] {
            assert_eq!(rules(path, text), [(2, "device-wait")], "{path}");
        }
        for exempt in ["crates/brasa-sac/tests/golden.rs", "crates/brasa-buffers/src/replay/tests.rs"] {
            assert_eq!(rules(exempt, text), [], "{exempt}");
        }
        assert_eq!(rules("crates/brasa-experiment/src/app.rs", text), []);
    }

    #[test]
    fn the_open_crate_names_nothing_of_ours() {
        let text = "//! Experiments.\n// Such as PPO.\nlet name = \"cart-pole\";\nlet gather = 1;\n";
        let open = "crates/brasa-experiment/src/app.rs";
        assert_eq!(rules(open, text), [(2, "closed-list"), (3, "closed-list")]);
        assert_eq!(rules(LIBRARY, text), []);
    }

    #[test]
    fn names_are_those_of_the_field() {
        let text = "//! Layers.\nstruct Question;\nfn squashed_draw() {}\nlet question = Question;\n// struct Answer\nenum Answers {}\n";
        assert_eq!(rules(LIBRARY, text), [(2, "name"), (3, "name")]);
    }

    #[test]
    fn lines_do_not_end_with_spaces() {
        let lines: Vec<usize> = trailing_spaces("docs/x.md", "a\nb \nc\n\td\t\n").iter().map(|f| f.line).collect();
        assert_eq!(lines, [2, 4]);
    }
}
