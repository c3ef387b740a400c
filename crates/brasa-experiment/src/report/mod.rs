//! The page of a run: `report.html`, a single file.
//!
//! Every chart, plan and table has buttons that save it as SVG (170 mm wide, text of 8 pt, by day) and as CSV. Charts have a title, a legend
//! whose entries switch lines, a summary for screen readers, and a cursor that the arrow keys move. On paper, a chart is its SVG, and a table
//! with many controllers is divided into parts that fit a page of A4.
//!
//! Lines differ by color and by the shape of their marks. The eight colors have the hues of Okabe and Ito (2008); any two differ by at least 18
//! in CIELAB, also in simulations of protanopia, deuteranopia and tritanopia (Machado et al. 2009). `assets/page.css` defines them by day and
//! by night; a test of `brasa-cli` checks distances and contrasts.

mod device;
mod page;
mod player;
mod section;
mod table;

pub(crate) use device::OUT_OF_MEMORY;
pub(crate) use page::{escape, filled, page};
pub(crate) use player::Player;
pub use section::{Section, SectionContext};
pub(crate) use table::boxed;
