//! The page of a run: `report.html`, a single file.

mod page;
mod section;

pub(crate) use page::{escape, filled, page};
pub use section::{Section, SectionContext};
