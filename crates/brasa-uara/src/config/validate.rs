//! Validation of the settings.

use brasa_env::field;

use super::{Candidates, Coverage, Reward, UaraConfig};
use crate::UaraError;
use crate::observe::Columns;

/// Farthest that anything stands from anything else, in m.
const MOST_M: f64 = 1e7;
/// Largest frequency and bandwidth, in Hz, and the longest step in s.
const MOST_HZ: f64 = 1e15;
/// Longest episode: an evaluation plays some to their end.
const MOST_STEPS: u32 = 10_000_000;

/// The rule of the length of an episode.
pub(crate) fn check_steps(steps: u32) -> Result<(), UaraError> {
    field::at_least_one("episode_steps", steps.into())?;
    Ok(field::at_most("episode_steps", steps.into(), MOST_STEPS.into())?)
}

/// A number without three hundred digits.
fn amount(x: f64) -> String {
    if x.abs() < 1e12 { format!("{x}") } else { format!("{x:e}") }
}

/// Largest number of users, stations or channels; they are counted in 16 bits.
const MOST: usize = 10_000;

impl UaraConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// [`UaraError::Field`] for the first invalid field.
    pub fn validate(&self) -> Result<(), UaraError> {
        for (field, value) in [("users", self.users), ("channels", self.channels)] {
            field::rule((1..=MOST).contains(&value), field, "must be between 1 and 10000", value)?;
        }
        self.validate_stations()?;
        for (field, value) in [("bandwidth_hz", self.bandwidth_hz), ("dynamics.step_secs", self.dynamics.step_secs)] {
            field::rule(
                value > 0.0 && value <= MOST_HZ,
                field,
                format!("must be above 0 and at most {MOST_HZ:e}"),
                amount(value),
            )?;
        }
        // Noise above all signals leaves ratios that 32 bits call 0, and observations that are no numbers.
        for (field, value, [least, most]) in [
            ("noise_dbm_per_hz", self.noise_dbm_per_hz, [-300.0, -50.0]),
            ("noise_figure_db", self.noise_figure_db, [0.0, 100.0]),
            ("min_sinr_db", self.min_sinr_db, [-300.0, 300.0]),
        ] {
            field::rule(
                (least..=most).contains(&value),
                field,
                format!("must be between {least} and {most} dB"),
                value,
            )?;
        }
        field::rule(
            self.max_bits_per_hz > 0.0,
            "max_bits_per_hz",
            "must be above 0 (`inf` for no limit)",
            self.max_bits_per_hz,
        )?;
        for (field, value) in [
            ("dynamics.speed_m_per_s", self.dynamics.speed_m_per_s),
            ("dynamics.shadowing_db", self.dynamics.shadowing_db),
            ("dynamics.carrier_hz", self.dynamics.carrier_hz),
        ] {
            let most = if field == "dynamics.carrier_hz" { MOST_HZ } else { 1e3 };
            field::rule((0.0..=most).contains(&value), field, format!("must be between 0 and {most}"), amount(value))?;
        }
        field::rule(
            !self.power_levels.is_empty() && self.power_levels.iter().all(|level| *level > 0.0 && *level <= 1.0),
            "power_levels",
            "must be one or more shares in (0, 1]",
            format!("{:?}", self.power_levels),
        )?;
        field::rule(
            self.n_stations() * self.channels * self.power_levels.len() < 1 << 24,
            "channels",
            "must leave fewer than 2^24 options per user",
            self.channels,
        )?;
        self.validate_task()?;
        Ok(field::fits_in_memory("users", self.users, self.bytes())?)
    }

    /// Memory that a network takes, roughly: powers of all links with what is drawn for them, observations of all users, and
    /// what receivers keep.
    fn bytes(&self) -> f64 {
        let [users, stations, channels] = [self.users, self.n_stations(), self.channels].map(|n| n as f64);
        let per_user = Columns::new(self).width() as f64;
        users * (28.0 * stations + 8.0 * per_user) + 16.0 * stations * (stations + channels)
    }

    fn validate_stations(&self) -> Result<(), UaraError> {
        for (name, tier) in ["macro_cells", "pico_cells", "femto_cells"].into_iter().zip(self.tiers()) {
            field::rule(tier.count <= MOST, format!("{name}.count"), "must be at most 10000", tier.count)?;
            let rule = format!("must be above 0 and at most {MOST_M}");
            field::rule(
                tier.count == 0 || (tier.radius_m > 0.0 && tier.radius_m <= MOST_M),
                format!("{name}.radius_m"),
                rule,
                amount(tier.radius_m),
            )?;
            field::rule(
                (-200.0..=200.0).contains(&tier.transmit_dbm),
                format!("{name}.transmit_dbm"),
                "must be between -200 and 200 dBm",
                tier.transmit_dbm,
            )?;
            let loss = tier.path_loss;
            let rule = "must have `at_1_m_db` between -100 and 300 and `decade_db` between 0 and 200";
            field::rule(
                (-100.0..=300.0).contains(&loss.at_1_m_db) && (0.0..=200.0).contains(&loss.decade_db),
                format!("{name}.path_loss"),
                rule,
                format!("{loss:?}"),
            )?;
        }
        field::rule(
            self.macro_cells.count != 0,
            "macro_cells.count",
            "must be at least 1: users live around large cells",
            0,
        )?;
        let rule = "must be at most 4 per large cell";
        field::rule(
            self.pico_cells.count <= 4 * self.macro_cells.count,
            "pico_cells.count",
            rule,
            self.pico_cells.count,
        )?;
        for (field, value) in [("layout.spacing_m", self.layout.spacing_m), ("layout.ring_m", self.layout.ring_m)] {
            field::rule(
                (0.0..=MOST_M).contains(&value),
                field,
                format!("must be between 0 and {MOST_M}"),
                amount(value),
            )?;
        }
        let rule = format!("must be between -{MOST_M} and {MOST_M}");
        field::rule(
            self.layout.first_m.iter().all(|x| (-MOST_M..=MOST_M).contains(x)),
            "layout.first_m",
            rule,
            format!("{:?}", self.layout.first_m),
        )?;
        Ok(())
    }

    fn validate_task(&self) -> Result<(), UaraError> {
        match self.candidates {
            Candidates::Covered => {
                let rule = "must be `all` or `strongest` where cells have no edge (`coverage`)";
                field::rule(self.coverage != Coverage::Open, "candidates", rule, "covered")?;
            }
            Candidates::Strongest(n) => {
                let rule = "must be between 1 and the number of stations";
                field::rule((1..=self.n_stations()).contains(&n), "candidates.strongest", rule, n)?;
            }
            Candidates::All => {}
        }
        field::rule(!self.observe.is_empty(), "observe", "must name at least one part", "none")?;
        let mut sorted = self.observe.clone();
        sorted.sort();
        field::rule(
            sorted.windows(2).all(|pair| pair[0] != pair[1]),
            "observe",
            "must name each part once",
            format!("{:?}", self.observe),
        )?;
        let amounts = match self.reward {
            Reward::Binary { satisfied, unsatisfied } => vec![satisfied, unsatisfied],
            Reward::ProfitCost { profit_per_mbps, cost_per_power, cost_per_action, .. } => {
                vec![profit_per_mbps, cost_per_power, cost_per_action]
            }
            Reward::Rate { per_mbps } | Reward::Contribution { per_mbps } => vec![per_mbps],
        };
        // Rewards are 32 bits wide.
        field::rule(
            amounts.iter().all(|amount| (-1e6..=1e6).contains(amount)),
            "reward",
            "must consist of numbers from -1000000 to 1000000",
            format!("{:?}", self.reward),
        )?;
        check_steps(self.episode_steps)?;
        let holds = !self.parity.bootstrap_success || self.end_when_satisfied;
        Ok(field::rule(holds, "parity.bootstrap_success", "must be off where success ends no episode", true)?)
    }
}
