//! Settings of Criterion and the scheme of ids.

use std::fmt::Display;
use std::time::Duration;

use criterion::{Bencher, BenchmarkId, Criterion, Throughput};

/// Relative changes below this are noise: repeated runs on a machine with other jobs differ by as much.
pub const NOISE_THRESHOLD: f64 = 0.15;

/// Criterion for benches of parts that take from a microsecond to a second: a second per id, and a threshold for noise. Arguments of the
/// command line replace them.
pub fn settings() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .sample_size(15)
        .nresamples(10_000)
        .significance_level(0.01)
        .noise_threshold(NOISE_THRESHOLD)
}

/// Measures under the id `what/size/device`, where `what` is `subject/part`.
///
/// # Panics
/// If `what` is not two names with a slash in between, or a name of the id is empty or has a character other than lower-case letters,
/// digits, `-`, `.` and, for a device, `:`.
pub fn bench(
    criterion: &mut Criterion,
    what: &str,
    size: impl Display,
    device: &str,
    throughput: Throughput,
    work: impl FnMut(&mut Bencher<'_>),
) {
    let size = size.to_string();
    check_id(what, &size, device);
    let mut group = criterion.benchmark_group(what);
    group.throughput(throughput);
    group.bench_function(BenchmarkId::new(size, device), work);
    group.finish();
}

fn check_id(what: &str, size: &str, device: &str) {
    let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let name = |name: &str| !name.is_empty() && name.chars().all(known);
    let parts: Vec<&str> = what.split('/').collect();
    assert!(parts.len() == 2 && parts.iter().all(|part| name(part)), "`what` must be `subject/part`, got `{what}`");
    assert!(name(size), "a size must be a name of lower-case letters, digits, `-` and `.`, got `{size}`");
    assert!(name(&device.replace(':', "")), "a device must be a name such as `cpu` or `cuda:0`, got `{device}`");
}

#[cfg(test)]
mod tests {
    use super::check_id;

    #[test]
    fn ids_have_four_names() {
        check_id("ppo/update", "256-rows", "cpu");
        check_id("cart-pole/step-threaded", "64-envs", "cuda:0");
        for (what, size, device) in [
            ("ppo", "256-rows", "cpu"),
            ("ppo/update/again", "256-rows", "cpu"),
            ("ppo/", "256-rows", "cpu"),
            ("PPO/update", "256-rows", "cpu"),
            ("ppo/update", "256 rows", "cpu"),
            ("ppo/update", "", "cpu"),
            ("ppo/update", "256-rows", ":"),
        ] {
            assert!(std::panic::catch_unwind(|| check_id(what, size, device)).is_err(), "{what}/{size}/{device}");
        }
    }
}
