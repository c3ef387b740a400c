//! The energy ledger of a station: sums of all energy flows.

use serde::{Deserialize, Serialize};

/// Energy flows summed over steps, in kWh and not negative unless stated otherwise.
///
/// ```
/// use brasa_energy::station::StationLedger;
///
/// let flows = StationLedger { grid_import_kwh: 5.0, ev_delivered_kwh: 4.5, ..StationLedger::default() };
/// let step = StationLedger { socket_lost_kwh: 0.5, ..flows };
/// let mut sum = StationLedger::default();
/// sum.add(&step);
/// sum.add(&step);
/// assert_eq!((sum.ev_delivered_kwh, sum.residual_kwh()), (9.0, 0.0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct StationLedger {
    /// Energy imported from the grid.
    pub grid_import_kwh: f64,
    /// Energy exported to the grid.
    pub grid_export_kwh: f64,
    /// PV that could have been produced.
    pub pv_available_kwh: f64,
    /// Curtailed PV.
    pub pv_curtailed_kwh: f64,
    /// Energy charged into the stationary battery, before its losses.
    pub battery_in_kwh: f64,
    /// Energy discharged from it, after its losses.
    pub battery_out_kwh: f64,
    /// Energy lost in it: conversion and standing losses.
    pub battery_lost_kwh: f64,
    /// Stored energy at the end minus at the start; may be negative.
    pub battery_change_kwh: f64,
    /// Losses of the splitters.
    pub network_lost_kwh: f64,
    /// Losses of the sockets, in both directions.
    pub socket_lost_kwh: f64,
    /// Energy charged into cars.
    pub ev_delivered_kwh: f64,
    /// Energy discharged from cars.
    pub ev_returned_kwh: f64,
    /// Energy that departed cars lacked.
    pub ev_unmet_kwh: f64,
}

impl StationLedger {
    /// Sources minus uses, which is 0 if energy is conserved.
    pub fn residual_kwh(&self) -> f64 {
        self.grid_import_kwh + self.pv_available_kwh + self.battery_out_kwh + self.ev_returned_kwh
            - self.grid_export_kwh
            - self.pv_curtailed_kwh
            - self.battery_in_kwh
            - self.ev_delivered_kwh
            - self.network_lost_kwh
            - self.socket_lost_kwh
    }

    /// Charged energy minus discharge, losses and change, which is 0 if energy is conserved.
    pub fn battery_residual_kwh(&self) -> f64 {
        self.battery_in_kwh - self.battery_out_kwh - self.battery_lost_kwh - self.battery_change_kwh
    }

    /// Every flow with its name.
    pub fn entries(&self) -> [(&'static str, f64); 13] {
        [
            ("grid_import_kwh", self.grid_import_kwh),
            ("grid_export_kwh", self.grid_export_kwh),
            ("pv_available_kwh", self.pv_available_kwh),
            ("pv_curtailed_kwh", self.pv_curtailed_kwh),
            ("battery_in_kwh", self.battery_in_kwh),
            ("battery_out_kwh", self.battery_out_kwh),
            ("battery_lost_kwh", self.battery_lost_kwh),
            ("battery_change_kwh", self.battery_change_kwh),
            ("network_lost_kwh", self.network_lost_kwh),
            ("socket_lost_kwh", self.socket_lost_kwh),
            ("ev_delivered_kwh", self.ev_delivered_kwh),
            ("ev_returned_kwh", self.ev_returned_kwh),
            ("ev_unmet_kwh", self.ev_unmet_kwh),
        ]
    }

    /// Adds the flows of one step.
    pub fn add(&mut self, step: &Self) {
        self.grid_import_kwh += step.grid_import_kwh;
        self.grid_export_kwh += step.grid_export_kwh;
        self.pv_available_kwh += step.pv_available_kwh;
        self.pv_curtailed_kwh += step.pv_curtailed_kwh;
        self.battery_in_kwh += step.battery_in_kwh;
        self.battery_out_kwh += step.battery_out_kwh;
        self.battery_lost_kwh += step.battery_lost_kwh;
        self.battery_change_kwh += step.battery_change_kwh;
        self.network_lost_kwh += step.network_lost_kwh;
        self.socket_lost_kwh += step.socket_lost_kwh;
        self.ev_delivered_kwh += step.ev_delivered_kwh;
        self.ev_returned_kwh += step.ev_returned_kwh;
        self.ev_unmet_kwh += step.ev_unmet_kwh;
    }
}
