//! Examples of Brasa as a library, one topic per file. Run one with
//! `cargo run --release -p brasa-examples --example train_cart_pole`.
