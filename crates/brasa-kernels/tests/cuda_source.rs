//! Every kernel as CUDA C++, through NVIDIA's compilers for each architecture, without a GPU.
//!
//! `BRASA_CUDA_PYTHON` is a Python with NVIDIA's wheels; `scripts/check_cuda.py` says which.

#![cfg(feature = "cuda-source")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cube")
}

/// A kernel without a translation would never be compiled for CUDA before a user does it.
#[test]
fn every_kernel_is_translated() {
    let mut written = BTreeSet::new();
    for file in std::fs::read_dir(folder()).expect("the folder of the kernels") {
        let text = std::fs::read_to_string(file.expect("an entry").path()).expect("a source file");
        assert!(!text.contains("#[cube(launch)]"), "kernels need `create_dummy_kernel`");
        for kernel in text.split("#[cube(launch, create_dummy_kernel)]").skip(1) {
            let name = kernel.split("fn ").nth(1).and_then(|rest| rest.split(['(', '<']).next());
            written.insert(name.expect("a function").to_owned());
        }
    }
    let sources = brasa_kernels::cuda_sources();
    let translated: BTreeSet<String> =
        sources.iter().map(|(name, _)| name.split('-').next().expect("a name").to_owned()).collect();
    assert_eq!(translated, written);
    let names: BTreeSet<&String> = sources.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), sources.len(), "names of variants differ");
}

#[test]
fn every_kernel_compiles_for_every_architecture() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-source");
    std::fs::create_dir_all(&folder).expect("a folder of the target directory");
    let files: Vec<PathBuf> = brasa_kernels::cuda_sources()
        .into_iter()
        .map(|(name, source)| {
            assert!(source.contains("__global__"), "{name} has an entry");
            let path = folder.join(format!("{name}.cu"));
            std::fs::write(&path, source).expect("a file of the target directory");
            path
        })
        .collect();
    let python = std::env::var("BRASA_CUDA_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/check_cuda.py");
    let Ok(output) = Command::new(&python).arg(script).args(&files).output() else {
        eprintln!("SKIPPED: no kernel was compiled for CUDA: `{python}` cannot be started; set BRASA_CUDA_PYTHON");
        return;
    };
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(77) {
        eprintln!("SKIPPED: no kernel was compiled for CUDA: {text}");
        return;
    }
    println!("{text}");
    assert!(output.status.success(), "{text}");
}
