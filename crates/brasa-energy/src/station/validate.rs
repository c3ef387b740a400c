//! Validation of a config.

use brasa_env::InvalidField;
use brasa_env::field::{self, within};
use brasa_power::{EnergyError, scenario::check_optimum};

use super::arrivals::MAX_STAY_HOURS;
use super::config::{
    ActionMode, ArrivalConfig, BatteryConfig, CarModel, NodeConfig, PriceConfig, PvConfig, RewardConfig, SocketActions,
    SocketConfig, StationConfig,
};
use crate::check::{MOST, efficiency, not_negative, scale, scale_or_zero};

/// Most sockets: each is seven numbers of an observation.
const MOST_SOCKETS: u64 = 10_000;
/// Longest episode: a century of minutes.
const MOST_STEPS: u32 = 100 * 365 * 24 * 60;
/// Most splitters, and most models of cars.
const MOST_ENTRIES: u64 = 10_000;

impl StationConfig {
    /// Rejects invalid settings.
    ///
    /// # Errors
    /// [`EnergyError::Field`] with the field, its rule and its value.
    pub fn validate(&self) -> Result<(), EnergyError> {
        let minutes = self.step_minutes;
        field::rule(minutes > 0 && 60 % minutes == 0, "step_minutes", "must divide 60", minutes)?;
        if let Some(steps) = self.episode_steps {
            field::rule((1..=MOST_STEPS).contains(&steps), "episode_steps", "must be between 1 and 52560000", steps)?;
        }
        within("utc_offset_hours", self.utc_offset_hours, -12.0, 14.0)?;
        // Clocks follow the sun within some hours; more is a wrong sign.
        let apart_hours = self.utc_offset_hours - self.pv.longitude_deg / 15.0;
        let rule = "must be within 4 hours of `pv.longitude_deg` / 15";
        field::rule(!self.has_pv() || apart_hours.abs() <= 4.0, "utc_offset_hours", rule, self.utc_offset_hours)?;
        field::rule((1..=1000).contains(&self.levels), "levels", "must be between 1 and 1000", self.levels)?;
        let is_linear = self.socket_actions == SocketActions::Linear;
        let rule = "must be `linear` for discrete actions";
        field::rule(is_linear || self.actions == ActionMode::Continuous, "socket_actions", rule, "hold-back")?;
        let hours = self.lookahead_hours;
        field::rule((1..=168).contains(&hours), "lookahead_hours", "must be between 1 and 168", hours)?;
        self.validate_tree()?;
        self.battery.validate()?;
        self.pv.validate()?;
        field::rule(!self.cars.is_empty(), "cars", "must have at least one model", self.cars.len())?;
        field::at_most("cars", self.cars.len() as u64, MOST_ENTRIES)?;
        self.cars.iter().try_for_each(CarModel::validate)?;
        let total: f64 = self.cars.iter().map(|model| model.share).sum();
        field::rule(total > 0.0, "cars.share", "must have a sum above 0", total)?;
        self.arrivals.validate()?;
        self.prices.validate()?;
        self.reward.validate()?;
        check_optimum(self.optimum, cfg!(feature = "optimum"))
    }

    /// Names are unique, parents stand before their children, and the leaves have parents.
    fn validate_tree(&self) -> Result<(), InvalidField> {
        field::rule(!self.nodes.is_empty(), "nodes", "must have the grid connection", self.nodes.len())?;
        field::at_most("nodes", self.nodes.len() as u64, MOST_ENTRIES)?;
        for (i, node) in self.nodes.iter().enumerate() {
            let (name, before) = (&node.name, &self.nodes[..i]);
            let is_new = before.iter().all(|other| other.name != *name);
            field::rule(is_new && !name.is_empty(), "nodes.name", "must differ from those before", name)?;
            let known = |parent: &String| before.iter().any(|other| other.name == *parent);
            let field = format!("nodes.{name}.parent");
            match &node.parent {
                Some(parent) => {
                    field::rule(known(parent), field.clone(), "must be the name of a node before this one", parent)?
                }
                None => field::rule(i == 0, field.clone(), "must be given, except for the first node", "none")?,
            }
            node.validate()?;
        }
        let known = |parent: &String| self.nodes.iter().any(|node| node.name == *parent);
        let rule = "must be the name of a node";
        field::rule(!self.sockets.is_empty(), "sockets", "must have at least one group", self.sockets.len())?;
        field::at_most("sockets", self.sockets.len() as u64, MOST_ENTRIES)?;
        for (i, group) in self.sockets.iter().enumerate() {
            let name = &group.name;
            let is_new = self.sockets[..i].iter().all(|other| other.name != *name);
            field::rule(is_new && !name.is_empty(), "sockets.name", "must differ from those before", name)?;
            field::rule(known(&group.parent), format!("sockets.{name}.parent"), rule, &group.parent)?;
            group.validate()?;
        }
        let count = self.sockets.iter().map(|group| u64::from(group.count)).sum();
        field::at_most("sockets.count", count, MOST_SOCKETS)?;
        for (field, parent) in [("battery.parent", &self.battery.parent), ("pv.parent", &self.pv.parent)] {
            if let Some(parent) = parent {
                field::rule(known(parent), field, rule, parent)?;
            }
        }
        Ok(())
    }
}

impl NodeConfig {
    fn validate(&self) -> Result<(), InvalidField> {
        let field = |name: &str| format!("nodes.{}.{name}", self.name);
        if let Some(kw) = self.limit_kw {
            not_negative(field("limit_kw"), kw)?;
        }
        if let Some(ampere) = self.limit_a {
            not_negative(field("limit_a"), ampere)?;
            field::rule(self.limit_kw.is_none(), field("limit_a"), "must not come with `limit_kw`", ampere)?;
            field::rule(self.voltage_v.is_some(), field("limit_a"), "needs `voltage_v`", ampere)?;
        }
        if let Some(volt) = self.voltage_v {
            scale(field("voltage_v"), volt)?;
            field::rule(self.limit_a.is_some(), field("voltage_v"), "is only for `limit_a`", volt)?;
        }
        field::rule(self.phases == 1 || self.phases == 3, field("phases"), "must be 1 or 3", self.phases)?;
        efficiency(field("efficiency"), self.efficiency)
    }
}

impl SocketConfig {
    fn validate(&self) -> Result<(), InvalidField> {
        let field = |name: &str| format!("sockets.{}.{name}", self.name);
        field::rule(self.count > 0, field("count"), "must be at least 1", self.count)?;
        scale(field("voltage_v"), self.voltage_v)?;
        scale(field("current_a"), self.current_a)?;
        field::rule(self.phases == 1 || self.phases == 3, field("phases"), "must be 1 or 3", self.phases)?;
        // A megawatt charger has 3.75 MW; more is an error of units.
        let kw = self.socket_kw();
        field::rule(kw <= 1e4, field("current_a"), "must give at most 10000 kW with `voltage_v`", kw)?;
        if let Some(kw) = self.limit_kw {
            not_negative(field("limit_kw"), kw)?;
        }
        efficiency(field("efficiency"), self.efficiency)
    }
}

impl BatteryConfig {
    fn validate(&self) -> Result<(), InvalidField> {
        scale_or_zero("battery.capacity_kwh", self.capacity_kwh)?;
        scale_or_zero("battery.power_kw", self.power_kw)?;
        efficiency("battery.charge_efficiency", self.charge_efficiency)?;
        efficiency("battery.discharge_efficiency", self.discharge_efficiency)?;
        within("battery.soc_min", self.soc_min, 0.0, 1.0)?;
        within("battery.soc_max", self.soc_max, self.soc_min, 1.0)?;
        within("battery.soc_start", self.soc_start, self.soc_min, self.soc_max)?;
        within("battery.standing_loss_per_day", self.standing_loss_per_day, 0.0, 1.0)
    }
}

impl PvConfig {
    fn validate(&self) -> Result<(), InvalidField> {
        scale_or_zero("pv.peak_kw", self.peak_kw)?;
        if let Some(kw) = self.inverter_kw {
            not_negative("pv.inverter_kw", kw)?;
        }
        if let Some(file) = &self.file {
            field::rule(self.peak_kw > 0.0, "pv.file", "needs `pv.peak_kw` above 0", file.display())?;
            // What the file replaces must not be set in vain.
            let (parent, peak_kw) = (self.parent.clone(), self.peak_kw);
            let is_alone = *self == Self { parent, file: self.file.clone(), peak_kw, ..Self::default() };
            let rule = "must not come with settings of `pv` other than `parent` and `peak_kw`";
            field::rule(is_alone, "pv.file", rule, file.display())?;
        }
        within("pv.latitude_deg", self.latitude_deg, -66.0, 66.0)?;
        within("pv.longitude_deg", self.longitude_deg, -180.0, 180.0)?;
        within("pv.tilt_deg", self.tilt_deg, 0.0, 90.0)?;
        within("pv.azimuth_deg", self.azimuth_deg.unwrap_or(0.0), 0.0, 360.0)?;
        within("pv.losses", self.losses, 0.0, 1.0)?;
        within("pv.temperature_coefficient", self.temperature_coefficient, 0.0, 0.02)?;
        within("pv.noct_c", self.noct_c, 20.0, 80.0)?;
        within("pv.air_c", self.air_c, -30.0, 40.0)?;
        within("pv.july_swing_c", self.july_swing_c.unwrap_or(0.0), -30.0, 30.0)?;
        for (name, value) in
            [("pv.winter_transmission", self.winter_transmission), ("pv.summer_transmission", self.summer_transmission)]
        {
            field::rule(value > 0.0 && value < 1.0, name, "must be above 0 and below 1", value)?;
        }
        let correlation = self.cloud_correlation;
        field::rule((0.0..1.0).contains(&correlation), "pv.cloud_correlation", "must be in [0, 1)", correlation)?;
        within("pv.cloud_deviation", self.cloud_deviation, 0.0, 5.0)
    }
}

impl CarModel {
    fn validate(&self) -> Result<(), InvalidField> {
        let field = |name: &str| format!("cars.{}.{name}", self.name);
        not_negative(field("share"), self.share)?;
        // Below 1 kWh or above 2 MWh the unit is wrong.
        within(field("battery_kwh"), self.battery_kwh, 1.0, 2000.0)?;
        scale(field("ac_kw"), self.ac_kw)?;
        scale(field("dc_kw"), self.dc_kw)?;
        within(field("taper_soc"), self.taper_soc, 0.0, 1.0)?;
        within(field("taper_end"), self.taper_end, 0.0, 1.0)
    }
}

impl ArrivalConfig {
    fn validate(&self) -> Result<(), InvalidField> {
        if let Some(file) = &self.file {
            let is_alone = *self == Self { file: self.file.clone(), ..Self::default() };
            field::rule(is_alone, "arrivals.file", "must not come with other settings of `arrivals`", file.display())?;
        }
        // Each of them is drawn.
        within("arrivals.cars_per_day", self.cars_per_day, 0.0, 1e5)?;
        for (name, hours) in
            [("arrivals.workday_hours", &self.workday_hours), ("arrivals.weekend_hours", &self.weekend_hours)]
        {
            let Some(hours) = hours else { continue };
            field::rule(hours.len() == 24, name, "must have 24 values", hours.len())?;
            hours.iter().try_for_each(|share| not_negative(name, *share))?;
        }
        let bounded =
            |name: &'static str, value: Option<f64>, low, high| value.map_or(Ok(()), |x| within(name, x, low, high));
        bounded("arrivals.weekend_factor", self.weekend_factor, 0.0, 10.0)?;
        bounded("arrivals.stay_median_hours", self.stay_median_hours, 0.05, MAX_STAY_HOURS)?;
        bounded("arrivals.stay_spread", self.stay_spread, 0.01, 3.0)?;
        bounded("arrivals.arrival_soc_alpha", self.arrival_soc_alpha, 1.0, 100.0)?;
        bounded("arrivals.arrival_soc_beta", self.arrival_soc_beta, 1.0, 100.0)?;
        within("arrivals.target_soc_low", self.target_soc_low, 0.0, 1.0)?;
        within("arrivals.target_soc_high", self.target_soc_high, self.target_soc_low, 1.0)?;
        bounded("arrivals.energy_bound_share", self.energy_bound_share, 0.0, 1.0)?;
        within("arrivals.patience_hours", self.patience_hours, 0.0, 1000.0)
    }
}

impl PriceConfig {
    fn validate(&self) -> Result<(), InvalidField> {
        if let Some(values) = &self.buy_per_kwh {
            let n = values.len();
            field::rule(n == 24 || n == 8760, "prices.buy_per_kwh", "must have 24 or 8760 values", n)?;
            values.iter().try_for_each(|price| within("prices.buy_per_kwh", *price, -MOST, MOST))?;
        }
        if let Some(file) = &self.file {
            let rule = "must not come with `prices.buy_per_kwh`";
            field::rule(self.buy_per_kwh.is_none(), "prices.file", rule, file.display())?;
        }
        within("prices.export_discount_per_kwh", self.export_discount_per_kwh, -MOST, MOST)?;
        if let Some(kw) = self.export_limit_kw {
            not_negative("prices.export_limit_kw", kw)?;
        }
        within("prices.carbon_kg_per_kwh", self.carbon_kg_per_kwh, 0.0, 2.0)?;
        not_negative("prices.sell_per_kwh", self.sell_per_kwh)
    }
}

impl RewardConfig {
    fn validate(&self) -> Result<(), InvalidField> {
        for (name, weight) in [
            ("reward.unmet_per_kwh", self.unmet_per_kwh),
            ("reward.excess_per_kwh", self.excess_per_kwh),
            ("reward.degradation_per_kwh", self.degradation_per_kwh),
            ("reward.turned_away", self.turned_away),
            ("reward.overtime_per_hour", self.overtime_per_hour),
            ("reward.carbon_per_kg", self.carbon_per_kg),
            ("reward.peak_per_kw", self.peak_per_kw),
            ("reward.ramp_per_kw", self.ramp_per_kw),
            ("reward.curtailed_per_kwh", self.curtailed_per_kwh),
            ("reward.stored_per_kwh", self.stored_per_kwh),
        ] {
            // Rewards are 32 bits wide.
            within(name, weight, 0.0, 1e6)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid_and_survive_serialization() {
        for name in ["default", "chargax"] {
            let config = StationConfig::preset(name).expect("a preset");
            config.validate().expect("presets are valid");
            let text = serde_json::to_string(&config).expect("configs serialize");
            assert_eq!(serde_json::from_str::<StationConfig>(&text).expect("and come back"), config);
        }
        let error = StationConfig::preset("tesla").expect_err("no preset").to_string();
        assert_eq!(error, "`preset` must be default or chargax, got tesla");
        assert_eq!(serde_json::from_str::<StationConfig>("{}").expect("all fields have defaults"), Default::default());
        assert!(serde_json::from_str::<StationConfig>(r#"{"stepminutes": 60}"#).is_err());
    }

    #[test]
    fn seasons_follow_the_hemisphere() {
        let at = |latitude_deg: f64| {
            let pv = super::super::config::PvConfig { latitude_deg, ..Default::default() };
            let clouds = pv.clouds(1.0);
            let [january, july] = [0, 6].map(|month| clouds.transmission(0.0, month));
            (january, july, pv.place(0.0).july_swing_c, pv.modules().azimuth_deg)
        };
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        for (latitude, summer_in_july) in [(52.1, 1.0), (-33.0, 0.0), (0.0, 0.5), (-11.72, 0.25)] {
            let (january, july, swing_c, azimuth_deg) = at(latitude);
            near(july, 0.45 + 0.17 * summer_in_july);
            near(january, 0.62 - 0.17 * summer_in_july);
            near(swing_c, 7.5 * (2.0 * summer_in_july - 1.0));
            assert_eq!(azimuth_deg, if latitude < 0.0 { 0.0 } else { 180.0 });
        }
    }

    #[test]
    fn broken_settings_are_named() {
        type Break = fn(&mut StationConfig);
        let cases: [(Break, &str); 28] = [
            (|c| c.step_minutes = 7, "`step_minutes` must divide 60, got 7"),
            (|c| c.episode_steps = Some(0), "`episode_steps` must be between 1 and 52560000, got 0"),
            (|c| c.utc_offset_hours = f64::NAN, "`utc_offset_hours` must be between -12 and 14, got NaN"),
            (
                |c| (c.pv.file, c.pv.peak_kw) = (Some("pv.csv".into()), 0.0),
                "`pv.file` needs `pv.peak_kw` above 0, got pv.csv",
            ),
            (
                |c| (c.pv.file, c.pv.tilt_deg) = (Some("pv.csv".into()), 20.0),
                "`pv.file` must not come with settings of `pv` other than `parent` and `peak_kw`, got pv.csv",
            ),
            (
                |c| (c.arrivals.file, c.arrivals.cars_per_day) = (Some("cars.csv".into()), 50.0),
                "`arrivals.file` must not come with other settings of `arrivals`, got cars.csv",
            ),
            (
                |c| (c.prices.file, c.prices.buy_per_kwh) = (Some("prices.csv".into()), Some(vec![0.1; 24])),
                "`prices.file` must not come with `prices.buy_per_kwh`, got prices.csv",
            ),
            (
                |c| (c.actions, c.socket_actions) = (ActionMode::Discrete, SocketActions::HoldBack),
                "`socket_actions` must be `linear` for discrete actions, got hold-back",
            ),
            (|c| c.levels = 0, "`levels` must be between 1 and 1000, got 0"),
            (|c| c.nodes.clear(), "`nodes` must have the grid connection, got 0"),
            (|c| c.nodes[2].name = "ac".into(), "`nodes.name` must differ from those before, got ac"),
            (
                |c| c.nodes[1].parent = Some("dc".into()),
                "`nodes.ac.parent` must be the name of a node before this one, got dc",
            ),
            (|c| c.nodes[1].parent = None, "`nodes.ac.parent` must be given, except for the first node, got none"),
            (|c| c.nodes[1].limit_kw = Some(1.0), "`nodes.ac.limit_a` must not come with `limit_kw`, got 250"),
            (|c| c.nodes[1].voltage_v = None, "`nodes.ac.limit_a` needs `voltage_v`, got 250"),
            (|c| c.nodes[0].efficiency = 0.0, "`nodes.grid.efficiency` must be in [0.01, 1], got 0"),
            (|c| c.sockets[0].parent = "moon".into(), "`sockets.ac.parent` must be the name of a node, got moon"),
            (|c| c.sockets[1].count = 0, "`sockets.dc.count` must be at least 1, got 0"),
            (|c| c.sockets[1].count = u32::MAX, "`sockets.count` must be at most 10000, got 4294967307"),
            (
                |c| c.sockets[1].current_a = 375_000.0,
                "`sockets.dc.current_a` must give at most 10000 kW with `voltage_v`, got 150000",
            ),
            (
                |c| c.battery.capacity_kwh = 1e-5,
                "`battery.capacity_kwh` must be 0 or between 0.001 and 1000000000, got 0.00001",
            ),
            (|c| c.pv.peak_kw = 1e-5, "`pv.peak_kw` must be 0 or between 0.001 and 1000000000, got 0.00001"),
            (
                |c| c.sockets[0].voltage_v = 1e-5,
                "`sockets.ac.voltage_v` must be between 0.001 and 1000000000, got 0.00001",
            ),
            (|c| c.cars[0].battery_kwh = 36_000.0, "`cars.city.battery_kwh` must be between 1 and 2000, got 36000"),
            (|c| c.cars.iter_mut().for_each(|m| m.share = 0.0), "`cars.share` must have a sum above 0, got 0"),
            (
                |c| c.pv.longitude_deg = -75.0,
                "`utc_offset_hours` must be within 4 hours of `pv.longitude_deg` / 15, got 1",
            ),
            (
                |c| c.prices.buy_per_kwh = Some(vec![0.1; 48]),
                "`prices.buy_per_kwh` must have 24 or 8760 values, got 48",
            ),
            (
                |c| c.battery.power_kw = f64::NAN,
                "`battery.power_kw` must be 0 or between 0.001 and 1000000000, got NaN",
            ),
        ];
        for (break_it, message) in cases {
            let mut config = StationConfig::default();
            break_it(&mut config);
            let error = config.validate().expect_err(message).to_string();
            assert_eq!(error, message);
        }
    }
}
