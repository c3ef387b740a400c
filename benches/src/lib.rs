//! benches of Brasa.
