//! Searches for hyperparameters: trials of other settings, the next from the results of those before.

mod config;
mod page;
mod prune;
mod record;
mod space;

pub(crate) use config::{Metric, Pruner, SEARCH, SearchConfig};
pub(crate) use page::{Page, page};
pub(crate) use prune::prunes;
pub(crate) use record::{Record, State, Trial};
pub(crate) use space::Space;
