//! Programs that run exported policies.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use brasa_export::ExportedPolicy;

/// A directory of one test.
pub fn folder(of: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("brasa-export-{of}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a temporary directory");
    dir
}

/// Python with the packages for ONNX; otherwise the test says that it is skipped.
pub fn python() -> Option<String> {
    let python = std::env::var("BRASA_PYTHON").unwrap_or_else(|_| "python3".into());
    let found = Command::new(&python).args(["-c", "import onnx, onnxruntime"]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    eprintln!("SKIPPED: {python} has no onnx and onnxruntime (pip install onnx onnxruntime)");
    None
}

/// The outputs of the ONNX model of `policy` in onnxruntime for JSON with arrays by name; NaN is null in the result.
pub fn run_onnx(python: &str, dir: &Path, name: &str, policy: &ExportedPolicy, given: &str) -> Outputs {
    let path = dir.join(format!("{name}.onnx"));
    std::fs::write(&path, policy.to_onnx().expect("it is valid")).expect("it can be written");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/run_onnx.py");
    let mut program = Command::new(python);
    let printed =
        answer(program.args([&script, &path]), given).unwrap_or_else(|| panic!("{name}: the model is refused"));
    serde_json::from_str(&printed.replace("NaN", "null")).expect("it prints JSON")
}

/// Outputs by name.
pub type Outputs = BTreeMap<String, Output>;

/// An output of a model.
#[derive(serde::Deserialize)]
pub struct Output {
    pub shape: Vec<usize>,
    pub values: Vec<Option<f64>>,
}

/// What a program prints that reads `text`; `None` if it fails.
pub fn answer(program: &mut Command, text: &str) -> Option<String> {
    let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("it is a pipe").write_all(text.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    output.status.success().then(|| String::from_utf8(output.stdout).expect("it prints text"))
}

/// Whether the machine has a program; otherwise the test says that it is skipped.
pub fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: there is no {program}");
    }
    found
}

/// What the C program in `dir` prints whose `main.c` is `source`.
pub fn run_c(dir: &Path, source: &str) -> String {
    let (file, program) = (dir.join("main.c"), dir.join("main"));
    std::fs::write(&file, source).expect("it can be written");
    let flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic"];
    let built = Command::new("cc").args(flags).arg(&file).arg("-o").arg(&program).arg("-lm").output();
    let built = built.expect("the compiler starts");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    answer(&mut Command::new(&program), "").expect("it ends well")
}
