//! The calendar, the sky and the prices of a year on a device.

use brasa_kernels::{Formulas, Matrix, Value};
use burn::tensor::{Device, Int, Tensor};

use super::{clip, matrix};
use crate::iquitos::config::IquitosConfig;
use crate::iquitos::observe::Scales;
use crate::iquitos::reward::seed_hours;
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

/// The same in formulas.
#[derive(Clone, Copy)]
pub(super) struct At<'a>(Matrix<'a>);

impl Moment {
    pub fn read<'a>(&self, formulas: &'a Formulas) -> At<'a> {
        At(formulas.matrix(&self.0))
    }

    /// A column as whole numbers, `[n]`.
    pub fn places(&self, column: Column) -> Tensor<1, Int> {
        let n = self.0.dims()[0];
        let place = column as usize;
        self.0.clone().slice([0..n, place..place + 1]).reshape([n]).int()
    }
}

impl<'a> At<'a> {
    pub fn get(self, column: Column) -> Value<'a> {
        self.0.column(column as usize)
    }

    /// The observed numbers.
    pub fn observed(self) -> impl Iterator<Item = Value<'a>> {
        (0..OBSERVED).map(move |i| self.0.column(i))
    }
}

/// Weather of the next step.
pub(super) struct Weather<'a> {
    pub clouds: Value<'a>,
    pub pv_kwh: Value<'a>,
    pub load_kwh: Value<'a>,
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
    pub fn at(&self, step_of_year: impl FnOnce() -> Tensor<2>, shared: Option<usize>) -> Moment {
        Moment(match shared {
            Some(row) => self.table.clone().slice(row..row + 1),
            None => {
                let steps = step_of_year();
                let n_envs = steps.dims()[0];
                self.table.clone().select(0, steps.reshape([n_envs]).int())
            }
        })
    }

    /// The step of the year after another one.
    pub fn after<'a>(&self, step_of_year: Value<'a>) -> Value<'a> {
        let next = step_of_year + 1.0;
        next.greater(self.n_rows as f64 - 0.5).select(0.0, next)
    }

    /// The clouds at the start of an episode, from a normal number.
    pub fn first_clouds<'a>(&self, normal: Value<'a>) -> Value<'a> {
        normal * self.clouds.as_ref().map_or(0.0, |sky| sky.clouds.deviation)
    }

    /// Columns of noise for [`Calendar::first_clouds`], and for [`Calendar::weather`]: a pair of normal numbers each.
    pub fn noise() -> [usize; 2] {
        [2, 2]
    }

    /// The weather of a step, from the clouds before it and two normal numbers.
    pub fn weather<'a>(&self, at: At<'a>, clouds: Value<'a>, normal: [Value<'a>; 2]) -> Weather<'a> {
        let noise = normal[1].clamp(-NOISE_LIMIT, NOISE_LIMIT) * self.mall_noise;
        let load_kwh = (noise + at.get(Column::MallFactor)).max(0.0) * at.get(Column::MallKwh);
        let Some(sky) = &self.clouds else {
            return Weather { clouds, pv_kwh: at.get(Column::PvKwh), load_kwh };
        };
        let clouds = clouds * sky.clouds.keep + normal[0] * sky.clouds.stir;
        let opacity = (-(clouds + at.get(Column::CloudLogit))).exp() + 1.0;
        Weather { clouds, pv_kwh: sky.pv_kw(at, opacity) * self.step_hours, load_kwh }
    }
}

impl Sky {
    /// [`crate::iquitos::solar::Sun::pv_kw`], with the reciprocal of the transmission; without a clear sky there is no power.
    fn pv_kw<'a>(&self, at: At<'a>, opacity: Value<'a>) -> Value<'a> {
        let config = &self.config.pv;
        let global_w = at.get(Column::ClearW) / opacity;
        let k = global_w / at.get(Column::OutsideW);
        let clear = k * -0.09 + 1.0;
        let between = (((k * 12.336 - 16.638) * k + 4.388) * k - 0.1604) * k + 0.9511;
        let share = k.greater(0.8).select(0.165, k.lower_equal(0.22).select(clear, between));
        let diffuse_w = global_w * share;
        let cos_tilt = config.tilt_deg.to_radians().cos();
        let plane_w = (global_w - diffuse_w) * at.get(Column::BeamRatio)
            + diffuse_w * ((1.0 + cos_tilt) / 2.0)
            + global_w * (ALBEDO * (1.0 - cos_tilt) / 2.0);
        let cell_c = plane_w * ((config.noct_c - 20.0) / 800.0) + at.get(Column::AirC);
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
    let [is_peak, is_before_peak] = seed_hours(time.hour);
    set(Column::SeedPeak, flag(is_peak));
    set(Column::SeedBeforePeak, flag(is_before_peak));
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
