//! Steps of the charging station allocate nothing.

use brasa_energy::station::{Station, StationConfig};
use brasa_env::{BatchSlabs, EnvBatch};
use brasa_test::memory::Counting;
use ndarray::Array2;

#[global_allocator]
static MEMORY: Counting = Counting::new();

#[test]
fn a_step_allocates_nothing() {
    for preset in ["default", "chargax"] {
        let scenario = Station::new(StationConfig::preset(preset).expect("a preset")).expect("presets are valid");
        let mut batch = scenario.batch(0..3).expect("a batch");
        let mut slabs = BatchSlabs::new(batch.spec());
        let actions = Array2::ones((3, batch.spec().action.width()));
        batch.reset(1, &mut slabs).expect("resets");
        let before = MEMORY.restart();
        // Two days with everything that happens: arrivals, departures, limits, and the start of an episode.
        for _ in 0..2 * 288 {
            batch.step(actions.view(), &mut slabs).expect("steps");
        }
        assert_eq!((MEMORY.in_use(), MEMORY.peak()), (before, before), "{preset}");
    }
}
