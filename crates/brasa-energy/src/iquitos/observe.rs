//! Observations, with names and scales.
//!
//! Twenty numbers of the site come first. PV and load are those of the next step, as if its forecast were exact;
//! results of the last step have `last` in their names. Then come either four numbers per socket (all `occupied`, then
//! all `need`, ...), or four sums per class. There is no padding.

use brasa_env::Space;

use super::config::{IquitosConfig, ObservationMode};
use super::site::Site;
use super::vehicles::MAX_DWELL_HOURS;
use super::world::{EnvState, SocketView};

/// Names and bounds of the numbers of the site.
const SITE: [(&str, f32, f32); 20] = [
    ("hour_sin", -1.0, 1.0),
    ("hour_cos", -1.0, 1.0),
    ("weekday_sin", -1.0, 1.0),
    ("weekday_cos", -1.0, 1.0),
    ("year_sin", -1.0, 1.0),
    ("year_cos", -1.0, 1.0),
    ("is_peak_tariff", 0.0, 1.0),
    ("days_to_peak_tariff", 0.0, 1.0),
    ("price_over_largest", 0.0, 1.0),
    ("carbon_over_largest", 0.0, 1.0),
    ("pv_over_rated", 0.0, 1.0),
    ("last_pv_over_rated", 0.0, 1.0),
    ("load_over_scale", 0.0, 1.0),
    ("battery_soc", 0.0, 1.0),
    ("last_battery_over_rated", -1.0, 1.0),
    ("last_grid_over_scale", -1.0, 1.0),
    ("month_peak_over_scale", 0.0, 1.0),
    ("sockets_occupied", 0.0, 1.0),
    ("sockets_need", 0.0, 1.0),
    ("sockets_wish_over_limit", 0.0, 2.0),
];

/// Names of the four numbers per socket, each between 0 and 1.
const SOCKET: [&str; 4] = ["occupied", "need", "dwell", "power"];

/// Names of the four sums per class, each between 0 and 1.
const CLASS: [&str; 4] = ["occupied", "need", "urgent_need", "power"];

/// Factor on the mall's largest hourly load for the scale of loads, because of weekdays and noise.
const LOAD_ROOM: f64 = 1.2;

/// The space of one row of observations.
pub(crate) fn space(config: &IquitosConfig) -> Space {
    let site = SITE.into_iter().map(|(name, low, high)| (name.to_owned(), low, high));
    let mut items: Vec<(String, f32, f32)> = site.collect();
    match config.observations {
        ObservationMode::Full => {
            for name in SOCKET {
                items.extend((0..config.n_sockets()).map(|i| (format!("socket_{i}_{name}"), 0.0, 1.0)));
            }
        }
        ObservationMode::Compact => {
            for class in ["motos", "mototaxis"] {
                items.extend(CLASS.iter().map(|name| (format!("{class}_{name}"), 0.0, 1.0)));
            }
        }
    }
    Space::named_box(items)
}

/// The divisors of a config, computed once.
#[derive(Debug, Clone)]
pub(crate) struct Scales {
    mode: ObservationMode,
    n_motos: usize,
    n_sockets: usize,
    pub(super) load_kw: f64,
    pub(super) grid_kw: f64,
    pub(super) price_per_kwh: f64,
    pub(super) carbon_kg_per_kwh: f64,
    pub(super) sockets_limit_kw: f32,
    pub(super) max_dwell_steps: f32,
    /// Per class: energy of a full charge from empty, and power of a socket.
    pub(super) full_kwh: [f32; 2],
    socket_kw: [f32; 2],
}

/// Sums over the sockets of one class.
#[derive(Debug, Clone, Copy, Default)]
struct ClassSums {
    occupied: f32,
    need_kwh: f32,
    urgent_kwh: f32,
    wish_kwh: f32,
    power_kw: f32,
}

impl Scales {
    pub(crate) fn new(config: &IquitosConfig) -> Self {
        let vehicles = &config.vehicles;
        let classes = [&vehicles.moto, &vehicles.mototaxi];
        let installed_kw: f64 = classes.iter().map(|class| class.socket_kw * class.sockets as f64).sum();
        let load_kw = LOAD_ROOM * config.mall.hourly_kw.iter().copied().fold(1.0, f64::max);
        Self {
            mode: config.observations,
            n_motos: vehicles.moto.sockets,
            n_sockets: config.n_sockets(),
            load_kw,
            grid_kw: load_kw + installed_kw + config.battery.power_kw,
            price_per_kwh: config.grid.peak_price_per_kwh.max(config.grid.off_peak_price_per_kwh).max(1e-9),
            carbon_kg_per_kwh: (config.grid.carbon_kg_per_kwh * (1.0 + config.grid.carbon_swing)).max(1e-9),
            sockets_limit_kw: vehicles.feeder_limit_kw.min(installed_kw).max(1e-3) as f32,
            max_dwell_steps: (MAX_DWELL_HOURS / config.step_hours()) as f32,
            full_kwh: classes.map(|class| (class.battery_kwh / vehicles.charger_efficiency) as f32),
            socket_kw: classes.map(|class| class.socket_kw as f32),
        }
    }

    /// With the largest values of what files give.
    pub(crate) fn with_given(mut self, site: &Site) -> Self {
        let most = |values: &[f64]| values.iter().copied().fold(1e-9, f64::max);
        if let Some(load_kwh) = &site.given.load_kwh {
            let load_kw = (most(load_kwh) / site.step_hours).max(1.0);
            self.grid_kw += load_kw - self.load_kw;
            self.load_kw = load_kw;
        }
        if let Some(prices) = &site.given.price_per_kwh {
            self.price_per_kwh = most(prices);
        }
        if let Some(carbon) = &site.given.carbon_kg_per_kwh {
            self.carbon_kg_per_kwh = most(carbon);
        }
        if let Some(vehicles) = &site.given.vehicles {
            self.max_dwell_steps = self.max_dwell_steps.max(vehicles.longest_steps());
        }
        self
    }

    /// Sockets of each class.
    fn classes(&self) -> [std::ops::Range<usize>; 2] {
        [0..self.n_motos, self.n_motos..self.n_sockets]
    }

    /// Writes one row.
    pub(crate) fn write(&self, site: &Site, env: &EnvState, sockets: SocketView<'_>, row: &mut [f32]) {
        let (head, tail) = row.split_at_mut(SITE.len());
        let hours = site.step_hours as f32;
        let mut sums = [ClassSums::default(); 2];
        for (class, range) in self.classes().into_iter().enumerate() {
            let view = SocketView {
                need_kwh: &sockets.need_kwh[range.clone()],
                dwell_steps: &sockets.dwell_steps[range.clone()],
                power_kw: &sockets.power_kw[range],
            };
            sums[class] = ClassSums::over(view, self.socket_kw[class] * hours);
        }
        self.write_site(site, env, &sums, head);
        match self.mode {
            ObservationMode::Full => self.write_sockets(sockets, tail),
            ObservationMode::Compact => self.write_classes(&sums, tail),
        }
    }

    fn write_site(&self, site: &Site, env: &EnvState, sums: &[ClassSums; 2], out: &mut [f32]) {
        let (time, day) = (site.time(env.step_of_year), site.day(env.step_of_year));
        let (pv, battery) = (&site.config.pv, &site.config.battery);
        let n_sockets = self.n_sockets as f32;
        let [motos, mototaxis] = sums;
        let full_kwh =
            self.full_kwh[0] * self.n_motos as f32 + self.full_kwh[1] * (self.n_sockets - self.n_motos) as f32;
        let wish_kw = (motos.wish_kwh + mototaxis.wish_kwh) / site.step_hours as f32;
        let share = |x: f64| x.clamp(0.0, 1.0) as f32;
        let signed = |x: f64| x.clamp(-1.0, 1.0) as f32;
        let ratio = |x: f64, scale: f64| if scale > 0.0 { x / scale } else { 0.0 };
        let values: [f32; SITE.len()] = [
            time.hour_sin,
            time.hour_cos,
            day.weekday_sin,
            day.weekday_cos,
            day.year_sin,
            day.year_cos,
            if time.is_peak_tariff { 1.0 } else { 0.0 },
            share(time.hours_to_peak / 24.0),
            share(site.price_per_kwh(env.step_of_year) / self.price_per_kwh),
            share(site.carbon_kg_per_kwh(env.step_of_year) / self.carbon_kg_per_kwh),
            share(env.pv_kwh / site.step_hours / pv.peak_kw),
            share(env.last.pv_kw / pv.peak_kw),
            share(env.load_kwh / site.step_hours / self.load_kw),
            share(ratio(env.stored_kwh, battery.capacity_kwh)),
            signed(ratio(env.last.battery_kw, battery.power_kw)),
            signed(env.last.grid_kw / self.grid_kw),
            share(env.month_peak_kw / self.grid_kw),
            (motos.occupied + mototaxis.occupied) / n_sockets,
            ((motos.need_kwh + mototaxis.need_kwh) / full_kwh).min(1.0),
            (wish_kw / self.sockets_limit_kw).min(2.0),
        ];
        out.copy_from_slice(&values);
    }

    fn write_sockets(&self, sockets: SocketView<'_>, out: &mut [f32]) {
        let (occupied, out) = out.split_at_mut(self.n_sockets);
        let (need, out) = out.split_at_mut(self.n_sockets);
        let (dwell, power) = out.split_at_mut(self.n_sockets);
        for (out, steps) in occupied.iter_mut().zip(sockets.dwell_steps) {
            *out = if *steps > 0.0 { 1.0 } else { 0.0 };
        }
        scale(dwell, sockets.dwell_steps, 1.0 / self.max_dwell_steps);
        for (class, range) in self.classes().into_iter().enumerate() {
            scale(&mut need[range.clone()], &sockets.need_kwh[range.clone()], 1.0 / self.full_kwh[class]);
            scale(&mut power[range.clone()], &sockets.power_kw[range], 1.0 / self.socket_kw[class]);
        }
    }

    fn write_classes(&self, sums: &[ClassSums; 2], out: &mut [f32]) {
        for (class, (range, out)) in self.classes().iter().zip(out.chunks_exact_mut(CLASS.len())).enumerate() {
            let (n, sums) = (range.len() as f32, &sums[class]);
            let full_kwh = n * self.full_kwh[class];
            let values = [
                sums.occupied / n,
                sums.need_kwh / full_kwh,
                sums.urgent_kwh / full_kwh,
                sums.power_kw / (n * self.socket_kw[class]),
            ];
            out.copy_from_slice(&values.map(|x| x.min(1.0)));
        }
    }
}

fn scale(out: &mut [f32], values: &[f32], factor: f32) {
    for (out, value) in out.iter_mut().zip(values) {
        *out = (value * factor).min(1.0);
    }
}

impl ClassSums {
    /// Sums over sockets that can deliver `max_kwh` in a step, in SIMD lanes.
    fn over(sockets: SocketView<'_>, max_kwh: f32) -> Self {
        const LANES: usize = 8;
        let mut lanes = [[0.0_f32; LANES]; 5];
        let n = sockets.need_kwh.len();
        let whole = n / LANES * LANES;
        let [occupied, need, urgent, wish, power] = &mut lanes;
        let chunks = sockets.need_kwh[..whole]
            .chunks_exact(LANES)
            .zip(sockets.dwell_steps[..whole].chunks_exact(LANES))
            .zip(sockets.power_kw[..whole].chunks_exact(LANES));
        for ((needs, dwells), powers) in chunks {
            for lane in 0..LANES {
                occupied[lane] += if dwells[lane] > 0.0 { 1.0 } else { 0.0 };
                need[lane] += needs[lane];
                urgent[lane] += if dwells[lane] <= 1.0 { needs[lane] } else { 0.0 };
                wish[lane] += needs[lane].min(max_kwh);
                power[lane] += powers[lane];
            }
        }
        for i in whole..n {
            occupied[0] += if sockets.dwell_steps[i] > 0.0 { 1.0 } else { 0.0 };
            need[0] += sockets.need_kwh[i];
            urgent[0] += if sockets.dwell_steps[i] <= 1.0 { sockets.need_kwh[i] } else { 0.0 };
            wish[0] += sockets.need_kwh[i].min(max_kwh);
            power[0] += sockets.power_kw[i];
        }
        let [occupied, need_kwh, urgent_kwh, wish_kwh, power_kw] = lanes.map(|lane| lane.iter().sum());
        Self { occupied, need_kwh, urgent_kwh, wish_kwh, power_kw }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_what_the_modes_say() {
        let full = IquitosConfig::default();
        assert_eq!(space(&full).width(), 20 + 4 * 128);
        let compact = IquitosConfig { observations: ObservationMode::Compact, ..full };
        assert_eq!(space(&compact).width(), 20 + 4 * 2);
    }

    #[test]
    fn sums_over_a_class() {
        let (mut need_kwh, mut dwell_steps) = (vec![0.0; 11], vec![0.0; 11]);
        let power_kw = vec![0.5; 11];
        (need_kwh[0], dwell_steps[0]) = (1.0, 1.0);
        (need_kwh[9], dwell_steps[9]) = (3.0, 2.0);
        let view = SocketView { need_kwh: &need_kwh, dwell_steps: &dwell_steps, power_kw: &power_kw };
        let sums = ClassSums::over(view, 2.0);
        assert_eq!((sums.occupied, sums.need_kwh, sums.urgent_kwh), (2.0, 4.0, 1.0));
        assert_eq!((sums.wish_kwh, sums.power_kw), (3.0, 5.5));
    }
}
