//! The settings of a network, and the networks of the literature as settings.

use serde::{Deserialize, Serialize};

use crate::radio::{Interference, PathLoss, Radio, dbm_to_mw};

pub(crate) mod validate;

/// Everything that can be chosen about a network.
///
/// [`UaraConfig::default`] is the recommended task, [`UaraConfig::physical`]; [`UaraConfig::cly2020`] and
/// [`UaraConfig::zhao2019`] are those of earlier work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UaraConfig {
    /// Users, each one an agent. Default 30.
    pub users: usize,
    /// Channels that all stations share. Default 20. With more channels than users of a cell there is always a free one.
    pub channels: usize,
    /// Bandwidth of a channel, Hz. Default 180,000: a resource block of LTE.
    pub bandwidth_hz: f64,
    /// Noise at the antenna, dBm per Hz. Default -174: thermal noise at 290 K.
    pub noise_dbm_per_hz: f64,
    /// What a receiver adds to the noise, dB. Default 9 (3GPP TR 36.814, table A.2.1.1-2); 0 in the earlier systems.
    pub noise_figure_db: f64,
    /// Ratio of signal to interference and noise from which a user is satisfied, dB. Default 5.
    pub min_sinr_db: f64,
    /// Largest spectral efficiency, bit/s per Hz. Default 7.4063 (256-QAM, 3GPP TS 38.214, table 5.2.2.1-3); `inf` for
    /// Shannon's capacity without a limit, under which a user beside a femtocell outweighs several others.
    pub max_bits_per_hz: f64,
    /// Large cells; users live around them.
    pub macro_cells: Tier,
    /// Small cells on a ring around the large ones.
    pub pico_cells: Tier,
    /// The smallest cells, anywhere around the large ones.
    pub femto_cells: Tier,
    /// Where everything stands, and for how long.
    pub layout: LayoutConfig,
    /// Whether a cell ends at its radius. Default `open`.
    pub coverage: Coverage,
    /// How interference adds up. Default `per-transmitter`.
    pub interference: Interference,
    /// The shares of its power among which a user chooses as well. Default `[1.0]`: no choice. None of the earlier systems
    /// has it. Each level multiplies the number of actions.
    pub power_levels: Vec<f64>,
    /// How links change while an episode goes on.
    pub dynamics: DynamicsConfig,
    /// Among which stations a user chooses. Default the 4 strongest.
    #[serde(deserialize_with = "brasa_env::one_variant")]
    pub candidates: Candidates,
    /// What a user sees, in the order of [`Part`]. Default everything but `state` and `agent`.
    pub observe: Vec<Part>,
    /// What a user is paid for. Default what it adds to the sum of all rates.
    #[serde(deserialize_with = "brasa_env::one_variant")]
    pub reward: Reward,
    /// Whether everybody is paid the mean of all rewards. Default off: with many users the mean hardly depends on one.
    pub team_reward: bool,
    /// What users use before their first decision. Default `strongest`.
    pub start: Start,
    /// Steps of an episode. Default 40.
    pub episode_steps: u32,
    /// Whether an episode ends once everybody is satisfied. Default off.
    pub end_when_satisfied: bool,
    /// Defects of earlier systems, to repeat their numbers; default none.
    pub parity: Parity,
}

/// The stations of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// Stations.
    pub count: usize,
    /// Radius of a cell, m; what it does says `coverage`. Users and femtocells stand within that of a large cell.
    pub radius_m: f64,
    /// Power on each channel, dBm.
    pub transmit_dbm: f64,
    /// Path loss to a user.
    pub path_loss: PathLoss,
}

/// Where stations and users stand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LayoutConfig {
    /// Position of the first large cell, m. Default `[500, 500]`.
    pub first_m: [f64; 2],
    /// Distance between large cells, which stand in a row, m. Default 900.
    pub spacing_m: f64,
    /// Distance of small cells from their large one, m; four around each. Default 250.
    pub ring_m: f64,
    /// How femtocells and users spread around large cells. Default `uniform`.
    pub spread: Spread,
    /// When a new layout is drawn. Default `episode`. What is learned on one layout holds for that layout only.
    pub redraw: Redraw,
    /// Seed of layouts that outlast an episode. Default 0.
    pub seed: u64,
}

/// How positions spread over the disk of a large cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Equally over the area: the distance is `R sqrt(U)`.
    #[default]
    Uniform,
    /// Crowded at the center: the distance is `R U`.
    Center,
}

/// When a new layout is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// No: how far a station reaches, its power and the noise decide.
    #[default]
    Open,
    /// Beyond it a station serves nobody, but still disturbs.
    Service,
    /// Beyond it a station neither serves nor disturbs.
    Everything,
}

/// How links change from step to step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DynamicsConfig {
    /// Duration of a step, s. Default 0.01.
    pub step_secs: f64,
    /// Speed at which users walk from one random point to the next, m/s. Default 1.5; 0 keeps them in place.
    pub speed_m_per_s: f64,
    /// Standard deviation of the shadowing that is drawn for each link of a layout, dB. Default 8 (3GPP TR 36.814); 0
    /// for none.
    pub shadowing_db: f64,
    /// Whether links fade: Rayleigh fading whose correlation from step to step follows from the speed (Jakes 1974),
    /// `J0(2 pi v f t / c)`. Default on.
    pub fading: bool,
    /// Frequency of the carrier, Hz; what fading depends on. Default 2e9.
    pub carrier_hz: f64,
}

/// Among which stations a user chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Candidates {
    /// All, reachable or not.
    All,
    /// All, but the mask forbids those whose cell it does not stand in.
    Covered,
    /// This many, those that reach it best on average. Actions and observations name them by their rank, so that what is
    /// learned on one layout means the same on another.
    Strongest(usize),
}

/// What a user sees. Parts come in this order, whatever the order of their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Who is satisfied: one bit per user, the same for all.
    State,
    /// Which user it is: one bit per user.
    Agent,
    /// Whether it is satisfied itself.
    Satisfied,
    /// What it receives of each candidate at full power, above the noise.
    Gains,
    /// The station that it used last: one bit per candidate.
    LastStation,
    /// Share of all users that asked each candidate in the last step.
    Load,
    /// What it heard of the others on each channel in the last step, above the noise.
    Interference,
    /// The channel that it used last: one bit per channel.
    LastChannel,
    /// A number per channel, drawn for the episode, by which users that see the same can decide differently.
    Tags,
}

/// What a user is paid for at each step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Reward {
    /// One amount where it is satisfied, another where not.
    Binary {
        /// Where it is.
        satisfied: f64,
        /// Where it is not.
        unsatisfied: f64,
    },
    /// What its rate earns, less what sending and acting cost.
    ProfitCost {
        /// Per Mb/s.
        profit_per_mbps: f64,
        /// Per unit of the power that its station spends on it.
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
    /// What it adds to the sum of all rates: that sum less what it would be if the user were silent. Who earns more by it
    /// serves everybody (the wonderful life utility of Wolpert and Tumer 2001).
    Contribution {
        /// Per Mb/s.
        per_mbps: f64,
    },
}

/// The unit in which power is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PowerUnit {
    /// Watts.
    #[default]
    W,
    /// Milliwatts.
    Mw,
    /// dBm, as one earlier system has it; a level is no amount of power, so costs do not add up.
    Dbm,
}

/// What users use before their first decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// Nothing; nobody is satisfied.
    Nothing,
    /// The station that they receive best, on a random channel.
    #[default]
    Strongest,
}

/// Defects of earlier systems. All off by default.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Parity {
    /// The step at which everybody is satisfied ends the episode without being terminal, so that its value is bootstrapped.
    pub bootstrap_success: bool,
    /// Users may stand closer than 1 m to a station, where the path loss turns into a gain.
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
    /// The recommended task: layouts drawn anew for every episode, walking users, shadowing and fading, powers and noise
    /// as 3GPP TR 36.814 has them for 2 GHz, rates up to 256-QAM.
    ///
    /// Stations spread their power evenly over the channels: 46, 30 and 20 dBm over 20 channels are 33, 17 and 7 dBm on
    /// each. Users see what a terminal can measure, and are paid what they add to the sum of
    /// all rates.
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
    /// Reproduced are topology, powers, path loss, hard cell edges for signal and interference, the sum over links, the
    /// shared bits as the only observation, rewards of 1 and -1, and episodes that end at success or after 500 steps. Its
    /// defects are off: a success is terminal (`parity.bootstrap_success` undoes that) and users stay 1 m away from
    /// stations (`parity.unguarded_distance`). Its learners may choose stations that do not reach them; here
    /// `candidates = "all"` says so.
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

    /// The task as the paper describes it (Zhao et al. 2019, IEEE Trans. Wireless Commun. 18(11), 5141-5152): 50 users who
    /// start at their strongest station, pay for power and actions, and are admitted by stations.
    ///
    /// The paper's tables were not available: topology, powers and prices are those of [`UaraConfig::cly2020`], and nothing
    /// that is computed here can be compared with its curves. Power costs watts.
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

    /// Stations among which a user chooses.
    pub fn n_candidates(&self) -> usize {
        match self.candidates {
            Candidates::All | Candidates::Covered => self.n_stations(),
            Candidates::Strongest(n) => n,
        }
    }

    /// Whether the users see `part`.
    pub fn observes(&self, part: Part) -> bool {
        self.observe.contains(&part)
    }

    /// What does not change.
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
