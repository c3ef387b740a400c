//! The presets: a hub at a shopping center, and the layout of Chargax.

use brasa_power::{EnergyError, fail};

use super::config::{
    ActionMode, ArrivalConfig, BatteryConfig, CarModel, LimitMode, NodeConfig, PlaceKind, PriceConfig, PvConfig,
    RewardConfig, SocketActions, SocketConfig, SocketKind, StationConfig, taper_end, taper_soc,
};

impl Default for StationConfig {
    /// Twelve AC sockets of 22 kW and four DC sockets of 150 kW behind 250 kW of grid, 200 kW of PV and a battery of
    /// 400 kWh. The sizes are assumptions in the range of hubs at European shopping centers: the grid connection
    /// is far below the 864 kW of the sockets, as is usual, and binds on busy days.
    fn default() -> Self {
        let mut low_voltage = NodeConfig::new("ac", Some("grid"), 0.0, 0.99);
        // Three phases of 230 V and 250 A: 172.5 kW.
        (low_voltage.limit_kw, low_voltage.limit_a) = (None, Some(250.0));
        (low_voltage.voltage_v, low_voltage.phases) = (Some(230.0), 3);
        let ac = SocketConfig {
            name: "ac".into(),
            parent: "ac".into(),
            count: 12,
            kind: SocketKind::Ac,
            voltage_v: 230.0,
            current_a: 32.0,
            phases: 3,
            efficiency: 1.0,
            limit_kw: None,
        };
        let dc = SocketConfig {
            name: "dc".into(),
            parent: "dc".into(),
            count: 4,
            kind: SocketKind::Dc,
            voltage_v: 400.0,
            current_a: 375.0,
            phases: 1,
            efficiency: 0.95,
            limit_kw: None,
        };
        Self {
            step_minutes: 5,
            episode_steps: None,
            first_day: None,
            held_out_days: None,
            held_out_weeks: None,
            utc_offset_hours: 1.0,
            actions: ActionMode::Continuous,
            socket_actions: SocketActions::default(),
            levels: 10,
            lookahead_hours: 6,
            limits: LimitMode::Curtail,
            v2g: false,
            nodes: vec![
                NodeConfig::new("grid", None, 250.0, 0.99),
                low_voltage,
                NodeConfig::new("dc", Some("grid"), 400.0, 0.99),
            ],
            sockets: vec![ac, dc],
            battery: BatteryConfig::default(),
            pv: PvConfig::default(),
            cars: default_cars(),
            arrivals: ArrivalConfig::default(),
            prices: PriceConfig::default(),
            reward: RewardConfig::default(),
            optimum: false,
        }
    }
}

/// Four classes of battery cars; sizes and shares are assumptions after models on sale in Europe.
fn default_cars() -> Vec<CarModel> {
    [
        ("city", 0.25, 36.0, 7.4, 50.0),
        ("compact", 0.40, 58.0, 11.0, 120.0),
        ("family", 0.25, 77.0, 11.0, 170.0),
        ("premium", 0.10, 95.0, 22.0, 250.0),
    ]
    .map(|(name, share, battery_kwh, ac_kw, dc_kw)| CarModel {
        name: name.into(),
        share,
        battery_kwh,
        ac_kw,
        dc_kw,
        taper_soc: taper_soc(),
        taper_end: taper_end(),
    })
    .into()
}

impl StationConfig {
    /// The layout that Chargax starts with, by its public source: 200 kW of grid, four DC sockets of 300 kW in two groups that share
    /// 300 kW each, two AC sockets of 11.5 kW that share as much, a battery of 2500 kWh and 500 kW at 25 %, no PV, and
    /// 250 cars a day at a highway. Drivers pay 0.75 per kWh, and the reward is the profit, as there.
    ///
    /// Its profiles of arrivals, cars and prices are not included, so results are not comparable, only the size of the
    /// problem.
    pub fn chargax() -> Self {
        let group = |name: &str, parent: &str, kind, voltage_v, current_a| SocketConfig {
            name: name.into(),
            parent: parent.into(),
            count: 2,
            kind,
            voltage_v,
            current_a,
            phases: 1,
            efficiency: 0.995,
            limit_kw: Some(voltage_v * current_a / 1000.0),
        };
        Self {
            nodes: vec![
                NodeConfig::new("grid", None, 200.0, 1.0),
                NodeConfig::new("hub", Some("grid"), 650.0, 0.995),
                NodeConfig::new("fast", Some("hub"), 600.0, 0.995),
                NodeConfig::new("slow", Some("hub"), 50.0, 0.995),
            ],
            sockets: vec![
                group("fast_1", "fast", SocketKind::Dc, 600.0, 500.0),
                group("fast_2", "fast", SocketKind::Dc, 600.0, 500.0),
                group("slow", "slow", SocketKind::Ac, 230.0, 50.0),
            ],
            battery: BatteryConfig {
                parent: Some("hub".into()),
                capacity_kwh: 2500.0,
                power_kw: 500.0,
                charge_efficiency: 0.995,
                discharge_efficiency: 0.995,
                soc_start: 0.25,
                ..BatteryConfig::default()
            },
            pv: PvConfig { peak_kw: 0.0, ..PvConfig::default() },
            arrivals: ArrivalConfig {
                place: PlaceKind::Highway,
                cars_per_day: 250.0,
                weekend_factor: Some(1.0),
                ..ArrivalConfig::default()
            },
            prices: PriceConfig { sell_per_kwh: 0.75, ..PriceConfig::default() },
            reward: RewardConfig {
                unmet_per_kwh: 0.0,
                degradation_per_kwh: 0.0,
                stored_per_kwh: 0.0,
                ..RewardConfig::default()
            },
            actions: ActionMode::Discrete,
            v2g: true,
            ..Self::default()
        }
    }

    /// The preset `name`: `default` or `chargax`.
    ///
    /// # Errors
    /// [`EnergyError::Field`] for any other name.
    pub fn preset(name: &str) -> Result<Self, EnergyError> {
        match name {
            "default" => Ok(Self::default()),
            "chargax" => Ok(Self::chargax()),
            _ => fail("preset", "must be default or chargax", name),
        }
    }
}
