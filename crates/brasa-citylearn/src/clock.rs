//! The state of a batch of districts between steps.

use serde::{Deserialize, Serialize};

use super::{BatteryState, dynamics::DynamicsState, homes::HomeState, machines::MachineState};

/// The complete state for a resume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) seed: u64,
    pub(super) clocks: Vec<Clock>,
    /// `[building * n_envs + env]`.
    pub(super) batteries: Vec<BatteryState>,
    /// `[building * n_envs + env]`; empty without thermal demand, storages and outages.
    pub(super) homes: Vec<HomeState>,
    /// As the buildings; empty without indoor temperatures.
    pub(super) dynamics: Vec<DynamicsState>,
    /// `[env * n_vehicles + vehicle]`.
    pub(super) vehicles: Vec<BatteryState>,
    /// `[env * n_machines + machine]`.
    pub(super) machines: Vec<MachineState>,
}

/// Position of an environment in the data, and references of its ramps and peaks.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Clock {
    pub(super) episode: u64,
    /// Row of the data that the next step acts on.
    pub(super) row: u32,
    /// Steps taken in this episode.
    pub(super) step: u32,
    /// With storage, then without.
    pub(super) grid: [GridMemory; 2],
}

impl Clock {
    /// Fraction of the hourly standing loss before the step: 0 at the start of an episode.
    #[inline]
    pub(super) fn share(&self) -> f64 {
        if self.step == 0 { 0.0 } else { 1.0 }
    }
}

/// Past power at the district's grid connection.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct GridMemory {
    /// Net consumption of the last step, in kW.
    pub(super) last_kw: f64,
    /// Peak of the current day of the episode, in kW, at least 0.
    pub(super) peak_kw: f64,
}

impl GridMemory {
    /// Upward ramp and rise of the daily peak, in kW.
    #[inline]
    pub(super) fn see(&mut self, net_kw: f64, first_step: bool, first_of_day: bool) -> (f64, f64) {
        let ramp = if first_step { 0.0 } else { (net_kw - self.last_kw).max(0.0) };
        let peak = if first_of_day { 0.0 } else { self.peak_kw };
        self.last_kw = net_kw;
        self.peak_kw = peak.max(net_kw);
        (ramp, self.peak_kw - peak)
    }
}
