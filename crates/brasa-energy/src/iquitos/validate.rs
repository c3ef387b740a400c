//! Validation of a config.

use super::config::{
    BatteryConfig, GridConfig, IquitosConfig, MallConfig, PvConfig, RewardConfig, RewardKind, VehicleClass,
    VehicleConfig,
};
use std::path::PathBuf;

use crate::check::{efficiency, not_negative, scale, scale_or_zero};
use brasa_env::InvalidField;
use brasa_env::field::{self, within};
use brasa_power::{EnergyError, scenario::check_optimum};

/// Most sockets of a class: each is four numbers of an observation.
const MOST_SOCKETS: u64 = 10_000;

impl IquitosConfig {
    /// Rejects invalid settings.
    ///
    /// # Errors
    /// [`EnergyError::Field`] with the field, its rule and its value.
    pub fn validate(&self) -> Result<(), EnergyError> {
        let steps_per_year = self.steps_per_year();
        field::rule(
            self.step_minutes > 0 && 60 % self.step_minutes == 0,
            "step_minutes",
            "must divide 60",
            self.step_minutes,
        )?;
        if let Some(steps) = self.episode_steps {
            let rule = "must be between 1 and the steps of a year";
            field::rule((1..=steps_per_year).contains(&steps), "episode_steps", rule, steps)?;
        }
        check_optimum(self.optimum, cfg!(feature = "optimum"))?;
        let is_linear = self.reward.kind != RewardKind::Seed;
        field::rule(!self.optimum || is_linear, "reward.kind", "must not be `seed` for `optimum`", "seed")?;
        let can_start = !self.random_start || self.episode_steps.is_some();
        field::rule(can_start, "random_start", "needs `episode_steps`", self.random_start)?;
        self.validate_files()?;
        self.pv.validate(self.files.pv.is_none())?;
        self.battery.validate()?;
        self.mall.validate()?;
        self.vehicles.validate()?;
        self.grid.validate()?;
        field::rule(!self.reward.shaped || is_linear, "reward.shaped", "must be false for `seed`", self.reward.shaped)?;
        for (name, weight) in &self.reward.weights()[5..] {
            field::rule(is_linear || *weight == 0.0, format!("reward.{name}"), "must be 0 for `seed`", weight)?;
        }
        Ok(self.reward.validate()?)
    }
}

impl IquitosConfig {
    /// What a file replaces must not be set in vain.
    fn validate_files(&self) -> Result<(), InvalidField> {
        let (files, default) = (&self.files, Self::default());
        within("files.utc_offset_hours", files.utc_offset_hours, -12.0, 14.0)?;
        let is_here = files.utc_offset_hours == PvConfig::PLACE.utc_offset_hours;
        let rule = "must be -5, the clock of the simulated sun, without `files.pv`";
        field::rule(is_here || files.pv.is_some(), "files.utc_offset_hours", rule, files.utc_offset_hours)?;
        let alone = |field: &'static str, file: &Option<PathBuf>, replaced: &str, is_default: bool| match file {
            Some(file) => field::rule(is_default, field, format!("must not come with {replaced}"), file.display()),
            None => Ok(()),
        };
        let pv = PvConfig { peak_kw: self.pv.peak_kw, ..default.pv };
        alone("files.pv", &files.pv, "settings of `pv` other than `peak_kw`", self.pv == pv)?;
        for (field, forecast, of, file) in [
            ("files.pv_forecast", &files.pv_forecast, "files.pv", &files.pv),
            ("files.load_forecast", &files.load_forecast, "files.load", &files.load),
        ] {
            alone(field, forecast, &format!("no `{of}`"), file.is_some())?;
        }
        alone("files.load", &files.load, "settings of `mall`", self.mall == default.mall)?;
        let (grid, of_default) = (&self.grid, &default.grid);
        let tariffs = |grid: &GridConfig| (grid.peak_price_per_kwh, grid.off_peak_price_per_kwh);
        let is_default = tariffs(grid) == tariffs(of_default);
        alone("files.prices", &files.prices, "prices of `grid` for peak and off-peak hours", is_default)?;
        let carbon = |grid: &GridConfig| (grid.carbon_kg_per_kwh, grid.carbon_swing);
        alone("files.carbon", &files.carbon, "carbon of `grid`", carbon(grid) == carbon(of_default))?;
        // Sockets, the feeder and the efficiency of chargers are used.
        let class = |own: &VehicleClass, of_default: &VehicleClass| VehicleClass {
            arrivals_per_day: of_default.arrivals_per_day,
            ..own.clone()
        };
        let (own, of_default) = (&self.vehicles, default.vehicles);
        let vehicles = VehicleConfig {
            moto: class(&own.moto, &of_default.moto),
            mototaxi: class(&own.mototaxi, &of_default.mototaxi),
            feeder_limit_kw: own.feeder_limit_kw,
            charger_efficiency: own.charger_efficiency,
            ..of_default
        };
        alone("files.vehicles", &files.vehicles, "settings of arrivals in `vehicles`", *own == vehicles)
    }
}

impl RewardConfig {
    fn validate(&self) -> Result<(), InvalidField> {
        for (name, weight) in self.weights() {
            // Rewards are 32 bits wide.
            within(format!("reward.{name}"), weight, 0.0, 1e6)?;
        }
        Ok(())
    }
}

impl PvConfig {
    fn validate(&self, is_simulated: bool) -> Result<(), InvalidField> {
        // A yield outside this range is an error of units; the original study did not detect PV 1000 times too small.
        let per_kwp = self.closed_form_kwh / self.peak_kw;
        scale("pv.peak_kw", self.peak_kw)?;
        let rule = "must be between 200 and 2200 kWh per kW of `pv.peak_kw`";
        field::rule(
            !is_simulated || (200.0..=2200.0).contains(&per_kwp),
            "pv.closed_form_kwh",
            rule,
            self.closed_form_kwh,
        )?;
        not_negative("pv.scale", self.scale)?;
        not_negative("pv.inverter_kw", self.inverter_kw)?;
        within("pv.tilt_deg", self.tilt_deg, 0.0, 90.0)?;
        within("pv.azimuth_deg", self.azimuth_deg, 0.0, 360.0)?;
        within("pv.losses", self.losses, 0.0, 1.0)?;
        within("pv.temperature_coefficient", self.temperature_coefficient, 0.0, 0.02)?;
        within("pv.noct_c", self.noct_c, 20.0, 80.0)?;
        for (name, value) in
            [("pv.wet_transmission", self.wet_transmission), ("pv.dry_transmission", self.dry_transmission)]
        {
            field::rule(value > 0.0 && value < 1.0, name, "must be above 0 and below 1", value)?;
        }
        let correlation = self.cloud_correlation;
        field::rule((0.0..1.0).contains(&correlation), "pv.cloud_correlation", "must be in [0, 1)", correlation)?;
        within("pv.cloud_deviation", self.cloud_deviation, 0.0, 5.0)
    }
}

impl BatteryConfig {
    fn validate(&self) -> Result<(), InvalidField> {
        scale_or_zero("battery.capacity_kwh", self.capacity_kwh)?;
        scale_or_zero("battery.power_kw", self.power_kw)?;
        for (name, value) in [
            ("battery.charge_efficiency", self.charge_efficiency),
            ("battery.discharge_efficiency", self.discharge_efficiency),
        ] {
            efficiency(name, value)?;
        }
        within("battery.soc_min", self.soc_min, 0.0, 1.0)?;
        within("battery.soc_max", self.soc_max, self.soc_min, 1.0)?;
        within("battery.soc_start", self.soc_start, self.soc_min, self.soc_max)?;
        within("battery.standing_loss_per_day", self.standing_loss_per_day, 0.0, 1.0)?;
        not_negative("battery.wear_cost_per_kwh", self.wear_cost_per_kwh)
    }
}

impl MallConfig {
    fn validate(&self) -> Result<(), InvalidField> {
        self.hourly_kw.iter().try_for_each(|kw| not_negative("mall.hourly_kw", *kw))?;
        self.weekday_change.iter().try_for_each(|change| within("mall.weekday_change", *change, -1.0, 1.0))?;
        // Four standard deviations below the mean must not make the load negative.
        within("mall.noise", self.noise, 0.0, 0.25)
    }
}

impl VehicleConfig {
    fn validate(&self) -> Result<(), InvalidField> {
        for (name, class) in [("moto", &self.moto), ("mototaxi", &self.mototaxi)] {
            field::rule(class.sockets > 0, format!("vehicles.{name}.sockets"), "must be at least 1", class.sockets)?;
            field::at_most(format!("vehicles.{name}.sockets"), class.sockets as u64, MOST_SOCKETS)?;
            scale(format!("vehicles.{name}.socket_kw"), class.socket_kw)?;
            scale(format!("vehicles.{name}.battery_kwh"), class.battery_kwh)?;
            // Each of them is drawn.
            within(format!("vehicles.{name}.arrivals_per_day"), class.arrivals_per_day, 0.0, 1e6)?;
        }
        self.profile_kwh.iter().try_for_each(|kwh| not_negative("vehicles.profile_kwh", *kwh))?;
        not_negative("vehicles.feeder_limit_kw", self.feeder_limit_kw)?;
        hours("vehicles.closing_hour", self.opening_hour, self.closing_hour)?;
        hours("vehicles.rush_end_hour", self.rush_start_hour, self.rush_end_hour)?;
        let inside = self.opening_hour <= self.rush_start_hour && self.rush_end_hour <= self.closing_hour;
        field::rule(
            inside,
            "vehicles.rush_start_hour",
            "must lie with the rush inside opening hours",
            self.rush_start_hour,
        )?;
        within("vehicles.rush_share", self.rush_share, 0.0, 1.0)?;
        within("vehicles.weekend_factor", self.weekend_factor, 0.0, 100.0)?;
        within("vehicles.dwell_median_hours", self.dwell_median_hours, 0.1, 24.0)?;
        within("vehicles.dwell_spread", self.dwell_spread, 0.01, 3.0)?;
        within("vehicles.arrival_soc_alpha", self.arrival_soc_alpha, 1.0, 100.0)?;
        within("vehicles.arrival_soc_beta", self.arrival_soc_beta, 1.0, 100.0)?;
        within("vehicles.target_soc", self.target_soc, 0.0, 1.0)?;
        efficiency("vehicles.charger_efficiency", self.charger_efficiency)
    }
}

impl GridConfig {
    fn validate(&self) -> Result<(), InvalidField> {
        not_negative("grid.peak_price_per_kwh", self.peak_price_per_kwh)?;
        not_negative("grid.off_peak_price_per_kwh", self.off_peak_price_per_kwh)?;
        hours("grid.peak_end_hour", self.peak_start_hour, self.peak_end_hour)?;
        not_negative("grid.demand_charge_per_kw", self.demand_charge_per_kw)?;
        not_negative("grid.export_price_per_kwh", self.export_price_per_kwh)?;
        not_negative("grid.export_limit_kw", self.export_limit_kw)?;
        within("grid.carbon_kg_per_kwh", self.carbon_kg_per_kwh, 0.0, 2.0)?;
        within("grid.carbon_swing", self.carbon_swing, 0.0, 1.0)?;
        // Excess is divided by it.
        scale("grid.soft_limit_kw", self.soft_limit_kw)
    }
}

fn hours(field: &'static str, start: u32, end: u32) -> Result<(), InvalidField> {
    field::rule(start < end && end <= 24, field, format!("must be after its start {start} and at most 24"), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid_and_survive_serialization() {
        for config in [IquitosConfig::default(), IquitosConfig::seed()] {
            config.validate().expect("presets are valid");
            let text = serde_json::to_string(&config).expect("configs serialize");
            assert_eq!(serde_json::from_str::<IquitosConfig>(&text).expect("and come back"), config);
        }
        assert_eq!(serde_json::from_str::<IquitosConfig>("{}").expect("all fields have defaults"), Default::default());
        assert!(serde_json::from_str::<IquitosConfig>(r#"{"stepminutes": 60}"#).is_err());
    }

    #[test]
    fn broken_settings_are_named() {
        type Break = fn(&mut IquitosConfig);
        let cases: [(Break, &str); 17] = [
            (|c| c.step_minutes = 7, "`step_minutes` must divide 60, got 7"),
            (|c| c.random_start = true, "`random_start` needs `episode_steps`, got true"),
            (|c| c.battery.soc_min = 0.7, "`battery.soc_start` must be between 0.7 and 0.95, got 0.5"),
            (|c| c.pv.closed_form_kwh = 8030.0, "got 8030"),
            (|c| c.grid.carbon_kg_per_kwh = 452.1, "`grid.carbon_kg_per_kwh` must be between 0 and 2, got 452.1"),
            (
                |c| c.vehicles.closing_hour = 9,
                "`vehicles.closing_hour` must be after its start 9 and at most 24, got 9",
            ),
            (
                |c| c.vehicles.moto.sockets = 1_000_000_000,
                "`vehicles.moto.sockets` must be at most 10000, got 1000000000",
            ),
            (
                |c| c.vehicles.mototaxi.arrivals_per_day = 1e300,
                "`vehicles.mototaxi.arrivals_per_day` must be between 0 and 1000000, got 1",
            ),
            (|c| c.reward.cost = 1e308, "`reward.cost` must be between 0 and 1000000, got 1"),
            // What is divided by must not be so small that the result is no number.
            (|c| c.grid.soft_limit_kw = 1e-300, "`grid.soft_limit_kw` must be between 0.001 and 1000000000, got 0.000"),
            (|c| c.pv.peak_kw = 1e-300, "`pv.peak_kw` must be between 0.001"),
            (|c| c.battery.capacity_kwh = 1e-300, "`battery.capacity_kwh` must be 0 or between 0.001"),
            (
                |c| c.battery.discharge_efficiency = 1e-300,
                "`battery.discharge_efficiency` must be in [0.01, 1], got 0.000",
            ),
            (|c| c.vehicles.charger_efficiency = 1e-300, "`vehicles.charger_efficiency` must be in [0.01, 1]"),
            (|c| c.vehicles.moto.socket_kw = 1e-300, "`vehicles.moto.socket_kw` must be between 0.001"),
            (|c| c.vehicles.moto.sockets = 0, "`vehicles.moto.sockets` must be at least 1, got 0"),
            (
                |c| c.battery.power_kw = f64::NAN,
                "`battery.power_kw` must be 0 or between 0.001 and 1000000000, got NaN",
            ),
        ];
        for (break_it, message) in cases {
            let mut config = IquitosConfig::default();
            break_it(&mut config);
            let error = config.validate().expect_err(message).to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
