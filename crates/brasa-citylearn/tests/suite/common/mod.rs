//! Data sets, recordings and random districts.

pub mod data;
pub mod district;
pub mod golden;
pub mod optimum;
pub mod thermal;
