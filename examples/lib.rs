//! Examples of Brasa as a library, one topic per file. Run one with
//! `cargo run --release -p brasa-examples --example train_cart_pole`.

/// The Rust of the book's pages compiles and runs.
#[cfg(doctest)]
mod pages {
    macro_rules! page {
        ($name:ident, $path:literal) => {
            #[doc = include_str!($path)]
            struct $name;
        };
    }
    page!(CityLearn, "../docs/citylearn.md");
    page!(Clusters, "../docs/clusters.md");
    page!(Export, "../docs/export.md");
    page!(Iquitos, "../docs/iquitos.md");
    page!(Station, "../docs/station.md");
}
