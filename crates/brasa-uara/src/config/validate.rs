//! Validation of the settings.

use super::{Candidates, Coverage, Reward, UaraConfig};
use crate::{UaraError, error::fail};

/// Largest number of users, stations or channels; indices have 16 bits.
const MOST: usize = 10_000;

impl UaraConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// [`UaraError::Field`] for the first invalid field.
    pub fn validate(&self) -> Result<(), UaraError> {
        for (field, value) in [("users", self.users), ("channels", self.channels)] {
            if !(1..=MOST).contains(&value) {
                return fail(field, "must be between 1 and 10000", value);
            }
        }
        self.validate_stations()?;
        for (field, value) in [("bandwidth_hz", self.bandwidth_hz), ("dynamics.step_secs", self.dynamics.step_secs)] {
            if !(value > 0.0 && value.is_finite()) {
                return fail(field, "must be finite and above 0", value);
            }
        }
        for (field, value) in [
            ("noise_dbm_per_hz", self.noise_dbm_per_hz),
            ("noise_figure_db", self.noise_figure_db),
            ("min_sinr_db", self.min_sinr_db),
        ] {
            if !(-300.0..=300.0).contains(&value) {
                return fail(field, "must be between -300 and 300 dB", value);
            }
        }
        if self.max_bits_per_hz.is_nan() || self.max_bits_per_hz <= 0.0 {
            return fail("max_bits_per_hz", "must be above 0 (`inf` for no limit)", self.max_bits_per_hz);
        }
        for (field, value) in [
            ("dynamics.speed_m_per_s", self.dynamics.speed_m_per_s),
            ("dynamics.shadowing_db", self.dynamics.shadowing_db),
            ("dynamics.carrier_hz", self.dynamics.carrier_hz),
        ] {
            if !(value >= 0.0 && value.is_finite()) {
                return fail(field, "must be finite and at least 0", value);
            }
        }
        if self.power_levels.is_empty() || self.power_levels.iter().any(|level| !(*level > 0.0 && *level <= 1.0)) {
            return fail("power_levels", "must be one or more shares in (0, 1]", format!("{:?}", self.power_levels));
        }
        if self.n_stations() * self.channels * self.power_levels.len() >= 1 << 24 {
            return fail("channels", "must leave fewer than 2^24 options per user", self.channels);
        }
        self.validate_task()
    }

    fn validate_stations(&self) -> Result<(), UaraError> {
        for (name, tier) in ["macro_cells", "pico_cells", "femto_cells"].into_iter().zip(self.tiers()) {
            if tier.count > MOST {
                return fail(&format!("{name}.count"), "must be at most 10000", tier.count);
            }
            if tier.count > 0 && !(tier.radius_m > 0.0 && tier.radius_m.is_finite()) {
                return fail(&format!("{name}.radius_m"), "must be finite and above 0", tier.radius_m);
            }
            if !(-200.0..=200.0).contains(&tier.transmit_dbm) {
                return fail(&format!("{name}.transmit_dbm"), "must be between -200 and 200 dBm", tier.transmit_dbm);
            }
            let loss = tier.path_loss;
            if !((-100.0..=300.0).contains(&loss.at_1_m_db) && (0.0..=200.0).contains(&loss.decade_db)) {
                let rule = "must have `at_1_m_db` between -100 and 300 and `decade_db` between 0 and 200";
                return fail(&format!("{name}.path_loss"), rule, format!("{loss:?}"));
            }
        }
        if self.macro_cells.count == 0 {
            return fail("macro_cells.count", "must be at least 1: users live around large cells", 0);
        }
        if self.pico_cells.count > 4 * self.macro_cells.count {
            let rule = "must be at most 4 per large cell";
            return fail("pico_cells.count", rule, self.pico_cells.count);
        }
        for (field, value) in [("layout.spacing_m", self.layout.spacing_m), ("layout.ring_m", self.layout.ring_m)] {
            if !(value >= 0.0 && value.is_finite()) {
                return fail(field, "must be finite and at least 0", value);
            }
        }
        if self.layout.first_m.iter().any(|x| !x.is_finite()) {
            return fail("layout.first_m", "must be finite", format!("{:?}", self.layout.first_m));
        }
        Ok(())
    }

    fn validate_task(&self) -> Result<(), UaraError> {
        match self.candidates {
            Candidates::Covered if self.coverage == Coverage::Open => {
                return fail(
                    "candidates",
                    "must be `all` or `strongest` where cells have no edge (`coverage`)",
                    "covered",
                );
            }
            Candidates::Strongest(n) if !(1..=self.n_stations()).contains(&n) => {
                return fail("candidates.strongest", "must be between 1 and the number of stations", n);
            }
            _ => {}
        }
        if self.observe.is_empty() {
            return fail("observe", "must name at least one part", "none");
        }
        let mut sorted = self.observe.clone();
        sorted.sort();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return fail("observe", "must name each part once", format!("{:?}", self.observe));
        }
        let amounts = match self.reward {
            Reward::Binary { satisfied, unsatisfied } => vec![satisfied, unsatisfied],
            Reward::ProfitCost { profit_per_mbps, cost_per_power, cost_per_action, .. } => {
                vec![profit_per_mbps, cost_per_power, cost_per_action]
            }
            Reward::Rate { per_mbps } | Reward::Contribution { per_mbps } => vec![per_mbps],
        };
        if amounts.iter().any(|amount| !amount.is_finite()) {
            return fail("reward", "must consist of finite numbers", format!("{:?}", self.reward));
        }
        if self.episode_steps == 0 {
            return fail("episode_steps", "must be at least 1", 0);
        }
        if self.parity.bootstrap_success && !self.end_when_satisfied {
            return fail("parity.bootstrap_success", "must be off where success ends no episode", true);
        }
        Ok(())
    }
}
