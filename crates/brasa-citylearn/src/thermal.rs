//! Thermal devices and storages: heat pumps, electric heaters and tanks, and their sizes.
//!
//! A heat pump turns 1 kWh of electricity into `COP` kWh of heat or cold, with a constant fraction `e` of Carnot's
//! efficiency: `COP = e (Th + 273.15) / (Th - To)` for heat at `Th` and `e (Tc + 273.15) / (To - Tc)` for cold at `Tc`,
//! with the outdoor temperature `To`; values below 0 or above 20 become 20. An electric heater has a constant efficiency.

use super::{
    Battery, BatteryState, Curve,
    battery::{at_least, at_most},
    sampling::{DeviceDraw, seed_of},
    schema_thermal::{DeviceSchema, Sizing, TankSchema, USES},
};

/// Highest coefficient of performance.
const MOST_COP: f64 = 20.0;
const KELVIN: f64 = 273.15;

/// A heat pump or an electric heater.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Device {
    /// Largest electric power, in kW.
    pub(super) nominal_kw: f64,
    efficiency: f64,
    /// Temperatures of heat and cold of a heat pump, in degrees Celsius.
    targets_c: Option<(f64, f64)>,
}

/// Place of a device in a district: seeds depend on it.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) random_seed: u64,
    pub(super) building: &'a str,
    pub(super) building_type: &'a str,
}

impl Site<'_> {
    fn draw(&self, random_seed: Option<u64>, device: &str, device_type: &str) -> DeviceDraw {
        DeviceDraw::from_seed(random_seed.map_or_else(
            || seed_of(self.random_seed, self.building, self.building_type, device, device_type),
            |seed| seed as u32,
        ))
    }
}

impl Device {
    /// A building without a device for an end use.
    pub(super) const NONE: Self = Self { nominal_kw: 0.0, efficiency: 1.0, targets_c: None };

    /// The device of the end use `slot`, sized for `demand_kwh` at the temperatures `outdoor_c`.
    pub(super) fn new(schema: &DeviceSchema, slot: usize, site: Site, demand_kwh: &[f32], outdoor_c: &[f32]) -> Self {
        let draw = site.draw(schema.random_seed, &format!("{}_device", USES[slot]), &schema.device_type);
        let (low, high) = if schema.is_heat_pump { (0.2, 0.3) } else { (0.9, 0.99) };
        let heat_c = schema.target_heating_c.unwrap_or_else(|| draw.uniform(45.0, 50.0));
        let cold_c = schema.target_cooling_c.unwrap_or_else(|| draw.uniform(7.0, 10.0));
        let mut device = Self {
            nominal_kw: schema.nominal_kw,
            efficiency: schema.efficiency.unwrap_or_else(|| draw.uniform(low, high)),
            targets_c: schema.is_heat_pump.then_some((heat_c, cold_c)),
        };
        if let Some(Sizing { safety_factor }) = &schema.sizing {
            // In f32, as CityLearn computes with whole series.
            let powers =
                demand_kwh.iter().zip(outdoor_c).map(|(demand, outdoor)| demand / device.cop32(slot, *outdoor));
            device.nominal_kw = f64::from(powers.fold(0.0, f32::max)) * safety_factor.unwrap_or(1.0);
        }
        device
    }

    /// Heat or cold per electricity for the end use `slot`.
    pub(super) fn cop(&self, slot: usize, outdoor_c: f32) -> f64 {
        let outdoor_c = f64::from(outdoor_c);
        let Some((heat_c, cold_c)) = self.targets_c else { return self.efficiency };
        let cop = match slot {
            0 => self.efficiency * (cold_c + KELVIN) / (outdoor_c - cold_c),
            _ => self.efficiency * (heat_c + KELVIN) / (heat_c - outdoor_c),
        };
        if (0.0..=MOST_COP).contains(&cop) { cop } else { MOST_COP }
    }

    /// [`Device::cop`] in f32.
    fn cop32(&self, slot: usize, outdoor_c: f32) -> f32 {
        let Some((heat_c, cold_c)) = self.targets_c else { return self.efficiency as f32 };
        let cop = match slot {
            0 => (self.efficiency * (cold_c + KELVIN)) as f32 / (outdoor_c - cold_c as f32),
            _ => (self.efficiency * (heat_c + KELVIN)) as f32 / (heat_c as f32 - outdoor_c),
        };
        if (0.0..=MOST_COP as f32).contains(&cop) { cop } else { MOST_COP as f32 }
    }

    /// Whether it is an electric heater.
    pub(super) fn is_heater(&self) -> bool {
        self.targets_c.is_none()
    }
}

/// A thermal storage.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tank {
    pub(super) capacity_kwh: f64,
    pub(super) initial_soc: f64,
    loss_coefficient: f64,
    one_way: f64,
    max_input_kw: f64,
    max_output_kw: f64,
    /// The same storage as a battery whose power of 1 is its capacity per hour: the clean rules are those of a battery.
    clean: Battery,
}

impl Tank {
    /// The storage of the end use `slot`, sized for `demand_kwh`; `None` if it has no capacity.
    pub(super) fn new(schema: &TankSchema, slot: usize, site: Site, demand_kwh: &[f32]) -> Option<Self> {
        let draw = site.draw(schema.random_seed, &format!("{}_storage", USES[slot]), &schema.device_type);
        let capacity_kwh = match &schema.sizing {
            None => schema.capacity_kwh,
            Some(Sizing { safety_factor }) => {
                let most = demand_kwh.iter().copied().fold(0.0, f32::max);
                f64::from(most) * safety_factor.unwrap_or_else(|| draw.uniform(1.0, 2.0))
            }
        };
        let efficiency = schema.efficiency.unwrap_or_else(|| draw.efficiency());
        let loss_coefficient = schema.loss_coefficient.unwrap_or_else(|| draw.loss_coefficient());
        (capacity_kwh > 0.0).then(|| Self {
            capacity_kwh,
            initial_soc: schema.initial_soc,
            loss_coefficient,
            one_way: efficiency.sqrt(),
            max_input_kw: schema.max_input_kw.unwrap_or(f64::INFINITY),
            max_output_kw: schema.max_output_kw.unwrap_or(f64::INFINITY),
            clean: Battery {
                capacity_kwh,
                nominal_power_kw: capacity_kwh,
                efficiency,
                loss_coefficient,
                capacity_loss_coefficient: 0.0,
                depth_of_discharge: 1.0,
                initial_soc: schema.initial_soc,
                power_efficiency: Curve::constant(efficiency),
                capacity_power: Curve::constant(f64::INFINITY),
            },
        })
    }

    /// The storage by the clean rules as a battery, whose actions are shares of the capacity and at most 1.
    #[cfg(feature = "optimum")]
    pub(super) fn as_battery(&self) -> Battery {
        Battery { capacity_power: Curve::constant(1.0), ..self.clean.clone() }
    }

    /// Largest charge and discharge of a step, in kWh; infinite without a limit.
    #[cfg(feature = "optimum")]
    pub(super) fn limits_kwh(&self, hours: f64) -> [f64; 2] {
        [self.max_input_kw, self.max_output_kw].map(|limit_kw| limit_kw * hours)
    }

    /// The request, in kWh, within the limits on power.
    fn limited(&self, request_kwh: f64, hours: f64) -> f64 {
        at_least(at_most(request_kwh, self.max_input_kw * hours), -self.max_output_kw * hours)
    }

    /// One step of CityLearn 2.5.0, with its standing loss at the start; returns the energy into the storage, in kWh.
    ///
    /// With `e0 = soc C (1 - loss)`, a charge of `q` leads to `min(e0 + q sqrt(eta), C)`, a discharge to
    /// `max(e0 + q / sqrt(eta), 0)`; the energy is the difference over or times `sqrt(eta)`, rounded to f32.
    pub(super) fn step_citylearn25(&self, soc: &mut f64, request_kwh: f64) -> f64 {
        let before = at_least(*soc * self.capacity_kwh * (1.0 - self.loss_coefficient), 0.0);
        self.move_citylearn(soc, before, request_kwh)
    }

    /// One step of CityLearn 3.0.2 without the standing loss of [`Tank::pass_citylearn30`].
    pub(super) fn step_citylearn30(&self, soc: &mut f64, request_kwh: f64) -> f64 {
        self.move_citylearn(soc, at_least(*soc * self.capacity_kwh, 0.0), request_kwh)
    }

    /// The standing loss of CityLearn 3.0.2, when the clock advances.
    pub(super) fn pass_citylearn30(&self, soc: &mut f64) {
        *soc = f64::from((*soc * (1.0 - self.loss_coefficient)).clamp(0.0, 1.0) as f32);
    }

    fn move_citylearn(&self, soc: &mut f64, before: f64, request_kwh: f64) -> f64 {
        let energy = self.limited(request_kwh, 1.0);
        let filled = at_most(before + energy * self.one_way, self.capacity_kwh);
        let emptied = at_least(before + energy / self.one_way, 0.0);
        let after = if energy >= 0.0 { filled } else { emptied };
        *soc = f64::from((after / self.capacity_kwh) as f32);
        let change = after - before;
        f64::from((if change >= 0.0 { change / self.one_way } else { change * self.one_way }) as f32)
    }

    /// One step of the clean rules, those of [`Battery::step_clean`].
    pub(super) fn step_clean(&self, soc: &mut f64, request_kwh: f64, hours: f64) -> f64 {
        let mut state = BatteryState { soc: *soc, capacity_kwh: self.capacity_kwh, efficiency: self.clean.efficiency };
        let share = self.limited(request_kwh, hours) / (self.capacity_kwh * hours);
        let energy = self.clean.step_clean(&mut state, share, hours);
        *soc = state.soc;
        energy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_abs_diff_eq;

    #[test]
    fn the_coefficient_of_performance_is_a_fraction_of_carnots() {
        let pump = Device { nominal_kw: 1.0, efficiency: 0.2, targets_c: Some((45.0, 8.0)) };
        assert_abs_diff_eq!(pump.cop(0, 30.0), 0.2 * 281.15 / 22.0, epsilon = 1e-12);
        assert_abs_diff_eq!(pump.cop(1, 5.0), 0.2 * 318.15 / 40.0, epsilon = 1e-12);
        // Colder outside than the target: no work is needed, which CityLearn limits to 20.
        assert_eq!(pump.cop(0, 5.0), 20.0);
        assert_eq!(pump.cop(0, 8.0), 20.0);
        let heater = Device { targets_c: None, ..pump };
        assert_eq!(heater.cop(2, 5.0), 0.2);
    }
}
