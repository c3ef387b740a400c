//! What is known of an episode before it is played: cars, prices and PV, for planners and optima.

use serde::{Deserialize, Serialize};

use super::site::Site;
use super::world::Outside;

/// The cars, prices and PV of an episode. None of it depends on the controller.
///
/// ```
/// use brasa_energy::station::{Station, StationConfig, StationEpisode};
///
/// let station = Station::new(StationConfig::default())?;
/// let day: StationEpisode = station.episode(7, 0, 0);
/// // A day of steps of 5 minutes.
/// assert_eq!((day.buy_per_kwh.len(), day.pv_kwh.len()), (288, 288));
/// assert_eq!(station.episode(7, 0, 0), day);
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StationEpisode {
    /// Day of the calendar on which it starts, from 0: of the year, or of the files.
    pub first_day: u32,
    /// The cars that arrive, in their order; whether one finds a socket depends on those before it.
    pub sessions: Vec<Session>,
    /// Price of imported energy per step.
    pub buy_per_kwh: Vec<f64>,
    /// Price of exported energy per step.
    pub export_per_kwh: Vec<f64>,
    /// PV that can be produced per step, in kWh.
    pub pv_kwh: Vec<f64>,
}

/// A car that arrives.
///
/// ```
/// use brasa_energy::station::{Session, Station, StationConfig};
///
/// let day = Station::new(StationConfig::default())?.episode(7, 0, 0);
/// let energy_kwh = |car: &Session| car.target_kwh - car.arrival_kwh;
/// assert!(day.sessions.iter().all(|car| car.arrival_step < car.departure_step && car.target_kwh <= car.battery_kwh));
/// assert!(day.sessions.iter().map(energy_kwh).sum::<f64>() > 100.0);
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// The first step in which it can charge.
    pub arrival_step: u32,
    /// The first step in which a driver bound by time is gone; it may lie beyond the episode.
    pub departure_step: u32,
    /// Whether the driver leaves with the energy instead of with the time.
    pub energy_bound: bool,
    /// Energy in its battery, in kWh.
    pub arrival_kwh: f64,
    /// Energy that its driver wants in the battery, in kWh.
    pub target_kwh: f64,
    /// Capacity of its battery, in kWh.
    pub battery_kwh: f64,
    /// Largest power at AC sockets, in kW.
    pub ac_kw: f64,
    /// Largest power at DC sockets, in kW.
    pub dc_kw: f64,
    /// State of charge from which its largest power falls linearly.
    pub taper_soc: f64,
    /// Part of its largest power that is left at a state of charge of 1.
    pub taper_end: f64,
}

/// Lists the episode that starts with `outside`.
pub(crate) fn list(site: &Site, mut outside: Outside) -> StationEpisode {
    let discount = site.config.prices.export_discount_per_kwh;
    let mut listed = StationEpisode {
        first_day: outside.step / site.steps_per_day,
        sessions: Vec::new(),
        buy_per_kwh: Vec::new(),
        export_per_kwh: Vec::new(),
        pv_kwh: Vec::new(),
    };
    for step in 0..site.config.n_steps() {
        if step > 0 {
            outside.advance(site);
        }
        outside.cars(site, |car| {
            listed.sessions.push(Session {
                arrival_step: step,
                departure_step: step + car.stay_steps,
                energy_bound: car.energy_bound,
                arrival_kwh: car.arrival_kwh,
                target_kwh: car.target_kwh,
                battery_kwh: car.battery_kwh,
                ac_kw: car.ac_kw,
                dc_kw: car.dc_kw,
                taper_soc: car.taper_soc,
                taper_end: 1.0 - car.taper_slope * (1.0 - car.taper_soc),
            });
        });
        let buy_per_kwh = site.buy_per_kwh(outside.step);
        listed.buy_per_kwh.push(buy_per_kwh);
        listed.export_per_kwh.push(buy_per_kwh - discount);
        listed.pv_kwh.push(outside.pv_kw * site.step_hours);
    }
    listed
}
