//! Observations of users, by column.

use std::ops::Range;

use brasa_env::Space;
use brasa_number::{Number, Single};

use crate::config::{Part, UaraConfig};
use crate::radio::{Link, Radio};

/// Powers are scaled from the noise, 0, to this many dB above it, 1.
const RANGE_DB: f64 = 80.0;

/// The level of a power in mW.
pub(crate) fn level<N: Number>(mw: N, noise_mw: f64) -> N {
    let db = mw.max_of(noise_mw).log10() * 10.0 - mw.constant(noise_mw).log10() * 10.0;
    db.min_of(RANGE_DB) / RANGE_DB
}

/// Layout of an observation. Every part has contiguous columns, in the order of [`Part`].
///
/// ```
/// use brasa_uara::{Columns, Part, UaraConfig};
///
/// let columns = Columns::new(&UaraConfig::cly2020());
/// // One bit per user; all users observe all bits.
/// assert_eq!((columns.width(), columns.shared_width()), (30, 30));
/// assert_eq!(columns.of(Part::State), Some(0..30));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    parts: Vec<(Part, Range<usize>)>,
    width: usize,
    shared_width: usize,
    n_candidates: usize,
}

impl Columns {
    /// The columns of `config`.
    pub fn new(config: &UaraConfig) -> Self {
        let mut names = config.observe.clone();
        names.sort();
        let mut width = 0;
        let parts = names.into_iter().map(|part| {
            let n = match part {
                Part::State | Part::Agent => config.users,
                Part::Satisfied => 1,
                Part::Gains | Part::LastStation | Part::Load => config.n_candidates(),
                Part::Interference | Part::LastChannel | Part::Tags => config.channels,
            };
            width += n;
            (part, width - n..width)
        });
        let parts = parts.collect();
        let shared_width = if config.observes(Part::State) { config.users } else { 0 };
        Self { parts, width, shared_width, n_candidates: config.n_candidates() }
    }

    /// The columns of `part`, if it is observed.
    pub fn of(&self, part: Part) -> Option<Range<usize>> {
        self.parts.iter().find(|(name, _)| *name == part).map(|(_, columns)| columns.clone())
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of stations that a user can choose.
    pub fn n_candidates(&self) -> usize {
        self.n_candidates
    }

    /// The number of columns that belong to no candidate or channel, of those per candidate, and of those per
    /// channel; the columns are in this order, one part after the other.
    pub fn blocks(&self) -> [usize; 3] {
        let count = |of: &[Part]| self.parts.iter().filter(|(part, _)| of.contains(part)).count();
        let context = self.parts.iter().filter(|(part, _)| *part <= Part::Satisfied);
        [
            context.map(|(_, columns)| columns.len()).sum(),
            count(&[Part::Gains, Part::LastStation, Part::Load]),
            count(&[Part::Interference, Part::LastChannel, Part::Tags]),
        ]
    }

    /// Columns that are the same for all users; they come first.
    pub fn shared_width(&self) -> usize {
        self.shared_width
    }

    pub(crate) fn space(&self) -> Space {
        let names = self.parts.iter().flat_map(|(part, columns)| {
            let name = column_name(*part);
            (0..columns.len()).map(move |i| format!("{name}_{i}"))
        });
        Space::uniform_box(0.0, 1.0, names)
    }

    /// The parts that are not shared, with their columns among them.
    pub(crate) fn own(&self) -> impl Iterator<Item = (Part, Range<usize>)> {
        let shared = self.shared_width;
        let own = self.parts.iter().filter(|(part, _)| *part != Part::State);
        own.map(move |(part, columns)| (*part, columns.start - shared..columns.end - shared))
    }
}

fn column_name(part: Part) -> &'static str {
    match part {
        Part::State => "state",
        Part::Agent => "agent",
        Part::Satisfied => "satisfied",
        Part::Gains => "gain",
        Part::LastStation => "last_station",
        Part::Load => "load",
        Part::Interference => "interference",
        Part::LastChannel => "last_channel",
        Part::Tags => "tag",
    }
}

/// Inputs of the observations of one environment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    /// `[n_users, n_stations]`, mW.
    pub received_mw: &'a [f32],
    pub reached: &'a [bool],
    /// `[n_users, n_candidates]`: the station of each rank; empty if all stations are candidates, in their order.
    pub ranks: &'a [u16],
    /// The links; `None` before the first decision.
    pub links: Option<&'a [Link]>,
    pub satisfied: &'a [bool],
    /// `[n_stations]`: number of users that request each station.
    pub loads: &'a [u16],
    /// `[n_users, n_channels]`: interference at each user, mW.
    pub heard_mw: &'a [f32],
    /// `[n_users, n_channels]`.
    pub tags: &'a [f32],
}

/// Writes the observation of `user` without the shared state.
pub(crate) fn write_own(columns: &Columns, radio: &Radio, view: &View<'_>, user: usize, row: &mut [f32]) {
    let (stations, channels, candidates) = (radio.n_stations, radio.n_channels, columns.n_candidates);
    let noise = radio.noise_mw as f32;
    let level = |mw: f32| level(Single(mw), radio.noise_mw).0;
    let own_link = view.links.map(|links| links[user]);
    let ranks = view.ranks.get(user * candidates..(user + 1) * candidates);
    // The station of a column, and the column of a station.
    let station_at = |column: usize| ranks.map_or(column, |ranks| usize::from(ranks[column]));
    let column_of = |station: u16| match ranks {
        Some(ranks) => ranks.iter().position(|ranked| *ranked == station),
        None => Some(usize::from(station)),
    };
    for (part, columns) in columns.own() {
        let row = &mut row[columns];
        let bit = |row: &mut [f32], at: Option<usize>| {
            row.fill(0.0);
            if let Some(at) = at {
                row[at] = 1.0;
            }
        };
        match part {
            Part::State => unreachable!("it is shared"),
            Part::Agent => bit(row, Some(user)),
            Part::Satisfied => row[0] = f32::from(u8::from(view.satisfied[user])),
            Part::Gains => row.iter_mut().enumerate().for_each(|(column, x)| {
                let link = user * stations + station_at(column);
                *x = if view.reached[link] { level(view.received_mw[link]) } else { 0.0 };
            }),
            Part::LastStation => bit(row, own_link.and_then(|link| column_of(link.station))),
            Part::Load => {
                let share = 1.0 / view.satisfied.len() as f32;
                row.iter_mut().enumerate().for_each(|(column, x)| {
                    *x = (share * f32::from(view.loads[station_at(column)])).min(1.0);
                });
            }
            Part::Interference => {
                let heard = &view.heard_mw[user * channels..(user + 1) * channels];
                row.iter_mut().zip(heard).for_each(|(x, mw)| *x = level(*mw + noise));
            }
            Part::LastChannel => bit(row, own_link.map(|link| usize::from(link.channel))),
            Part::Tags => row.copy_from_slice(&view.tags[user * channels..(user + 1) * channels]),
        }
    }
}
