//! Power flows of an episode per step.

use serde::Serialize;

/// Power flows of an episode per step, in kW (mean over the step), summed over the site.
///
/// It is the [`brasa_env::Trace`] of every outcome of this crate.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Trace {
    /// Length of a step, in hours.
    pub step_hours: f64,
    /// Load without vehicles.
    pub load_kw: Vec<f32>,
    /// PV that could have been produced.
    pub pv_kw: Vec<f32>,
    /// Battery power, positive when charging.
    pub battery_kw: Vec<f32>,
    /// Power of the chargers of vehicles.
    pub ev_kw: Vec<f32>,
    /// Power from the grid, negative when exporting.
    pub grid_kw: Vec<f32>,
    /// Mean state of charge of the batteries, 0 to 1.
    pub soc: Vec<f32>,
    /// Limit of the power from the grid, hard or soft, if there is one.
    pub grid_limit_kw: Option<f64>,
    /// Limit of the power of all chargers together, if there is one.
    pub ev_limit_kw: Option<f64>,
    /// Names of the sockets.
    pub sockets: Vec<String>,
    /// `[step * sockets]`: power into the vehicle at each socket, negative when it discharges; none without a vehicle.
    pub socket_kw: Vec<Option<f32>>,
}
