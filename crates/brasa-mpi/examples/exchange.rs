//! Measures how long shards need for one mean, as after every gradient: `exchange [N_SHARDS]`, also under `mpirun`.

use std::time::Instant;

use brasa_shards::{mean, shard};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let n_shards = std::env::args().nth(1).map_or(Ok(8), |text| text.parse())?;
    let world = brasa_mpi::join()?;
    let lines = world.run(n_shards, || {
        let mut lines = Vec::new();
        for n in [1usize, 1_000, 10_000, 100_000, 1_000_000] {
            let n_times = (2_000_000 / n).clamp(20, 2_000);
            let mut numbers = vec![shard().index as f32; n];
            // The first meetings start the threads and the connections.
            for _ in 0..5 {
                numbers = mean(numbers);
            }
            let begin = Instant::now();
            for _ in 0..n_times {
                numbers = mean(numbers);
            }
            let micros = begin.elapsed().as_secs_f64() * 1e6 / n_times as f64;
            lines.push(format!("{n:>9} numbers  {micros:>9.1} us"));
        }
        Ok::<_, String>(lines)
    })?;
    if world.rank() == 0 {
        println!("{n_shards} shards on {} ranks", world.n_ranks());
        lines.iter().for_each(|line| println!("{line}"));
    }
    Ok(())
}
