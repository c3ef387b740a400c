//! The calendar, the sky and the prices of a year on a device.

use brasa_core::Draws;
use burn::tensor::{Device, Tensor};

use super::{clip, matrix};
use crate::iquitos::config::IquitosConfig;
use crate::iquitos::observe::Scales;
use crate::iquitos::site::{PvTable, Site};
use crate::iquitos::solar::{ALBEDO, Clouds};
use crate::iquitos::world::NOISE_LIMIT;

/// Observed numbers of the calendar; they come first in an observation.
const OBSERVED: usize = 10;

/// Columns of the table after the observed ones.
#[derive(Debug, Clone, Copy)]
pub(super) enum Column {
    Price = OBSERVED as isize,
    CarbonKg,
    MallKwh,
    MallFactor,
    ReferenceVehiclesKwh,
    ProfileKwh,
    /// 1 on the first step of a month.
    BeginsMonth,
    /// Place of the step in the distributions of arrivals: kind of day, then hour.
    Arrivals,
    /// 1 in the hours that the original reward calls peak, and in the two before them.
    SeedPeak,
    SeedBeforePeak,
    /// Without clouds: the energy of PV. With clouds: the sun.
    PvKwh,
    ClearW,
    OutsideW,
    BeamRatio,
    AirC,
    CloudLogit,
    /// The number of columns.
    End,
}

/// The year; a row of the table per step.
#[derive(Debug, Clone)]
pub(super) struct Calendar {
    table: Tensor<2>,
    n_rows: usize,
    clouds: Option<Sky>,
    step_hours: f64,
    mall_noise: f64,
}

/// PV under clouds.
#[derive(Debug, Clone)]
struct Sky {
    clouds: Clouds,
    config: IquitosConfig,
}

/// The rows of some steps, `[n, columns]`; `n` is the number of environments, or 1 if all have the same time.
pub(super) struct Moment(Tensor<2>);

impl Moment {
    pub fn get(&self, column: Column) -> Tensor<2> {
        let n = self.0.dims()[0];
        let place = column as usize;
        self.0.clone().slice([0..n, place..place + 1])
    }

    /// The observed numbers, `[n, 10]`.
    pub fn observed(&self) -> Tensor<2> {
        let n = self.0.dims()[0];
        self.0.clone().slice([0..n, 0..OBSERVED])
    }
}

/// Weather of the next step, each `[n_envs, 1]`.
pub(super) struct Weather {
    pub clouds: Tensor<2>,
    pub pv_kwh: Tensor<2>,
    pub load_kwh: Tensor<2>,
}

impl Calendar {
    pub fn new(site: &Site, scales: &Scales, device: &Device) -> Self {
        let steps = site.steps_per_year;
        let clouds = match &site.pv {
            PvTable::Fixed(_) => None,
            PvTable::UnderClouds(_, clouds) => Some(Sky { clouds: *clouds, config: site.config.clone() }),
        };
        let values: Vec<f64> = (0..steps).flat_map(|step| row(site, scales, step)).collect();
        let width = Column::End as usize;
        Self {
            table: matrix(values, width, device),
            n_rows: steps as usize,
            clouds,
            step_hours: site.step_hours,
            mall_noise: site.config.mall.noise,
        }
    }

    /// Steps of a year.
    pub fn n_steps(&self) -> usize {
        self.n_rows
    }

    /// The rows of the steps `step_of_year`, `[n_envs, 1]`, or of one step for all.
    pub fn at(&self, step_of_year: &Tensor<2>, shared: Option<usize>) -> Moment {
        Moment(match shared {
            Some(row) => self.table.clone().slice(row..row + 1),
            None => {
                let n_envs = step_of_year.dims()[0];
                self.table.clone().select(0, step_of_year.clone().reshape([n_envs]).int())
            }
        })
    }

    /// The clouds at the start of an episode.
    pub fn first_clouds(&self, draws: &mut Draws) -> Tensor<2> {
        let normal = draws.normal(1);
        normal * self.clouds.as_ref().map_or(0.0, |sky| sky.clouds.deviation)
    }

    /// Columns of noise for [`Calendar::first_clouds`], and for [`Calendar::weather`].
    pub fn noise() -> [usize; 2] {
        [1, 2].map(Draws::width_of_normals)
    }

    /// The weather of the step at `moment`.
    pub fn weather(&self, moment: &Moment, clouds: Tensor<2>, draws: &mut Draws) -> Weather {
        let normal = draws.normal(2);
        let n_envs = draws.n_rows();
        let part = |i: usize| normal.clone().slice([0..n_envs, i..i + 1]);
        let noise = part(1).clamp(-NOISE_LIMIT, NOISE_LIMIT) * self.mall_noise;
        let load_kwh = (noise + moment.get(Column::MallFactor)).clamp_min(0.0) * moment.get(Column::MallKwh);
        let Some(sky) = &self.clouds else {
            return Weather { clouds, pv_kwh: moment.get(Column::PvKwh).expand([n_envs, 1]), load_kwh };
        };
        let clouds = clouds * sky.clouds.keep + part(0) * sky.clouds.stir;
        let transmission = (-(clouds.clone() + moment.get(Column::CloudLogit))).exp() + 1.0;
        let pv_kwh = sky.pv_kw(moment, transmission.recip()) * self.step_hours;
        Weather { clouds, pv_kwh, load_kwh }
    }
}

impl Sky {
    /// [`crate::iquitos::solar::Sun::pv_kw`]; without a clear sky there is no power.
    fn pv_kw(&self, moment: &Moment, transmission: Tensor<2>) -> Tensor<2> {
        let config = &self.config.pv;
        let global_w = transmission * moment.get(Column::ClearW);
        let clearness = global_w.clone() / moment.get(Column::OutsideW);
        let k = clearness.clone();
        let clear = -k.clone() * 0.09 + 1.0;
        let between = ((k.clone() * 12.336 - 16.638) * k.clone() + 4.388) * k.clone() - 0.1604;
        let between = between * k + 0.9511;
        let share = between
            .mask_where(clearness.clone().lower_equal_elem(0.22), clear)
            .mask_fill(clearness.greater_elem(0.8), 0.165);
        let diffuse_w = global_w.clone() * share;
        let cos_tilt = config.tilt_deg.to_radians().cos();
        let plane_w = (global_w.clone() - diffuse_w.clone()) * moment.get(Column::BeamRatio)
            + diffuse_w * ((1.0 + cos_tilt) / 2.0)
            + global_w * (ALBEDO * (1.0 - cos_tilt) / 2.0);
        let cell_c = plane_w.clone() * ((config.noct_c - 20.0) / 800.0) + moment.get(Column::AirC);
        let efficiency = (cell_c - 25.0) * -config.temperature_coefficient + 1.0;
        let power_kw = plane_w * efficiency * (config.peak_kw / 1000.0 * (1.0 - config.losses) * config.scale);
        power_kw.clamp(0.0, config.inverter_kw)
    }
}

/// A row of the table.
fn row(site: &Site, scales: &Scales, step: u32) -> [f64; Column::End as usize] {
    let (time, day) = (site.time(step), site.day(step));
    let before = (step + site.steps_per_year - 1) % site.steps_per_year;
    let flag = |is: bool| f64::from(u8::from(is));
    let mut row = [0.0; Column::End as usize];
    let observed = [
        time.hour_sin.into(),
        time.hour_cos.into(),
        day.weekday_sin.into(),
        day.weekday_cos.into(),
        day.year_sin.into(),
        day.year_cos.into(),
        flag(time.is_peak_tariff),
        clip(time.hours_to_peak / 24.0),
        clip(time.price_per_kwh / scales.price_per_kwh),
        clip(time.carbon_kg_per_kwh / scales.carbon_kg_per_kwh),
    ];
    row[..OBSERVED].copy_from_slice(&observed);
    let mut set = |column: Column, value: f64| row[column as usize] = value;
    set(Column::Price, time.price_per_kwh);
    set(Column::CarbonKg, time.carbon_kg_per_kwh);
    set(Column::MallKwh, time.mall_kwh);
    set(Column::MallFactor, day.mall_factor);
    set(Column::ReferenceVehiclesKwh, site.reference_vehicles_kwh(step));
    set(Column::ProfileKwh, time.profile_kwh);
    set(Column::BeginsMonth, flag(day.month != site.day(before).month));
    set(Column::Arrivals, 24.0 * flag(day.is_weekend) + f64::from(time.hour));
    set(Column::SeedPeak, flag((18..=21).contains(&time.hour)));
    set(Column::SeedBeforePeak, flag(time.hour == 16 || time.hour == 17));
    match &site.pv {
        PvTable::Fixed(kwh) => set(Column::PvKwh, kwh[step as usize]),
        PvTable::UnderClouds(suns, clouds) => {
            let sun = &suns[step as usize];
            set(Column::ClearW, sun.clear_w.into());
            // Without the sun any number above 0 will do: it divides 0.
            set(Column::OutsideW, f64::from(sun.outside_w).max(1e-3));
            set(Column::BeamRatio, sun.beam_ratio.into());
            set(Column::AirC, sun.air_c.into());
            set(Column::CloudLogit, clouds.logit(day.month));
        }
    }
    row
}
