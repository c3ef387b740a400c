//! One idea per file: how Brasa is used as a library. Run one with
//! `cargo run --release -p brasa-examples --example train_cart_pole`.
