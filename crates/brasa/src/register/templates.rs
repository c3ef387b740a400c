//! Experiments that `brasa new` writes.

use brasa_experiment::{Registry, Template};

/// A file of a template: its path in the new directory, and its content.
macro_rules! files {
    ($folder:literal: $($name:literal from $file:literal),+ $(,)?) => {
        &[$(($name, include_bytes!(concat!("../../templates/", $folder, "/", $file)))),+]
    };
}

pub fn register(registry: &mut Registry) {
    #[cfg(feature = "energy")]
    registry.template(Template {
        name: "site",
        about: "your own site with PV, battery and vehicles, from CSV files",
        files: files!("site": "site.toml" from "site.toml", "pv.csv" from "pv.csv", "load.csv" from "load.csv",
            "prices.csv" from "prices.csv", "vehicles.csv" from "vehicles.csv", "sockets.csv" from "sockets.csv"),
        first: "train site.toml",
    });
    #[cfg(feature = "evacuation")]
    registry.template(Template {
        name: "floor-plan",
        about: "responders in your own building, from a floor plan",
        files: files!("floor-plan": "building.toml" from "building.toml", "plan.wkt" from "plan.wkt"),
        first: "train building.toml",
    });
    #[cfg(feature = "uara")]
    registry.template(Template {
        name: "network",
        about: "users of a cellular network",
        files: files!("network": "network.toml" from "network.toml"),
        first: "train network.toml",
    });
    #[cfg(feature = "gym")]
    registry.template(Template {
        name: "gymnasium",
        about: "an environment of Gymnasium, in Python",
        files: files!("gymnasium": "gymnasium.toml" from "gymnasium.toml"),
        first: "train gymnasium.toml",
    });
    // Cargo would take a manifest with its own name for that of a package within this one.
    registry.template(Template {
        name: "rust",
        about: "a program in Rust with your own scenario",
        files: files!("rust": "Cargo.toml" from "Cargo.toml.txt", "src/main.rs" from "src/main.rs", "src/day.js" from "src/day.js",
            "room.toml" from "room.toml"),
        first: "$ cargo run --release -- train room.toml",
    });
}
