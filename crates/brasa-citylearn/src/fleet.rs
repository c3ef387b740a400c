//! The batteries of a batch of districts, in SIMD lanes.

use ndarray::ArrayView2;

use super::lanes::{LANES, Lane, Lanes};
use super::world::World;
use super::{Battery, BatteryState};

/// Groups of batteries for SIMD lanes.
#[derive(Debug, Default)]
pub(super) struct Fleet {
    /// The same battery in every lane, for [`LANES`] environments at a time.
    alone: Vec<Group>,
    /// All batteries of an environment; the last one pads the lanes.
    together: Vec<Group>,
}

/// The batteries of the lanes.
#[derive(Debug)]
struct Group {
    lanes: Lanes,
    buildings: [usize; LANES],
    action_columns: [usize; LANES],
}

impl Fleet {
    pub(super) fn new(world: &World) -> Self {
        let batteries = world.batteries.iter().zip(&world.action_columns).enumerate();
        let steered: Vec<(usize, usize, &Battery)> = batteries
            .filter_map(|(building, (battery, column))| Some((building, (*column)?, battery.as_ref()?)))
            .collect();
        let group = |members: [(usize, usize, &Battery); LANES]| Group {
            lanes: Lanes::new(members.map(|(.., battery)| battery)),
            buildings: members.map(|(building, ..)| building),
            action_columns: members.map(|(_, column, _)| column),
        };
        Self {
            alone: steered.iter().map(|member| group([*member; LANES])).collect(),
            together: steered
                .chunks(LANES)
                .map(|members| group(std::array::from_fn(|lane| members[lane.min(members.len() - 1)])))
                .collect(),
        }
    }

    /// Steps every battery: [`LANES`] environments at a time, then the remaining ones one by one.
    ///
    /// Batteries and energies are `[building * n_envs + env]`; `share` is the fraction of the standing loss of an environment.
    pub(super) fn step(
        &self,
        batteries: &mut [BatteryState],
        balance_kwh: &mut [f64],
        actions: ArrayView2<f32>,
        share_of: impl Fn(usize) -> f64,
    ) {
        let n_envs = actions.nrows();
        let whole = n_envs - n_envs % LANES;
        for group in &self.alone {
            let (building, column) = (group.buildings[0], group.action_columns[0]);
            for env in (0..whole).step_by(LANES) {
                let cells: [usize; LANES] = std::array::from_fn(|lane| building * n_envs + env + lane);
                let action = std::array::from_fn(|lane| f64::from(actions[(env + lane, column)].clamp(-1.0, 1.0)));
                let share = std::array::from_fn(|lane| share_of(env + lane));
                group.step(cells, batteries, balance_kwh, &action, &share);
            }
        }
        for env in whole..n_envs {
            let share = [share_of(env); LANES];
            for group in &self.together {
                let cells = group.buildings.map(|building| building * n_envs + env);
                let action = group.action_columns.map(|column| f64::from(actions[(env, column)].clamp(-1.0, 1.0)));
                group.step(cells, batteries, balance_kwh, &action, &share);
            }
        }
    }
}

impl Group {
    #[inline]
    fn step(
        &self,
        cells: [usize; LANES],
        batteries: &mut [BatteryState],
        balance_kwh: &mut [f64],
        action: &Lane,
        share: &Lane,
    ) {
        let moved = self.lanes.step(cells.map(|cell| &batteries[cell]), action, share);
        for (lane, cell) in cells.into_iter().enumerate() {
            batteries[cell] = moved.state(lane);
            balance_kwh[cell] = moved.balance_kwh[lane];
        }
    }
}
