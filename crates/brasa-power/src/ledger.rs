//! The energy ledger of an episode: sums of all energy flows.

use serde::{Deserialize, Serialize};

/// Energy flows summed over steps, in kWh and not negative unless stated otherwise.
///
/// ```
/// use brasa_power::Ledger;
///
/// let noon = Ledger { pv_available_kwh: 5.0, grid_export_kwh: 2.0, load_kwh: 3.0, ..Ledger::default() };
/// let mut day = Ledger::default();
/// day.add(&noon);
/// day.add(&Ledger { grid_import_kwh: 1.0, load_kwh: 1.0, ..Ledger::default() });
/// assert_eq!((day.load_kwh, day.bus_residual_kwh()), (4.0, 0.0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Ledger<N = f64> {
    /// PV that could have been produced.
    pub pv_available_kwh: N,
    /// PV used on site: by load, vehicles or the battery.
    pub pv_used_kwh: N,
    /// Curtailed PV.
    pub pv_curtailed_kwh: N,
    /// Energy exported to the grid.
    pub grid_export_kwh: N,
    /// Energy imported from the grid.
    pub grid_import_kwh: N,
    /// Load of the buildings, without vehicles.
    pub load_kwh: N,
    /// Energy charged into batteries, before losses.
    pub battery_in_kwh: N,
    /// Energy discharged from batteries, after losses.
    pub battery_out_kwh: N,
    /// Energy lost in batteries: conversion and standing losses.
    pub battery_lost_kwh: N,
    /// Stored energy at the end minus at the start; may be negative.
    pub battery_change_kwh: N,
    /// Energy delivered to chargers of vehicles, before their losses, minus what they return; may be negative.
    pub ev_delivered_kwh: N,
    /// Unmet energy of departed vehicles.
    pub ev_unmet_kwh: N,
}

impl Ledger {
    /// Sources minus uses at the bus, which is 0 if energy is conserved.
    pub fn bus_residual_kwh(&self) -> f64 {
        self.pv_available_kwh + self.grid_import_kwh + self.battery_out_kwh
            - self.load_kwh
            - self.ev_delivered_kwh
            - self.battery_in_kwh
            - self.grid_export_kwh
            - self.pv_curtailed_kwh
    }

    /// Charged energy minus discharge, losses and change, which is 0 if energy is conserved.
    pub fn battery_residual_kwh(&self) -> f64 {
        self.battery_in_kwh - self.battery_out_kwh - self.battery_lost_kwh - self.battery_change_kwh
    }

    /// Every flow with its name.
    pub fn entries(&self) -> [(&'static str, f64); 12] {
        [
            ("pv_available_kwh", self.pv_available_kwh),
            ("pv_used_kwh", self.pv_used_kwh),
            ("pv_curtailed_kwh", self.pv_curtailed_kwh),
            ("grid_export_kwh", self.grid_export_kwh),
            ("grid_import_kwh", self.grid_import_kwh),
            ("load_kwh", self.load_kwh),
            ("battery_in_kwh", self.battery_in_kwh),
            ("battery_out_kwh", self.battery_out_kwh),
            ("battery_lost_kwh", self.battery_lost_kwh),
            ("battery_change_kwh", self.battery_change_kwh),
            ("ev_delivered_kwh", self.ev_delivered_kwh),
            ("ev_unmet_kwh", self.ev_unmet_kwh),
        ]
    }

    /// Adds the flows of one step.
    pub fn add(&mut self, step: &Ledger) {
        self.pv_available_kwh += step.pv_available_kwh;
        self.pv_used_kwh += step.pv_used_kwh;
        self.pv_curtailed_kwh += step.pv_curtailed_kwh;
        self.grid_export_kwh += step.grid_export_kwh;
        self.grid_import_kwh += step.grid_import_kwh;
        self.load_kwh += step.load_kwh;
        self.battery_in_kwh += step.battery_in_kwh;
        self.battery_out_kwh += step.battery_out_kwh;
        self.battery_lost_kwh += step.battery_lost_kwh;
        self.battery_change_kwh += step.battery_change_kwh;
        self.ev_delivered_kwh += step.ev_delivered_kwh;
        self.ev_unmet_kwh += step.ev_unmet_kwh;
    }
}
