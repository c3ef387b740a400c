//! Settings of a network, and presets from the literature.

use serde::{Deserialize, Serialize};

use crate::radio::{Interference, PathLoss, Radio, dbm_to_mw};

pub(crate) mod validate;

/// Settings of a network.
///
/// [`UaraConfig::default`] is the recommended task, [`UaraConfig::physical`]; [`UaraConfig::cly2020`] and
/// [`UaraConfig::zhao2019`] are those of earlier work.
///
/// ```
/// use brasa_uara::UaraConfig;
///
/// let config = UaraConfig { users: 10, channels: 5, ..UaraConfig::physical() };
/// config.validate()?;
/// assert_eq!((config.n_stations(), config.n_candidates()), (26, 4));
/// let error = UaraConfig { power_levels: Vec::new(), ..config }.validate().unwrap_err();
/// assert_eq!(error.to_string(), "`power_levels` must be one or more shares in (0, 1], got []");
/// # Ok::<(), brasa_uara::UaraError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UaraConfig {
    /// Number of users; each is an agent. Default 30.
    pub users: usize,
    /// Number of channels, shared by all stations. Default 20. With more channels than users of a cell there is always
    /// a free one.
    pub channels: usize,
    /// Bandwidth of a channel, Hz. Default 180,000: a resource block of LTE.
    pub bandwidth_hz: f64,
    /// Noise density at the antenna, dBm per Hz. Default -174: thermal noise at 290 K.
    pub noise_dbm_per_hz: f64,
    /// Noise figure of the receiver, dB. Default 9 (3GPP TR 36.814, table A.2.1.1-2); 0 in the earlier systems.
    pub noise_figure_db: f64,
    /// Smallest SINR of a satisfied user, dB. Default 5.
    pub min_sinr_db: f64,
    /// Largest spectral efficiency, bit/s per Hz. Default 7.4063 (256-QAM, 3GPP TS 38.214, table 5.2.2.1-3); `inf` for
    /// Shannon's capacity without a limit, where one user near a femtocell outweighs several others.
    pub max_bits_per_hz: f64,
    /// Large cells; users are distributed around them.
    pub macro_cells: Tier,
    /// Small cells on a ring around the large ones.
    pub pico_cells: Tier,
    /// The smallest cells, at random positions around the large ones.
    pub femto_cells: Tier,
    /// Positions, and when they change.
    pub layout: LayoutConfig,
    /// Whether a cell ends at its radius. Default `open`.
    pub coverage: Coverage,
    /// Model of interference. Default `per-transmitter`.
    pub interference: Interference,
    /// Transmit powers that a user can choose, as fractions of full power. Default `[1.0]`: no choice. None of the
    /// earlier systems has this choice. The number of actions is proportional to the number of levels.
    pub power_levels: Vec<f64>,
    /// Changes of links during an episode.
    pub dynamics: DynamicsConfig,
    /// Among which stations a user chooses. Default the 4 strongest.
    #[serde(deserialize_with = "brasa_env::one_variant")]
    pub candidates: Candidates,
    /// Parts of an observation, in the order of [`Part`]. Default all except `state` and `agent`.
    pub observe: Vec<Part>,
    /// What a user is paid for. Default what it adds to the sum of all rates.
    #[serde(deserialize_with = "brasa_env::one_variant")]
    pub reward: Reward,
    /// Whether every user gets the mean of all rewards. Default off: with many users the mean hardly depends on one
    /// user.
    pub team_reward: bool,
    /// Links before the first decision. Default `strongest`.
    pub start: Start,
    /// Steps of an episode. Default 40.
    pub episode_steps: u32,
    /// Whether an episode ends when all users are satisfied. Default off.
    pub end_when_satisfied: bool,
    /// Defects of earlier systems, to reproduce their numbers; default none.
    pub parity: Parity,
}

/// The stations of one kind.
///
/// ```
/// use brasa_uara::{PathLoss, Tier, UaraConfig};
///
/// let path_loss = PathLoss { at_1_m_db: 37.0, decade_db: 30.0 };
/// let femto_cells = Tier { count: 4, radius_m: 30.0, transmit_dbm: 7.0, path_loss };
/// let config = UaraConfig { femto_cells, ..UaraConfig::default() };
/// config.validate()?;
/// // Two large cells, eight small ones and four femtocells.
/// assert_eq!(config.n_stations(), 14);
/// # Ok::<(), brasa_uara::UaraError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// Number of stations.
    pub count: usize,
    /// Radius of a cell, m; see `coverage`. Users and femtocells are within the radius of a large cell.
    pub radius_m: f64,
    /// Power on each channel, dBm.
    pub transmit_dbm: f64,
    /// Path loss to a user.
    pub path_loss: PathLoss,
}

/// Positions of stations and users.
///
/// ```
/// use brasa_uara::{LayoutConfig, Redraw, UaraConfig};
///
/// let layout = LayoutConfig { redraw: Redraw::Never, seed: 3, ..LayoutConfig::default() };
/// let config = UaraConfig { layout, ..UaraConfig::default() };
/// config.validate()?;
/// assert_eq!(config.layout.spacing_m, 900.0);
/// # Ok::<(), brasa_uara::UaraError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LayoutConfig {
    /// Position of the first large cell, m. Default `[500, 500]`.
    pub first_m: [f64; 2],
    /// Distance between large cells, which are in a row, m. Default 900.
    pub spacing_m: f64,
    /// Distance of small cells from their large cell, m; four around each. Default 250.
    pub ring_m: f64,
    /// Distribution of femtocells and users around large cells. Default `uniform`.
    pub spread: Spread,
    /// When a new layout is sampled. Default `episode`. A policy trained on one layout is valid only for this layout.
    pub redraw: Redraw,
    /// Seed of layouts that outlast an episode. Default 0.
    pub seed: u64,
}

/// Distribution of positions over the disk of a large cell.
///
/// ```
/// use brasa_uara::{Spread, UaraConfig};
///
/// let config: UaraConfig = toml::from_str("layout = { spread = \"center\" }")?;
/// assert_eq!(config.layout.spread, Spread::Center);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Uniform over the area: the distance is `R sqrt(U)`.
    #[default]
    Uniform,
    /// Denser at the center: the distance is `R U`.
    Center,
}

/// When a new layout is sampled.
///
/// ```
/// use brasa_uara::{Redraw, UaraConfig};
///
/// let config: UaraConfig = toml::from_str("layout = { redraw = \"environment\" }")?;
/// assert_eq!(config.layout.redraw, Redraw::Environment);
/// assert_eq!(UaraConfig::default().layout.redraw, Redraw::Episode);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Redraw {
    /// Never: one layout for all environments of all runs with the same `layout.seed`.
    Never,
    /// Once per environment.
    Environment,
    /// At every episode.
    #[default]
    Episode,
}

impl Redraw {
    /// Where an evaluation takes place, for people: on which layouts, or whatever else is drawn.
    pub(crate) fn place(self, what: &str) -> String {
        match self {
            Self::Never => format!("the {what} of training"),
            // Those of the first environments are the same; training may have had fewer.
            Self::Environment => format!("one {what} for each environment, with those of training first"),
            Self::Episode => format!("unseen {what}s"),
        }
    }
}

/// Whether a cell ends at its radius.
///
/// ```
/// use brasa_uara::{Coverage, UaraConfig};
///
/// let config: UaraConfig = toml::from_str("coverage = \"service\"")?;
/// assert_eq!(config.coverage, Coverage::Service);
/// assert_eq!(UaraConfig::default().coverage, Coverage::Open);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// No: the reach of a station depends on its power and the noise.
    #[default]
    Open,
    /// Outside its radius a station does not serve, but interferes.
    Service,
    /// Outside its radius a station neither serves nor interferes.
    Everything,
}

/// Changes of links from step to step.
///
/// ```
/// use brasa_uara::{DynamicsConfig, UaraConfig};
///
/// let config = UaraConfig { dynamics: DynamicsConfig::still(), ..UaraConfig::default() };
/// config.validate()?;
/// assert!(!config.dynamics.changes() && DynamicsConfig::default().changes());
/// # Ok::<(), brasa_uara::UaraError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DynamicsConfig {
    /// Duration of a step, s. Default 0.01.
    pub step_secs: f64,
    /// Walking speed of users from one random point to the next, m/s. Default 1.5; 0 for no movement.
    pub speed_m_per_s: f64,
    /// Standard deviation of the shadowing of each link of a layout, dB. Default 8 (3GPP TR 36.814); 0
    /// for none.
    pub shadowing_db: f64,
    /// Whether links fade: Rayleigh fading; the correlation from step to step depends on the speed (Jakes 1974),
    /// `J0(2 pi v f t / c)`. Default on.
    pub fading: bool,
    /// Carrier frequency, Hz, used by fading. Default 2e9.
    pub carrier_hz: f64,
}

/// The stations that a user can choose.
///
/// ```
/// use brasa_uara::{Candidates, UaraConfig};
///
/// let config: UaraConfig = toml::from_str("candidates = { strongest = 6 }")?;
/// assert_eq!(config.candidates, Candidates::Strongest(6));
/// assert_eq!(config.n_candidates(), 6);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Candidates {
    /// All, reachable or not.
    All,
    /// All, but the mask excludes stations whose cell does not contain the user.
    Covered,
    /// This number of stations, those with the strongest mean signal. Actions and observations refer to them by rank,
    /// so that they have the same meaning on every layout.
    Strongest(usize),
}

/// A part of an observation. Parts have this order, independent of the order in the config.
///
/// ```
/// use brasa_uara::{Columns, Part, UaraConfig};
///
/// let config = UaraConfig { observe: vec![Part::Gains, Part::Satisfied], ..UaraConfig::default() };
/// let columns = Columns::new(&config);
/// // `Satisfied` comes first, regardless of the order in the config.
/// assert_eq!((columns.of(Part::Satisfied), columns.of(Part::Gains)), (Some(0..1), Some(1..5)));
/// assert_eq!(columns.of(Part::Load), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Whether each user is satisfied: one bit per user, shared by all users.
    State,
    /// The index of the user, one-hot.
    Agent,
    /// Whether the user is satisfied.
    Satisfied,
    /// Received power of each candidate at full power, relative to the noise.
    Gains,
    /// The last station, one-hot over candidates.
    LastStation,
    /// Fraction of all users that requested each candidate in the last step.
    Load,
    /// Interference on each channel in the last step, relative to the noise.
    Interference,
    /// The last channel, one-hot.
    LastChannel,
    /// A random number per channel, constant over the episode, so that users with equal observations can choose
    /// differently.
    Tags,
}

/// The reward of a user at each step.
///
/// ```
/// use brasa_uara::{Reward, UaraConfig};
///
/// let config: UaraConfig = toml::from_str("reward = { rate = { per_mbps = 2.0 } }")?;
/// assert_eq!(config.reward, Reward::Rate { per_mbps: 2.0 });
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Reward {
    /// One of two values, by satisfaction.
    Binary {
        /// Reward of a satisfied user.
        satisfied: f64,
        /// Reward of an unsatisfied user.
        unsatisfied: f64,
    },
    /// Profit of the rate minus the cost of power and of actions.
    ProfitCost {
        /// Per Mb/s.
        profit_per_mbps: f64,
        /// Per unit of the transmit power of its station.
        cost_per_power: f64,
        /// The unit of that power.
        unit: PowerUnit,
        /// Per step.
        cost_per_action: f64,
    },
    /// Its rate.
    Rate {
        /// Per Mb/s.
        per_mbps: f64,
    },
    /// The contribution to the sum of all rates: this sum minus the sum without the user (difference reward, the
    /// wonderful life utility of Wolpert and Tumer 2001).
    Contribution {
        /// Per Mb/s.
        per_mbps: f64,
    },
}

/// The unit of power in costs.
///
/// ```
/// use brasa_uara::{PowerUnit, Reward, UaraConfig};
///
/// let Reward::ProfitCost { unit, .. } = UaraConfig::zhao2019().reward else { panic!("it has costs") };
/// assert_eq!(unit, PowerUnit::W);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PowerUnit {
    /// Watts.
    #[default]
    W,
    /// Milliwatts.
    Mw,
    /// dBm, as in one earlier system; levels in dBm are logarithmic, so costs are not additive.
    Dbm,
}

/// Links before the first decision.
///
/// ```
/// use brasa_uara::{Start, UaraConfig};
///
/// let config: UaraConfig = toml::from_str("start = \"nothing\"")?;
/// assert_eq!(config.start, Start::Nothing);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// No links; no user is satisfied.
    Nothing,
    /// The strongest station, on a random channel.
    #[default]
    Strongest,
}

/// Defects of earlier systems. All off by default.
///
/// ```
/// use brasa_uara::{Parity, UaraConfig};
///
/// let parity = Parity { bootstrap_success: true, ..Parity::default() };
/// UaraConfig { parity, ..UaraConfig::cly2020() }.validate()?;
/// // In the default task, success ends no episode.
/// assert!(UaraConfig { parity, ..UaraConfig::physical() }.validate().is_err());
/// # Ok::<(), brasa_uara::UaraError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parity {
    /// The step at which all users are satisfied ends the episode as a truncation, so that the next value is
    /// bootstrapped.
    pub bootstrap_success: bool,
    /// Users may be closer than 1 m to a station, where the path loss becomes a gain.
    pub unguarded_distance: bool,
}

/// Stations of one kind, in the order of the fields.
fn tier(count: usize, radius_m: f64, transmit_dbm: f64, at_1_m_db: f64, decade_db: f64) -> Tier {
    Tier { count, radius_m, transmit_dbm, path_loss: PathLoss { at_1_m_db, decade_db } }
}

impl Default for LayoutConfig {
    fn default() -> Self {
        Self {
            first_m: [500.0, 500.0],
            spacing_m: 900.0,
            ring_m: 250.0,
            spread: Spread::Uniform,
            redraw: Redraw::Episode,
            seed: 0,
        }
    }
}

impl Default for DynamicsConfig {
    fn default() -> Self {
        Self { step_secs: 0.01, speed_m_per_s: 1.5, shadowing_db: 8.0, fading: true, carrier_hz: 2e9 }
    }
}

impl DynamicsConfig {
    /// Links that never change.
    pub fn still() -> Self {
        Self { speed_m_per_s: 0.0, shadowing_db: 0.0, fading: false, ..Self::default() }
    }

    /// Whether links differ from step to step.
    pub fn changes(&self) -> bool {
        self.speed_m_per_s > 0.0
    }
}

impl Default for UaraConfig {
    fn default() -> Self {
        Self::physical()
    }
}

impl UaraConfig {
    /// The recommended task: a new layout for every episode, walking users, shadowing and fading, powers and noise
    /// of 3GPP TR 36.814 for 2 GHz, rates up to 256-QAM.
    ///
    /// Stations divide their power evenly over the channels: 46, 30 and 20 dBm over 20 channels are 33, 17 and 7 dBm on
    /// each. Users observe quantities that a terminal can measure; the reward is the contribution to the sum of all
    /// rates.
    pub fn physical() -> Self {
        Self {
            users: 30,
            channels: 20,
            bandwidth_hz: 180e3,
            noise_dbm_per_hz: -174.0,
            noise_figure_db: 9.0,
            min_sinr_db: 5.0,
            max_bits_per_hz: 7.4063,
            // 128.1 + 37.6 log10(d / km), 140.7 + 36.7 log10(d / km) and 127 + 30 log10(d / km), for d in m.
            macro_cells: tier(2, 500.0, 33.0, 15.3, 37.6),
            pico_cells: tier(8, 100.0, 17.0, 30.6, 36.7),
            femto_cells: tier(16, 30.0, 7.0, 37.0, 30.0),
            layout: LayoutConfig::default(),
            coverage: Coverage::Open,
            interference: Interference::PerTransmitter,
            power_levels: vec![1.0],
            dynamics: DynamicsConfig::default(),
            candidates: Candidates::Strongest(4),
            observe: vec![
                Part::Satisfied,
                Part::Gains,
                Part::LastStation,
                Part::Load,
                Part::Interference,
                Part::LastChannel,
                Part::Tags,
            ],
            reward: Reward::Contribution { per_mbps: 1.0 },
            team_reward: false,
            start: Start::Strongest,
            episode_steps: 40,
            end_when_satisfied: false,
            parity: Parity::default(),
        }
    }

    /// The network of the public repository `cly1994jlu/UARA-DRL`: 30 users, 26 stations, 20 channels; nothing moves or
    /// fades, and the layout never changes.
    ///
    /// Topology, powers, path loss, hard cell edges for signal and interference, interference per link, the shared bits
    /// as the only observation, rewards of 1 and -1, and episodes until success or 500 steps are reproduced. Its
    /// defects are off: a success is terminal (unlike with `parity.bootstrap_success`) and users are at least 1 m from
    /// stations (unlike with `parity.unguarded_distance`). Its learners can choose stations that do not reach them; use
    /// `candidates = "all"` for this.
    pub fn cly2020() -> Self {
        Self {
            noise_figure_db: 0.0,
            max_bits_per_hz: f64::INFINITY,
            macro_cells: tier(2, 500.0, 40.0, 34.0, 40.0),
            pico_cells: tier(8, 100.0, 30.0, 34.0, 40.0),
            femto_cells: tier(16, 30.0, 20.0, 37.0, 30.0),
            layout: LayoutConfig { spread: Spread::Center, redraw: Redraw::Never, ..LayoutConfig::default() },
            coverage: Coverage::Everything,
            interference: Interference::PerLink,
            dynamics: DynamicsConfig::still(),
            candidates: Candidates::All,
            observe: vec![Part::State],
            reward: Reward::Binary { satisfied: 1.0, unsatisfied: -1.0 },
            start: Start::Nothing,
            episode_steps: 500,
            end_when_satisfied: true,
            ..Self::physical()
        }
    }

    /// The task as described in the paper (Zhao et al. 2019, IEEE Trans. Wireless Commun. 18(11), 5141-5152): 50 users
    /// start at their strongest station, power and actions have costs, and stations admit users.
    ///
    /// The paper's tables were not available: topology, powers and prices are those of [`UaraConfig::cly2020`], so
    /// results cannot be compared with the paper's curves. Costs use power in watts.
    pub fn zhao2019() -> Self {
        Self {
            users: 50,
            interference: Interference::PerTransmitter,
            reward: Reward::ProfitCost {
                profit_per_mbps: 0.5,
                cost_per_power: 0.0005,
                unit: PowerUnit::W,
                cost_per_action: 0.001,
            },
            start: Start::Strongest,
            ..Self::cly2020()
        }
    }

    /// The three kinds of stations, in the order of their numbers.
    pub fn tiers(&self) -> [Tier; 3] {
        [self.macro_cells, self.pico_cells, self.femto_cells]
    }

    /// The kind of every station, in the order of their numbers.
    pub fn station_tiers(&self) -> impl Iterator<Item = Tier> {
        self.tiers().into_iter().flat_map(|tier| std::iter::repeat_n(tier, tier.count))
    }

    /// Stations of all kinds.
    pub fn n_stations(&self) -> usize {
        self.tiers().iter().map(|tier| tier.count).sum()
    }

    /// Number of stations that a user can choose.
    pub fn n_candidates(&self) -> usize {
        match self.candidates {
            Candidates::All | Candidates::Covered => self.n_stations(),
            Candidates::Strongest(n) => n,
        }
    }

    /// Whether observations contain `part`.
    pub fn observes(&self, part: Part) -> bool {
        self.observe.contains(&part)
    }

    /// The constants of the network.
    pub fn radio(&self) -> Radio {
        Radio {
            n_users: self.users,
            n_stations: self.n_stations(),
            n_channels: self.channels,
            power_levels: self.power_levels.clone(),
            bandwidth_hz: self.bandwidth_hz,
            noise_mw: dbm_to_mw(self.noise_dbm_per_hz + self.noise_figure_db) * self.bandwidth_hz,
            min_sinr: dbm_to_mw(self.min_sinr_db),
            max_bits_per_hz: self.max_bits_per_hz.is_finite().then_some(self.max_bits_per_hz),
            interference: self.interference,
        }
    }
}
