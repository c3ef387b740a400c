//! The page of a run: `report.html`, a single file.

mod device;
mod page;
mod section;

pub(crate) use device::OUT_OF_MEMORY;
pub(crate) use page::{escape, filled, page};
pub use section::{Section, SectionContext};
