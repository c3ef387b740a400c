//! Will a SAC run fit an RTX 4060, and with which batch? Measured on the CPU, without the card: memory of the parts of the run and the
//! least time of an update by the rates of the card, next to its memory.
//!
//! `cargo run --release -p example-device --example device_profile`; a name after `--` replaces the profile `rtx-4060`.

use brasa_classic::{Classic, Pendulum};
use brasa_core::HostEnv;
use brasa_device::{Load, Meter, Precision, open_named, profile};
use brasa_env::{EnvBatch, named_rng};
use brasa_nn::{MlpCritics, MlpCriticsConfig, SquashedActor, SquashedActorConfig};
use brasa_sac::{Sac, SacConfig};
use brasa_train::{Footprint, OffPolicy, OffPolicyConfig, Placing, Run};

/// Counts the memory that parts of the run allocate.
#[global_allocator]
static ALLOCATOR: Meter<std::alloc::System> = Meter(std::alloc::System);

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const GIB: f64 = (1u64 << 30) as f64;
/// Units of both hidden layers.
const HIDDEN: [usize; 2] = [512, 512];

/// What a run with batches of `batch_size` transitions needs.
fn footprint(batch_size: usize) -> Result<Option<Footprint>> {
    let device = open_named("cpu")?;
    let task = Classic::<Pendulum>::pendulum();
    let spec = task.batch(0..1)?.spec().clone();
    let learner = || -> Result<_> {
        let (tracked, rng) = (device.clone().autodiff(), &mut named_rng(0, "weights", 0));
        let actor = SquashedActorConfig { hidden: HIDDEN.to_vec(), ..SquashedActorConfig::default() };
        let actor = SquashedActor::new(&actor, &spec.obs, &spec.action, &tracked, rng)?;
        let critics = MlpCriticsConfig { hidden: HIDDEN.to_vec(), ..MlpCriticsConfig::default() };
        let critics = MlpCritics::new(&critics, &spec.obs, &spec.action, &tracked, rng)?;
        Ok(Sac::new(actor, critics, SacConfig::default(), 0)?)
    };
    let envs = |n| -> Result<_> { Ok(HostEnv::new(task.batch(0..n)?, &device)) };
    let config = OffPolicyConfig { batch_size, ..OffPolicyConfig::default() };
    let run = Run { total_env_steps: 1_000_000, seed: 0 };
    OffPolicy::footprint(envs, learner, &config, 1, run)
}

fn main() -> Result<()> {
    let card = profile(&std::env::args().nth(1).unwrap_or_else(|| "rtx-4060".into()))?;
    let usable = card.usable_bytes().ok_or("the memory of this device is unknown")?;
    println!("{}: {:.2} GiB for a run", card.title, usable / GIB);
    println!("{:>8} {:>8} {:>18} {:>6}", "batch", "GiB", "least ms/update", "fits");
    for batch_size in [256, 4_096, 65_536, 1_048_576] {
        let need = footprint(batch_size)?.ok_or("the allocator counts")?;
        let work = need.learning;
        let load = Load { flop: work.flop, bytes: work.bytes, launches: work.launches, precision: Precision::F32 };
        let least = card.least_secs(&load).map_or("-".to_owned(), |(secs, _)| format!("{:.2}", 1e3 * secs));
        let (gib, fits) = (need.bytes(Placing::on(&card)) / GIB, if need.fits(&card) { "yes" } else { "no" });
        println!("{batch_size:>8} {gib:>8.2} {least:>18} {fits:>6}");
    }
    match Footprint::largest_batch(&card, footprint)? {
        Some(batch) => println!("the largest power of two that fits is a batch of {batch} transitions"),
        None => println!("no batch fits"),
    }
    Ok(())
}
