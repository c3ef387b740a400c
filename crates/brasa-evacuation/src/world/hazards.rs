//! Fire and smoke.
//!
//! Once per period every fire grows and may cross each of its edges; smoke moves every tick. Both are independent of
//! people and responders, so the fire of an episode is the same for every policy.

use rand::RngExt;

use super::World;
use crate::config::Smoke;

/// Initial smoke of a fire and its neighbors, in the model without transport.
const FIRST_SMOKE: f32 = 0.3;
/// Increase of this smoke per period.
const SMOKE_GROWTH: f32 = 0.1;
/// Smoke below this density is set to 0.
const CLEAR: f32 = 1e-4;

impl World {
    /// Sets `node` on fire.
    pub(super) fn ignite(&mut self, node: usize) {
        self.state.fire[node] = self.rules.hazards.ignition as f32;
        self.state.smoke[node] = self.state.smoke[node].max(FIRST_SMOKE);
    }

    /// One tick of only fire and smoke.
    pub fn burn_alone(&mut self) {
        self.state.tick += 1;
        self.burn();
    }

    /// One tick of fire and smoke.
    pub(super) fn burn(&mut self) {
        if !self.rules.hazards.enabled {
            return;
        }
        let period = self.rules.ticks(self.rules.hazards.period_secs);
        let spreads = self.state.tick.is_multiple_of(period);
        if spreads {
            self.spread();
        }
        match self.rules.hazards.smoke {
            Smoke::Transport => self.transport(),
            Smoke::Neighbors if spreads => self.thicken(),
            Smoke::Neighbors => {}
        }
    }

    /// Fires grow and cross edges; new fires do not spread before the next period.
    fn spread(&mut self) {
        let building = &self.buildings[self.state.building as usize];
        let (hazards, state) = (&self.rules.hazards, &mut self.state);
        let change = &mut self.scratch.change;
        change.clear();
        change.extend_from_slice(&state.fire);
        let mut changed = false;
        for node in 0..state.fire.len() {
            if state.fire[node] <= 0.0 {
                continue;
            }
            changed |= change[node] < 1.0;
            change[node] = (state.fire[node] + hazards.growth as f32).min(1.0);
            for (next, edge) in building.topology.neighbors(node) {
                if state.fire[next] > 0.0 {
                    continue;
                }
                let factor = if building.layout.edges[edge].fire_door { hazards.fire_door_factor } else { 1.0 };
                if state.hazard_rng.random::<f64>() < hazards.spread_chance * factor {
                    change[next] = change[next].max(hazards.ignition as f32);
                    state.smoke[next] = state.smoke[next].max(FIRST_SMOKE);
                    changed = true;
                }
            }
        }
        state.fire.copy_from_slice(change);
        if changed {
            self.after_fire();
        }
    }

    /// Smoke next to fires becomes denser and stays.
    fn thicken(&mut self) {
        let building = &self.buildings[self.state.building as usize];
        let state = &mut self.state;
        for node in 0..state.fire.len() {
            if state.fire[node] > 0.0 {
                for (next, _) in building.topology.neighbors(node) {
                    state.smoke[next] = (state.smoke[next].max(FIRST_SMOKE) + SMOKE_GROWTH).min(1.0);
                }
            }
        }
    }

    /// Fires produce smoke, openings exchange it, exits vent it.
    fn transport(&mut self) {
        let building = &self.buildings[self.state.building as usize];
        let (hazards, state) = (&self.rules.hazards, &mut self.state);
        let dt = self.rules.timing.tick_secs as f32;
        let change = &mut self.scratch.change;
        change.clear();
        // In m2 of floor full of dense smoke.
        change.extend(state.fire.iter().map(|fire| fire * hazards.smoke_m2_per_s as f32 * dt));
        for (edge, exchange) in building.layout.edges.iter().zip(&building.exchange_m2) {
            let flow = exchange * (state.smoke[edge.a] - state.smoke[edge.b]);
            change[edge.a] -= flow;
            change[edge.b] += flow;
        }
        for ((smoke, change), node) in state.smoke.iter_mut().zip(change.iter()).zip(&building.layout.nodes) {
            *smoke = (*smoke + change / node.area_m2 as f32).clamp(0.0, 1.0);
            if *smoke < CLEAR {
                *smoke = 0.0;
            }
        }
        let kept = (1.0 - hazards.exit_venting_per_s as f32 * dt).max(0.0);
        building.exits.iter().for_each(|exit| state.smoke[*exit] *= kept);
    }

    /// Updates the lost nodes and the open paths of people after changes of the fire.
    pub(super) fn after_fire(&mut self) {
        let building = &self.buildings[self.state.building as usize];
        let (state, scratch, rules) = (&mut self.state, &mut self.scratch, &self.rules);
        let n = building.n_nodes();
        let impassable = rules.hazards.impassable as f32;
        scratch.exit_field.resize(n, 0.0);
        scratch.cut_off.resize(n, 0.0);
        if state.fire.iter().any(|fire| *fire >= impassable) {
            // Cut off: no passable path from any exit.
            let open: Vec<usize> =
                building.exits.iter().copied().filter(|exit| state.fire[*exit] < impassable).collect();
            let passable = |_: usize, node: usize| if state.fire[node] < impassable { 0.0 } else { f64::INFINITY };
            building.topology.field(&open, passable, &mut scratch.cut_off);
            for (lost, time) in state.lost.iter_mut().zip(&scratch.cut_off) {
                *lost |= time.is_infinite();
            }
        }
        // People do not walk into any fire, but leave a burning place.
        let safe: Vec<usize> = building.exits.iter().copied().filter(|exit| state.fire[*exit] <= 0.0).collect();
        ways_out(building, &state.fire, &rules.timing, &safe, &mut scratch.exit_field);
    }
}

/// Lengths of paths to the nearest of `safe` without burning nodes; from a burning node, over its best neighbor.
///
/// A burning node may be the start of a path, but not an intermediate node.
fn ways_out(
    building: &crate::building::Building,
    fire: &[f32],
    timing: &crate::Timing,
    safe: &[usize],
    out: &mut [f64],
) {
    let length = |edge: usize| {
        let edge = &building.layout.edges[edge];
        edge.length_m / timing.slope_factor(edge)
    };
    let step = |edge: usize, node: usize| if fire[node] > 0.0 { f64::INFINITY } else { length(edge) };
    building.topology.field(safe, step, out);
    for node in 0..out.len() {
        if fire[node] > 0.0 {
            let ways = building.topology.neighbors(node).filter(|(next, _)| fire[*next] <= 0.0);
            out[node] = ways.map(|(next, edge)| length(edge) + out[next]).fold(f64::INFINITY, f64::min);
        }
    }
}
