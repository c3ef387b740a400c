//! Observations, with names and scales.
//!
//! The numbers of the site come first, then seven numbers per socket (all `occupied`, then all `soc`, ...). PV is that of
//! the next step, as if its forecast were exact; results of the last step have `last` in their names. Without PV or a
//! battery their numbers are left out; there is no padding.

use brasa_env::Space;

use super::config::StationConfig;
use super::site::Site;
use super::sockets::Sockets;
use super::world::EnvState;

/// Names and bounds of the numbers per socket.
const SOCKET: [(&str, f32, f32); 7] = [
    ("occupied", 0.0, 1.0),
    ("soc", 0.0, 1.0),
    ("need", 0.0, 1.0),
    ("stay", -1.0, 1.0),
    ("most_power", 0.0, 1.0),
    ("last_power", -1.0, 1.0),
    ("energy_bound", 0.0, 1.0),
];

/// Longest stay that observations tell apart, in hours.
const STAY_HOURS: f64 = 24.0;

/// The space of one row of observations.
pub(crate) fn space(config: &StationConfig) -> Space {
    let mut items: Vec<(String, f32, f32)> = Vec::new();
    for name in ["hour_sin", "hour_cos", "weekday_sin", "weekday_cos", "year_sin", "year_cos"] {
        items.push((name.into(), -1.0, 1.0));
    }
    items.extend((0..config.lookahead_hours).map(|hour| (format!("price_in_{hour}_h_over_largest"), -1.0, 1.0)));
    items.push(("last_grid_over_limit".into(), -1.0, 1.0));
    items.push(("sockets_occupied".into(), 0.0, 1.0));
    if config.has_pv() {
        items.push(("pv_over_rated".into(), 0.0, 1.0));
    }
    if config.has_battery() {
        items.push(("battery_soc".into(), 0.0, 1.0));
        items.push(("last_battery_over_rated".into(), -1.0, 1.0));
    }
    let sockets: Vec<String> = socket_names(config).collect();
    for (name, low, high) in SOCKET {
        items.extend(sockets.iter().map(|socket| (format!("{socket}_{name}"), low, high)));
    }
    Space::named_box(items)
}

/// The names of the sockets, in their order.
pub(crate) fn socket_names(config: &StationConfig) -> impl Iterator<Item = String> {
    config.sockets.iter().flat_map(|group| (0..group.count).map(move |i| format!("{}_{i}", group.name)))
}

/// Factors of a config, computed once.
#[derive(Debug, Clone)]
pub(crate) struct Scales {
    n_sockets: usize,
    per_grid_kw: f64,
    per_pv_kw: Option<f64>,
    /// Factors of stored energy and power.
    battery: Option<(f64, f64)>,
    per_need_kwh: f64,
    per_stay_steps: f64,
    per_socket_kw: Vec<f64>,
}

impl Scales {
    pub(crate) fn new(site: &Site) -> Self {
        let config = &site.config;
        let inverse = |value: f64| if value > 0.0 { 1.0 / value } else { 0.0 };
        let installed_kw = site.socket_kw.iter().sum::<f64>() + config.battery.power_kw + config.pv.peak_kw;
        Self {
            n_sockets: site.socket_kw.len(),
            per_grid_kw: inverse(site.network.grid_limit_kw().min(installed_kw)),
            per_pv_kw: config.has_pv().then(|| inverse(config.pv.peak_kw)),
            battery: config
                .has_battery()
                .then(|| (inverse(config.battery.capacity_kwh), inverse(config.battery.power_kw))),
            per_need_kwh: inverse(site.largest_need_kwh),
            per_stay_steps: site.step_hours / STAY_HOURS,
            per_socket_kw: site.socket_kw.iter().copied().map(inverse).collect(),
        }
    }

    /// Writes one row.
    pub(crate) fn write(&self, site: &Site, env: &EnvState, sockets: &Sockets, first: usize, row: &mut [f32]) {
        let share = |x: f64| x.clamp(0.0, 1.0) as f32;
        let signed = |x: f64| x.clamp(-1.0, 1.0) as f32;
        let (time, day) = (site.time(env.step()), site.day(env.step()));
        let (head, tail) = row.split_at_mut(row.len() - SOCKET.len() * self.n_sockets);
        head[..6].copy_from_slice(&[
            time.hour_sin,
            time.hour_cos,
            day.weekday_sin,
            day.weekday_cos,
            day.year_sin,
            day.year_cos,
        ]);
        let (prices, rest) = head[6..].split_at_mut(site.config.lookahead_hours as usize);
        prices.iter_mut().zip(site.observed_prices(env.step())).for_each(|(out, price)| *out = price);
        let places = first..first + self.n_sockets;
        let n_occupied = sockets.occupied[places.clone()].iter().filter(|occupied| **occupied).count();
        rest[0] = signed(env.grid_kw * self.per_grid_kw);
        rest[1] = n_occupied as f32 / self.n_sockets as f32;
        let mut rest = &mut rest[2..];
        if let Some(per_kw) = self.per_pv_kw {
            rest[0] = share(env.pv_kw() * per_kw);
            rest = &mut rest[1..];
        }
        if let Some((per_kwh, per_kw)) = self.battery {
            rest[0] = share(env.stored_kwh * per_kwh);
            rest[1] = signed(env.battery_kw * per_kw);
        }
        self.write_sockets(sockets, places, tail);
    }

    fn write_sockets(&self, sockets: &Sockets, places: std::ops::Range<usize>, out: &mut [f32]) {
        let n = self.n_sockets;
        let (occupied, out) = out.split_at_mut(n);
        let (soc, out) = out.split_at_mut(n);
        let (need, out) = out.split_at_mut(n);
        let (stay, out) = out.split_at_mut(n);
        let (most, out) = out.split_at_mut(n);
        let (last, energy_bound) = out.split_at_mut(n);
        let per_socket_kw = &self.per_socket_kw[..n];
        let stored_kwh = &sockets.stored_kwh[places.clone()][..n];
        let target_kwh = &sockets.target_kwh[places.clone()][..n];
        let per_capacity = &sockets.per_capacity[places.clone()][..n];
        let stay_steps = &sockets.stay_steps[places.clone()][..n];
        let most_kw = &sockets.most_kw[places.clone()][..n];
        let power_kw = &sockets.power_kw[places.clone()][..n];
        let is_occupied = &sockets.occupied[places.clone()][..n];
        let is_energy_bound = &sockets.energy_bound[places][..n];
        for i in 0..n {
            occupied[i] = f32::from(u8::from(is_occupied[i]));
            soc[i] = (stored_kwh[i] * per_capacity[i]).min(1.0) as f32;
            need[i] = ((target_kwh[i] - stored_kwh[i]) * self.per_need_kwh).clamp(0.0, 1.0) as f32;
            stay[i] = (f64::from(stay_steps[i]) * self.per_stay_steps).clamp(-1.0, 1.0) as f32;
            most[i] = (most_kw[i] * per_socket_kw[i]).min(1.0) as f32;
            last[i] = (power_kw[i] * per_socket_kw[i]).clamp(-1.0, 1.0) as f32;
            energy_bound[i] = f32::from(u8::from(is_energy_bound[i]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_what_the_station_has() {
        let hub = StationConfig::default();
        assert_eq!(space(&hub).width(), 6 + 6 + 2 + 1 + 2 + 7 * 16);
        let chargax = StationConfig::chargax();
        assert_eq!(space(&chargax).width(), 6 + 6 + 2 + 2 + 7 * 6);
        assert_eq!(socket_names(&chargax).nth(2).as_deref(), Some("fast_2_0"));
    }
}
