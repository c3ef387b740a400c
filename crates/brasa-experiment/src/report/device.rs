//! The use of the device during a run: curves, time of each phase, and a verdict.

use brasa_train::{PHASES, RunDir};
use serde_json::{Map, Value, json};

use super::page::{CURVE_POINTS, escape, metric};
use super::table::boxed;
use crate::comparison::number;

/// Use of a device from which on it counts as busy.
const BUSY: f64 = 0.75;
/// A loss that grows by more than this factor, from the first half of a run to the second, is out of range.
const GROWTH: f64 = 10.0;
/// The file of a run with the settings that were lowered because memory was exhausted.
pub(crate) const OUT_OF_MEMORY: &str = "out_of_memory.jsonl";

/// Metrics of a GPU and their labels.
const OF_GPU: [(&str, &str); 6] = [
    ("gpu/busy", "GPU, share busy"),
    ("gpu/memory_gib", "GPU memory in use, GiB"),
    ("gpu/temperature_c", "GPU temperature, °C"),
    ("gpu/power_w", "GPU power, W"),
    ("gpu/clock_mhz", "GPU clock, MHz"),
    ("gpu/memory_clock_mhz", "GPU memory clock, MHz"),
];
/// Metrics of the processor and their labels.
const OF_PROCESS: [(&str, &str); 2] = [
    ("time/process_busy", "Processor, share of all threads busy"),
    ("time/process_memory_gib", "Memory of the process, GiB"),
];

/// The use of the device during a run, from its metrics.
pub(super) struct DeviceUse {
    /// The device that has the first curve.
    name: &'static str,
    steps: Vec<Option<f64>>,
    /// Label and values.
    curves: Vec<(&'static str, Vec<Option<f64>>)>,
    /// Mean use, 0 to 1.
    busy: f64,
    /// Seconds of each phase of training.
    phases: Vec<(&'static str, f64)>,
    /// Lowered settings.
    out_of_memory: usize,
    /// Name, lowest and highest value of each loss, and whether it has grown out of range.
    losses: Vec<(String, f64, f64, bool)>,
}

impl DeviceUse {
    /// `None` for a run without readings, such as one of less than 0.1 s.
    pub fn of(metrics: &[Map<String, Value>], run_dir: &RunDir) -> Option<Self> {
        let has = |name: &str| metrics.iter().any(|line| line.contains_key(name));
        let of_gpu = OF_GPU.iter().filter(|(name, _)| has(name));
        let of_process = OF_PROCESS.iter().filter(|(name, _)| has(name));
        let shown: Vec<&(&str, &str)> = of_gpu.chain(of_process).collect();
        let (of_use, name) = match (has(OF_GPU[0].0), has(OF_PROCESS[0].0)) {
            (true, _) => (OF_GPU[0].0, "GPU"),
            (false, true) => (OF_PROCESS[0].0, "processor"),
            (false, false) => return None,
        };
        // Readings weigh as much as the time that they stand for: a line may take a millisecond or a minute.
        let (mut busy_secs, mut secs) = (0.0, 0.0);
        for line in metrics {
            if let Some(busy) = metric(line, of_use) {
                let of_line = phase_secs(line).iter().sum::<f64>();
                busy_secs += busy * of_line;
                secs += of_line;
            }
        }
        let mut phases = PHASES.map(|name| (name, 0.0)).to_vec();
        for line in metrics {
            phases.iter_mut().zip(phase_secs(line)).for_each(|((_, sum), secs)| *sum += secs);
        }
        let points: Vec<_> = metrics.iter().filter(|line| line.contains_key(of_use)).collect();
        let stride = points.len().div_ceil(CURVE_POINTS).max(1);
        let values = |name: &str| points.iter().step_by(stride).map(|line| metric(line, name)).collect::<Vec<_>>();
        let lowered = std::fs::read_to_string(run_dir.file(OUT_OF_MEMORY)).unwrap_or_default();
        Some(Self {
            name,
            steps: values("env_steps"),
            curves: shown.iter().map(|(name, label)| (*label, values(name))).collect(),
            busy: if secs > 0.0 { busy_secs / secs } else { 0.0 },
            phases,
            out_of_memory: lowered.lines().count(),
            losses: losses(metrics),
        })
    }

    /// The curves for the script of the page.
    pub fn curves(&self) -> Value {
        let curves: Vec<Value> =
            self.curves.iter().map(|(label, values)| json!({ "label": label, "values": values })).collect();
        json!({ "steps": self.steps, "curves": curves })
    }

    /// Whether each expectation is met, and what was found.
    fn verdicts(&self) -> Vec<(bool, String)> {
        let total: f64 = self.phases.iter().map(|(_, secs)| secs).sum();
        let longest = self.phases.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let mut used = format!("The {} was busy {} of the time", self.name, percent(self.busy));
        let is_busy = self.busy > BUSY;
        match longest.filter(|_| !is_busy && total > 0.0) {
            Some((phase, secs)) => {
                used.push_str(&format!(
                    "; above {} is expected. {} of the time was {phase}.",
                    percent(BUSY),
                    percent(secs / total)
                ));
            }
            None => used.push('.'),
        }
        let memory = match self.out_of_memory {
            0 => "Memory was never exhausted.".to_owned(),
            1 => format!("Memory was exhausted once: {OUT_OF_MEMORY} has the setting that was lowered."),
            n => format!("Memory was exhausted {n} times: {OUT_OF_MEMORY} has the settings that were lowered."),
        };
        let mut verdicts = vec![(is_busy, used), (self.out_of_memory == 0, memory)];
        verdicts.extend(self.losses.iter().map(|(name, low, high, grew)| {
            let range = format!("{name} was between {} and {}", number(*low), number(*high));
            let growth = if *grew { format!("; it grew more than {GROWTH:.0}-fold.") } else { ".".to_owned() };
            (!grew, format!("{range}{growth}"))
        }));
        verdicts
    }

    /// The section of the page.
    pub fn to_html(&self) -> String {
        let verdicts = self.verdicts().into_iter().map(|(is_met, text)| {
            let mark = if is_met { "yes" } else { "no" };
            format!("<tr><th scope=\"row\">{}</th><td>{mark}</td></tr>", escape(&text))
        });
        let verdicts: String = verdicts.collect();
        let total: f64 = self.phases.iter().map(|(_, secs)| secs).sum();
        let phases = self.phases.iter().filter(|(_, secs)| *secs > 0.0).map(|(name, secs)| {
            format!(
                "<tr><th scope=\"row\">{name}</th><td>{} s</td><td>{:.0} %</td></tr>",
                number(*secs),
                100.0 * secs / total
            )
        });
        let phases: String = phases.collect();
        let head = |names: &[&str]| {
            let cells: String = names.iter().map(|name| format!("<th scope=\"col\">{name}</th>")).collect();
            format!("<thead><tr>{cells}</tr></thead>")
        };
        let (verdicts_head, phases_head) =
            (head(&["finding", "as expected"]), head(&["phase of training", "time", "share"]));
        format!(
            "<h2>Device</h2>\n{}\n{}\n<div class=\"plots\" id=\"device\"></div>\n\n",
            boxed("device", &format!("<table class=\"facts\">{verdicts_head}<tbody>{verdicts}</tbody></table>"), ""),
            boxed("phases of training", &format!("<table>{phases_head}<tbody>{phases}</tbody></table>"), "")
        )
    }
}

/// Seconds of each phase in an iteration.
fn phase_secs(line: &Map<String, Value>) -> [f64; PHASES.len()] {
    PHASES.map(|name| metric(line, &format!("time/{name}")).unwrap_or(0.0))
}

/// Every loss with its range, and whether it has grown out of range.
fn losses(metrics: &[Map<String, Value>]) -> Vec<(String, f64, f64, bool)> {
    let mut names: Vec<&String> = Vec::new();
    for name in metrics.iter().flat_map(Map::keys) {
        if name.starts_with("train/") && name.ends_with("loss") && !names.contains(&name) {
            names.push(name);
        }
    }
    let of = |name: &String| {
        let values: Vec<f64> = metrics.iter().filter_map(|line| metric(line, name)).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let largest = |part: &[f64]| part.iter().map(|value| value.abs()).fold(0.0, f64::max);
        let (first, second) = values.split_at(values.len().div_ceil(2));
        // A loss around 0 may grow many times and still be small.
        let grew = largest(second) > GROWTH * largest(first).max(1e-3);
        (name.clone(), low, high, grew)
    };
    names.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(busy: &str, losses: &[f64]) -> Vec<Map<String, Value>> {
        let line = |(i, loss): (usize, &f64)| {
            let value = json!({
                "env_steps": 8 * (i + 1), busy: if i == 0 { 0.2 } else { 0.9 }, "train/actor_loss": loss, "train/loss_scale": 4.0,
                "time/environment": if i == 0 { 0.5 } else { 2.0 }, "time/learning": if i == 0 { 0.5 } else { 1.0 },
            });
            value.as_object().expect("it is an object").clone()
        };
        losses.iter().enumerate().map(line).collect()
    }

    fn of(metrics: &[Map<String, Value>], out_of_memory: &str) -> Option<DeviceUse> {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let run_dir = RunDir::create(dir.path().join("run")).expect("the directory is empty");
        run_dir.write(OUT_OF_MEMORY, out_of_memory.as_bytes()).expect("there is room");
        DeviceUse::of(metrics, &run_dir)
    }

    #[test]
    fn the_verdict_weighs_use_by_time_and_judges_memory_and_losses() {
        let used = of(&lines("gpu/busy", &[-0.5, 0.25, 0.5]), "").expect("there are readings");
        // 0.2 for one second, 0.9 for six.
        assert!((used.busy - 0.8).abs() < 1e-9, "{}", used.busy);
        let expected = [
            (true, "The GPU was busy 80 % of the time."),
            (true, "Memory was never exhausted."),
            (true, "train/actor_loss was between -0.500 and 0.500."),
        ];
        let found = used.verdicts();
        assert_eq!(found.iter().map(|(met, text)| (*met, &**text)).collect::<Vec<_>>(), expected);
        assert_eq!(used.phases, [("environment", 4.5), ("transfer", 0.0), ("acting", 0.0), ("learning", 2.5)]);
        assert_eq!(used.curves()["curves"][0]["values"], json!([0.2, 0.9, 0.9]));
    }

    #[test]
    fn what_is_not_as_expected_is_named() {
        let used = of(&lines("time/process_busy", &[0.5, 50.0]), "{}\n").expect("there are readings");
        let found = used.verdicts();
        assert_eq!(
            found[0],
            (
                false,
                "The processor was busy 73 % of the time; above 75 % is expected. 62 % of the time was environment."
                    .into()
            )
        );
        assert_eq!(
            found[1],
            (false, "Memory was exhausted once: out_of_memory.jsonl has the setting that was lowered.".into())
        );
        assert!(!found[2].0 && found[2].1.ends_with("; it grew more than 10-fold."), "{}", found[2].1);
        let html = used.to_html();
        assert!(html.contains("<h2>Device</h2>") && html.contains("<td>no</td>") && html.contains(">learning</th>"));
        assert!(of(&lines("rollout/ep_rew_mean", &[1.0]), "").is_none(), "it has no readings of a device");
    }
}
