//! The page of a run, `report.html`, which needs nothing else.

mod page;
mod section;

pub(crate) use page::{escape, page, with_assets};
pub use section::{Section, SectionContext};
