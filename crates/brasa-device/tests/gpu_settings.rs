//! Settings of GPUs, on a GPU or a software driver:
//! `BRASA_TEST_DEVICE=wgpu cargo test -p brasa-device --features wgpu,autotune,kernel-cache --test gpu_settings`.
#![cfg(all(any(feature = "cuda", feature = "wgpu"), feature = "autotune", feature = "kernel-cache"))]

use std::path::Path;
use std::process::Command;

use brasa_device::{AutotuneLevel, GpuSettings, PersistentMemory, open_named};
use burn::tensor::Tensor;

/// Settings are read once, so that each case is a process.
const CASE: &str = "BRASA_TEST_GPU_SETTINGS";

fn device() -> Option<String> {
    std::env::var("BRASA_TEST_DEVICE").ok().filter(|name| name.starts_with("cuda") || name.starts_with("wgpu"))
}

/// Number of files below a directory, and of their bytes.
fn files(dir: &Path) -> (usize, u64) {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.fold((0, 0), |(n, bytes), entry| match entry.metadata() {
        Ok(about) if about.is_dir() => {
            let below = files(&entry.path());
            (n + below.0, bytes + below.1)
        }
        Ok(about) => (n + 1, bytes + about.len()),
        Err(_) => (n, bytes),
    })
}

/// A product whose kernel is chosen by timing.
fn product(name: &str) {
    let settings = GpuSettings {
        autotune: Some(AutotuneLevel::Minimal),
        persistent_memory: Some(PersistentMemory::SizeMatch),
        ..GpuSettings::default()
    };
    settings.apply().expect("no GPU was used");
    let device = open_named(name).expect("the device is there");
    let n = 256;
    let square = Tensor::<2>::ones([n, n], &device) * 0.5;
    let sum = square.clone().matmul(square).sum().into_scalar::<f32>();
    let expected = (n * n * n) as f32 / 4.0;
    assert!((sum / expected - 1.0).abs() < 1e-4, "{sum} instead of {expected}");
    settings.apply().expect("they are in use");
    let others = GpuSettings { persistent_memory: Some(PersistentMemory::Disabled), ..settings };
    let error = others.apply().expect_err("settings are read once").to_string();
    assert!(error.starts_with("`train.gpu.persistent_memory` has another value in this process"), "{error}");
}

#[test]
fn choices_of_kernels_are_kept_for_the_next_process() {
    let Some(name) = device() else {
        eprintln!("SKIPPED: BRASA_TEST_DEVICE names no GPU");
        return;
    };
    if std::env::var_os(CASE).is_some() {
        return product(&name);
    }
    let dir = std::env::temp_dir().join(format!("brasa-gpu-settings-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a temporary directory");
    let run = || {
        let started = std::time::Instant::now();
        let mut case = Command::new(std::env::current_exe().expect("this program"));
        case.args(["--exact", "choices_of_kernels_are_kept_for_the_next_process", "--nocapture"]);
        let status = case.env(CASE, "1").env("XDG_CACHE_HOME", &dir).current_dir(&dir).status();
        assert!(status.expect("it starts").success());
        println!("{:?}, {:?} files and bytes in the cache", started.elapsed(), files(&dir));
        files(&dir)
    };
    let (first, second) = (run(), run());
    assert!(first.0 > 0, "a file in the cache directory");
    assert_eq!(first.0, second.0, "the second process uses the files of the first");
    std::fs::remove_dir_all(&dir).expect("it is ours");
}
