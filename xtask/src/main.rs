//! Checks of the workspace beyond those of the compiler: `cargo xtask tidy`.

mod tidy;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments != ["tidy"] {
        eprintln!("usage: cargo xtask tidy");
        return ExitCode::from(2);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    match tidy::check_workspace(root) {
        Ok(report) if report.findings.is_empty() => {
            println!("tidy: {} files, no findings", report.n_files);
            ExitCode::SUCCESS
        }
        Ok(report) => {
            report.findings.iter().for_each(|finding| eprintln!("{finding}"));
            eprintln!("tidy: {} files, {} findings", report.n_files, report.findings.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("tidy: {error}");
            ExitCode::FAILURE
        }
    }
}
