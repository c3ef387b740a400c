//! Districts and the microgrid: a week of power flows of a baseline and of the policy.

use brasa_energy::Trace;
use brasa_energy::citylearn::CityLearn;
use brasa_energy::iquitos::Iquitos;
use brasa_energy::station::Station;
use brasa_experiment::{Played, Registry, ScenarioEntry, Section, SectionContext};
use serde_json::{Value, json};

/// Number of steps of the power flows in the report: a week of hours.
const WEEK_STEPS: usize = 168;

pub fn register(registry: &mut Registry) {
    let citylearn = ScenarioEntry::new("citylearn", CityLearn::new).section(week("idle"));
    #[cfg(feature = "tensor")]
    let citylearn = citylearn
        .tensor(|district: &CityLearn, device| district.tensors(device).map(|(tensors, steps)| (tensors, Some(steps))));
    registry.scenario(citylearn);
    let iquitos = ScenarioEntry::new("iquitos", Iquitos::new).section(week("uncontrolled"));
    #[cfg(feature = "tensor")]
    let iquitos = iquitos
        .tensor(|microgrid: &Iquitos, device| microgrid.tensors(device).map(|(tensors, steps)| (tensors, Some(steps))));
    registry.scenario(iquitos);
    registry.scenario(ScenarioEntry::new("station", Station::new));
}

/// A week of power flows of a baseline and of the policy.
fn week(before: &'static str) -> Section {
    Section::new("week").scripts(&[include_str!("week.js")]).data(move |context| Ok(data(before, context)))
}

/// The week with the largest import of the baseline.
fn data(before: &str, context: &SectionContext<'_>) -> Value {
    let trace = |played: &&Played| played.outcomes.first()?.trace.as_ref()?.downcast_ref::<Trace>().cloned();
    let first = context.played.iter().find(|played| played.name == before).as_ref().and_then(trace);
    let after = context.played.iter().find(|played| played.kind.is_none()).as_ref().and_then(trace);
    let (Some(first), Some(after)) = (first, after) else { return Value::Null };
    let weeks = first.grid_kw.chunks(WEEK_STEPS).filter(|week| week.len() == WEEK_STEPS);
    let imports = weeks.map(|week| week.iter().map(|kw| kw.max(0.0)).sum::<f32>());
    let Some((index, _)) = imports.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)) else { return Value::Null };
    let flows = |trace: &Trace| flows(trace, index * WEEK_STEPS);
    json!({
        "first_step": index * WEEK_STEPS, "before": flows(&first), "before_name": before, "after": flows(&after),
    })
}

fn flows(trace: &Trace, first: usize) -> Value {
    let cut = |series: &[f32]| -> Vec<f64> {
        let end = (first + WEEK_STEPS).min(series.len());
        // Three digits are more precise than a pixel and keep the page small.
        series[first.min(end)..end].iter().map(|x| (f64::from(*x) * 1000.0).round() / 1000.0).collect()
    };
    json!({
        "load": cut(&trace.load_kw), "pv": cut(&trace.pv_kw), "battery": cut(&trace.battery_kw),
        "ev": cut(&trace.ev_kw), "grid": cut(&trace.grid_kw), "soc": cut(&trace.soc),
    })
}
