//! The subcommands, one per file.

pub mod baseline;
pub mod check;
pub mod compare;
pub mod devices;
pub mod eval;
pub mod export;
pub mod import;
pub mod list;
pub mod new;
pub mod plan;
mod record;
pub mod reference;
pub mod report;
pub mod search;
pub mod shell;
pub mod sweep;
pub mod train;
