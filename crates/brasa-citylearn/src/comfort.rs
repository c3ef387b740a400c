//! Indicators of thermal comfort and of energy that was not served.
//!
//! CityLearn's definitions: an occupied step is too hot if the indoor temperature is above the set point of cooling
//! by more than a band, too cold if it is below that of heating by more than the band.

use serde::Serialize;

use super::{Physics, homes::Room, world::World};

/// CityLearn's comfort band in its indicators, in K.
const BAND_K: f32 = 2.0;

/// Comfort and unserved energy of one building; `None` where nothing was to be counted.
///
/// ```
/// use brasa_citylearn::Comfort;
///
/// let comfort = Comfort { discomfort: Some(0.12), hot: Some(0.12), ..Comfort::default() };
/// // No outage: nothing was to be counted.
/// assert_eq!((comfort.discomfort, comfort.outage_unserved), (Some(0.12), None));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Comfort {
    /// Share of the occupied steps that are too cold or too hot; `discomfort_proportion`.
    pub discomfort: Option<f64>,
    /// `discomfort_cold_proportion`.
    pub cold: Option<f64>,
    /// `discomfort_hot_proportion`.
    pub hot: Option<f64>,
    /// Smallest, largest and mean distance below the set point of heating, in K; 0 above it and when nobody is in.
    pub cold_delta_k: [f64; 3],
    /// Smallest, largest and mean distance above the set point of cooling, in K.
    pub hot_delta_k: [f64; 3],
    /// Share of the occupied steps with an outage that are too cold or too hot; `one_minus_thermal_resilience_proportion`.
    pub outage_discomfort: Option<f64>,
    /// Share of the demands and the load that was not served in outages; `power_outage_normalized_unserved_energy_total`.
    pub outage_unserved: Option<f64>,
    /// Share that was not served in all steps; `annual_normalized_unserved_energy_total`.
    pub unserved: Option<f64>,
}

/// One of a building's figures of comfort.
///
/// ```
/// use brasa_citylearn::{BuildingIndicators, Comfort, ComfortFigure, Indicators};
///
/// # let indicators = |buildings| Indicators {
/// #     buildings, ramping_kw: Default::default(), daily_peak_kw: Default::default(), peak_kw: Default::default(),
/// #     daily_one_minus_load_factor: Default::default(), monthly_one_minus_load_factor: Default::default(),
/// # };
/// let home = |hot| {
///     let comfort = Comfort { hot: Some(hot), ..Comfort::default() };
///     BuildingIndicators { comfort: Some(comfort), ..BuildingIndicators::default() }
/// };
/// let hot: ComfortFigure = |comfort| comfort.hot;
/// assert_eq!(indicators(vec![home(0.25), home(0.75)]).mean_comfort(hot), Some(0.5));
/// ```
pub type ComfortFigure = fn(&Comfort) -> Option<f64>;

/// CityLearn's names of the figures.
pub(super) const FIGURES: [(&str, ComfortFigure); 12] = [
    ("discomfort_proportion", |c| c.discomfort),
    ("discomfort_cold_proportion", |c| c.cold),
    ("discomfort_hot_proportion", |c| c.hot),
    ("discomfort_cold_delta_minimum", |c| Some(c.cold_delta_k[0])),
    ("discomfort_cold_delta_maximum", |c| Some(c.cold_delta_k[1])),
    ("discomfort_cold_delta_average", |c| Some(c.cold_delta_k[2])),
    ("discomfort_hot_delta_minimum", |c| Some(c.hot_delta_k[0])),
    ("discomfort_hot_delta_maximum", |c| Some(c.hot_delta_k[1])),
    ("discomfort_hot_delta_average", |c| Some(c.hot_delta_k[2])),
    ("one_minus_thermal_resilience_proportion", |c| c.outage_discomfort),
    ("power_outage_normalized_unserved_energy_total", |c| c.outage_unserved),
    ("annual_normalized_unserved_energy_total", |c| c.unserved),
];

/// What was asked for and served in one step, in kWh of load, heat and cold.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Service {
    pub(super) temperature_c: f64,
    pub(super) expected_kwh: f64,
    pub(super) served_kwh: f64,
}

impl Comfort {
    /// The figures of `building` after `steps`; `None` for a district without thermal demand.
    ///
    /// CityLearn 2.5 also counts the row after the last step, on which nothing has acted, with the temperature and the
    /// demands of the data.
    pub(super) fn of(world: &World, building: usize, steps: usize, service: impl Fn(usize) -> Service) -> Option<Self> {
        let homes = world.homes.as_ref()?;
        let mut counts = Counts::default();
        for step in 0..steps {
            let row = &homes.rows[step * world.n_buildings + building];
            counts.see(&row.room, row.is_outage, service(step));
        }
        if world.physics == Physics::CityLearn25 && steps < world.n_rows {
            let index = steps * world.n_buildings + building;
            let row = &homes.rows[index];
            let expected_kwh: f32 = row.demand_kwh.iter().sum::<f32>() + world.series[index].load_kwh;
            let expected_kwh = f64::from(expected_kwh);
            let temperature_c = f64::from(row.room.temperature_c);
            let service = Service { temperature_c, expected_kwh, served_kwh: expected_kwh };
            counts.see(&row.room, row.is_outage, service);
        }
        Some(counts.figures(world.physics))
    }
}

/// Sums over steps.
#[derive(Default)]
struct Counts {
    steps: f64,
    /// Occupied, too cold, too hot, either; then occupied and either in outages.
    occupied: f64,
    cold: f64,
    hot: f64,
    either: f64,
    outage_occupied: f64,
    outage_either: f64,
    /// Smallest, largest and sum.
    cold_k: Option<[f64; 3]>,
    hot_k: Option<[f64; 3]>,
    expected_kwh: [f64; 2],
    unserved_kwh: [f64; 2],
}

impl Counts {
    fn see(&mut self, room: &Room, is_outage: bool, service: Service) {
        let temperature_c = service.temperature_c as f32;
        let is_occupied = room.occupants > 0.0;
        let delta = |set_c: f32| if is_occupied { temperature_c - set_c } else { 0.0 };
        let (above, below) = (delta(room.cooling_set_c), delta(room.heating_set_c));
        let (hot, cold) = (above > BAND_K, below < -BAND_K);
        let one = |flag: bool| f64::from(u8::from(flag));
        self.steps += 1.0;
        self.occupied += one(is_occupied);
        self.hot += one(hot);
        self.cold += one(cold);
        self.either += one(hot || cold);
        self.outage_occupied += one(is_occupied && is_outage);
        self.outage_either += one((hot || cold) && is_outage);
        for (extremes, distance) in [(&mut self.hot_k, above.max(0.0)), (&mut self.cold_k, (-below).max(0.0))] {
            let distance = f64::from(distance);
            let [least, most, sum] = extremes.unwrap_or([f64::INFINITY, 0.0, 0.0]);
            *extremes = Some([least.min(distance), most.max(distance), sum + distance]);
        }
        let unserved_kwh = service.expected_kwh - service.served_kwh;
        for (place, counts) in [true, is_outage].into_iter().enumerate() {
            if counts {
                self.expected_kwh[place] += service.expected_kwh;
                self.unserved_kwh[place] += unserved_kwh;
            }
        }
    }

    fn figures(&self, physics: Physics) -> Comfort {
        let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let means = |extremes: Option<[f64; 3]>| {
            let [least, most, sum] = extremes.unwrap_or_default();
            [least, most, sum / self.steps.max(1.0)]
        };
        let outage_unserved = share(self.unserved_kwh[1], self.expected_kwh[1]);
        Comfort {
            discomfort: share(self.either, self.occupied),
            cold: share(self.cold, self.occupied),
            hot: share(self.hot, self.occupied),
            cold_delta_k: means(self.cold_k),
            hot_delta_k: means(self.hot_k),
            outage_discomfort: share(self.outage_either, self.outage_occupied),
            // Without an outage 3.0 counts 0.
            outage_unserved: match physics {
                Physics::CityLearn30 => outage_unserved.or(Some(0.0)),
                _ => outage_unserved,
            },
            unserved: share(self.unserved_kwh[0], self.expected_kwh[0]),
        }
    }
}
