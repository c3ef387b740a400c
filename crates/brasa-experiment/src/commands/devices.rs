//! `devices`: compiled backends, devices that work here, and known profiles.

use brasa_device::{backends, open_named, profiles};

pub fn run() -> String {
    let mut text = String::from("Backends\n");
    for (backend, compiled) in backends() {
        let name = backend.feature();
        let state = match compiled {
            true => match open_named(name) {
                Ok(_) => "works".to_owned(),
                Err(error) => error.to_string(),
            },
            false => format!("not compiled in: build with `--features {name}`"),
        };
        text.push_str(&format!("  {name:<6} {state}\n"));
    }
    text.push_str("\nProfiles (data sheets, not measurements)\n");
    for profile in profiles() {
        let memory = profile.memory_gib.map_or("host memory".to_owned(), |gib| format!("{gib} GiB"));
        let rest = match (profile.bandwidth_gb_per_sec, profile.fp32_tflops, profile.compute_capability) {
            (Some(bandwidth), Some(tflops), Some(capability)) => {
                format!(", {bandwidth} GB/s, {tflops} TFLOP/s in f32, compute capability {capability}")
            }
            _ => String::new(),
        };
        text.push_str(&format!("  {:<9} {:<5} {memory}{rest}\n", profile.name, profile.backend.feature()));
    }
    text
}
