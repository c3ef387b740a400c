//! Comparison of groups of runs in the same episodes: grouping, statistics and output.

mod curves;
mod groups;
mod output;
mod page;
mod summary;

pub(crate) use curves::GroupCurves;
pub(crate) use groups::{
    Group, Groups, Member, Training, first_difference, refuse_other_scenario, settings, training_of,
};
pub(crate) use output::{to_csv, to_json, to_text};
pub(crate) use page::{html_table, page};
pub(crate) use summary::{Participant, Summary, note, quantities};
