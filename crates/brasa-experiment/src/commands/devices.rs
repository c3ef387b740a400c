//! `devices`: the machine, the backends that work here, and known profiles.

use brasa_device::{Machine, Profile, backends, open_named, profiles};

pub fn run() -> String {
    let mut text = String::from("This machine\n");
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<16} {value}\n"));
    let Machine { cpu, gpus } = Machine::found();
    let threads = if cpu.n_threads == 1 { "1 thread".to_owned() } else { format!("{} threads", cpu.n_threads) };
    let name = if cpu.name.is_empty() { "a processor" } else { &cpu.name };
    let memory = format!("{:.1} GiB, {:.1} GiB free", cpu.memory_gib, cpu.free_gib);
    line("cpu", format!("{name}, {threads}, {memory}"));
    for gpu in &gpus {
        let profile = gpu.profile().map_or("no profile".to_owned(), |profile| format!("profile {}", profile.name));
        let memory = format!("{:.1} GiB, {:.1} GiB free", gpu.memory_gib, gpu.free_gib);
        line(&format!("cuda:{}", gpu.index), format!("{}, {memory}, driver {}, {profile}", gpu.name, gpu.driver));
    }
    if gpus.is_empty() {
        line("cuda", "no NVIDIA driver found".to_owned());
    }
    text.push_str("\nBackends\n");
    for (backend, compiled) in backends() {
        let name = backend.feature();
        let state = match compiled {
            true => match open_named(name) {
                Ok(_) => "works".to_owned(),
                Err(error) => error.to_string(),
            },
            false => format!("not compiled in: build with `--features {name}`"),
        };
        text.push_str(&format!("  {name:<16} {state}\n"));
    }
    text.push_str("\nProfiles (data sheets, not measurements; usable memory is an estimate)\n");
    for profile in profiles() {
        text.push_str(&format!("  {:<16} {:<5} {}\n", profile.name, profile.backend.feature(), about(profile)));
    }
    text
}

/// The values of a profile in one line.
fn about(profile: &Profile) -> String {
    let mut parts = vec![profile.title.clone()];
    if let (Some(memory), Some(usable)) = (profile.memory_gib, profile.usable_gib) {
        parts.push(format!("{memory} GiB ({usable} usable)"));
    }
    parts.extend(profile.bandwidth_gb_per_sec.map(|bandwidth| format!("{bandwidth} GB/s")));
    if let Some(rates) = profile.tflops {
        let others = [("tf32", rates.tf32), ("f16", rates.f16), ("bf16", rates.bf16)];
        let others = others.into_iter().filter_map(|(name, rate)| rate.map(|rate| format!("{rate} {name}")));
        let rates: Vec<String> = [format!("{} f32", rates.f32)].into_iter().chain(others).collect();
        parts.push(format!("TFLOP/s: {}", rates.join(" / ")));
    }
    parts.extend(profile.compute_capability.as_ref().map(|capability| format!("compute capability {capability}")));
    parts.join(", ")
}
