//! `devices`: the machine, the backends that work here, and known profiles; or a line with the use of the machine from time to time.

use std::io::{self, Write};
use std::time::Duration;

use brasa_device::{Gpu, GpuState, Machine, MachineMonitor, Profile, backends, open_named, profiles};
use brasa_train::utc_now;
use serde_json::{Value, json};

use crate::ExperimentError;

pub fn run(json: bool) -> String {
    if json {
        return format!("{}\n", document());
    }
    let mut text = String::from("This machine\n");
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<16} {value}\n"));
    let Machine { cpu, gpus } = Machine::found();
    let threads = if cpu.n_threads == 1 { "1 thread".to_owned() } else { format!("{} threads", cpu.n_threads) };
    let name = if cpu.name.is_empty() { "a processor" } else { &cpu.name };
    let memory = format!("{:.1} GiB, {:.1} GiB free", cpu.memory_gib, cpu.free_gib);
    line("cpu", format!("{name}, {threads}, {memory}"));
    for gpu in &gpus {
        line(&format!("cuda:{}", gpu.index), about_gpu(gpu));
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

/// The same as a document.
fn document() -> Value {
    let Machine { cpu, gpus } = Machine::found();
    let gpu = |gpu: &Gpu| {
        json!({
            "device": format!("cuda:{}", gpu.index), "name": gpu.name, "memory_gib": gpu.memory_gib, "free_gib": gpu.free_gib,
            "driver": gpu.driver, "compute_capability": gpu.compute_capability, "profile": Profile::of_gpu(gpu).name,
        })
    };
    let backends = backends().into_iter().map(|(backend, compiled)| {
        let name = backend.feature();
        let error = if compiled { open_named(name).err().map(|error| error.to_string()) } else { None };
        json!({ "name": name, "compiled": compiled, "works": compiled && error.is_none(), "error": error })
    });
    let profile = |profile: &Profile| {
        json!({
            "name": profile.name, "title": profile.title, "backend": profile.backend.feature(), "memory_gib": profile.memory_gib,
            "usable_gib": profile.usable_gib, "bandwidth_gb_per_sec": profile.bandwidth_gb_per_sec,
        })
    };
    json!({
        "cpu": { "name": cpu.name, "n_threads": cpu.n_threads, "memory_gib": cpu.memory_gib, "free_gib": cpu.free_gib },
        "gpus": gpus.iter().map(gpu).collect::<Vec<_>>(),
        "backends": backends.collect::<Vec<_>>(),
        "profiles": profiles().iter().map(profile).collect::<Vec<_>>(),
    })
}

/// Prints a line with the use of the machine every `interval` until the process ends or standard output is closed.
///
/// # Errors
/// [`ExperimentError::Failed`] if standard output cannot be written for another reason.
pub fn watch(interval: Duration) -> Result<String, ExperimentError> {
    let mut monitor = MachineMonitor::default();
    let mut out = io::stdout().lock();
    loop {
        std::thread::sleep(interval);
        let written = writeln!(out, "{} {}", utc_now(), reading(&mut monitor)).and_then(|()| out.flush());
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(String::new()),
            Err(error) => {
                return Err(ExperimentError::Failed(format!("cannot write to standard output: {error}")));
            }
        }
    }
}

/// The use of the machine since the latest reading.
fn reading(monitor: &mut MachineMonitor) -> String {
    let state = monitor.state();
    let Machine { cpu, gpus } = Machine::found();
    let of_cpu = format!("cpu {:.0} % busy, {:.1} of {:.1} GiB", 100.0 * state.busy, state.memory_gib, cpu.memory_gib);
    let of_gpus = gpus.iter().map(|gpu| format!("  cuda:{} {}", gpu.index, about_state(gpu)));
    [of_cpu].into_iter().chain(of_gpus).collect()
}

/// A GPU of this machine in one line.
fn about_gpu(gpu: &Gpu) -> String {
    let known = gpu.profile().is_some();
    let profile = Profile::of_gpu(gpu).name;
    let profile = if known { format!("profile {profile}") } else { format!("profile {profile} from its driver") };
    let capability = gpu.compute_capability.as_ref();
    let capability = capability.map_or(String::new(), |capability| format!(", compute capability {capability}"));
    let (state, free) = (about_state(gpu), gpu.free_gib);
    format!("{}, {state}, {free:.1} GiB free{capability}, driver {}, {profile}", gpu.name, gpu.driver)
}

/// Load, memory, temperature, power and clocks of a GPU, as far as it measures them.
fn about_state(gpu: &Gpu) -> String {
    let GpuState { used_gib, busy, temperature_c, power_w, clock_mhz, memory_clock_mhz } = gpu.state;
    let mut parts = vec![format!("{used_gib:.1} of {:.1} GiB", gpu.memory_gib)];
    parts.extend(busy.map(|busy| format!("{:.0} % busy", 100.0 * busy)));
    parts.extend(temperature_c.map(|celsius| format!("{celsius:.0} °C")));
    parts.extend(power_w.map(|watts| format!("{watts:.0} W")));
    parts.extend(clock_mhz.map(|mhz| format!("cores {mhz:.0} MHz")));
    parts.extend(memory_clock_mhz.map(|mhz| format!("memory {mhz:.0} MHz")));
    parts.join(", ")
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

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_device::with_driver;

    fn card(name: &str) -> Gpu {
        let state = GpuState {
            used_gib: 2.5,
            busy: Some(0.83),
            temperature_c: Some(61.0),
            power_w: Some(101.5),
            clock_mhz: Some(2400.0),
            memory_clock_mhz: None,
        };
        Gpu {
            index: 0,
            name: name.to_owned(),
            memory_gib: 8.0,
            free_gib: 5.5,
            compute_capability: Some("8.9".to_owned()),
            driver: "580.1".to_owned(),
            n_cores: None,
            max_clock_mhz: None,
            max_memory_clock_mhz: None,
            bus_bits: None,
            state,
        }
    }

    #[test]
    fn a_gpu_is_shown_with_its_state_and_profile() {
        let shown = |name: &str| with_driver(vec![card(name)], || run(false));
        let state = "2.5 of 8.0 GiB, 83 % busy, 61 °C, 102 W, cores 2400 MHz";
        let rest = "5.5 GiB free, compute capability 8.9, driver 580.1, profile rtx-4060";
        let text = shown("NVIDIA GeForce RTX 4060");
        assert!(text.contains(&format!("NVIDIA GeForce RTX 4060, {state}, {rest}\n")), "{text}");
        let text = shown("NVIDIA GeForce RTX 4060 Ti");
        assert!(text.contains(&format!("{state}, {rest}-ti from its driver\n")), "{text}");
    }

    #[test]
    fn a_reading_has_the_processor_and_every_gpu() {
        let mut monitor = MachineMonitor::default();
        std::thread::sleep(Duration::from_millis(250));
        let with = with_driver(vec![card("NVIDIA GeForce RTX 4060")], || reading(&mut monitor));
        assert!(with.starts_with("cpu ") && with.contains(" % busy, "), "{with}");
        assert!(with.ends_with("  cuda:0 2.5 of 8.0 GiB, 83 % busy, 61 °C, 102 W, cores 2400 MHz"), "{with}");
        let without = with_driver(Vec::new(), || reading(&mut monitor));
        assert!(without.ends_with(" GiB") && !without.contains("cuda"), "{without}");
    }
}
