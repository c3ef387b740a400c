//! Ranks of MPI: this test starts itself with `mpirun`. It needs the feature `mpi`.
#![cfg(feature = "mpi")]

use std::process::{Command, Output};

use brasa_shards::{gather, mean, shard};

/// Set in the ranks: what they are to do.
const PROGRAM: &str = "BRASA_TEST_PROGRAM";

/// Starts `n_ranks` processes of `program`; `None` without `mpirun`.
fn start(n_ranks: usize, program: &str) -> Option<Output> {
    let mut mpirun = Command::new("mpirun");
    mpirun.args(["-n", &n_ranks.to_string()]).arg(std::env::current_exe().expect("this test has a path"));
    let output = mpirun.args(["--exact", "the_program_of_a_rank", "--nocapture"]).env(PROGRAM, program).output();
    match output {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("SKIPPED: mpirun cannot be started: {error}");
            None
        }
    }
}

/// What a rank does; nothing in the process of the tests.
#[test]
fn the_program_of_a_rank() {
    let Ok(program) = std::env::var(PROGRAM) else { return };
    let world = brasa_mpi::join().expect("mpirun has started it");
    match program.as_str() {
        "sums" => {
            let result = world.run(8, || {
                let index = shard().index;
                let mut numbers: Vec<f32> =
                    (0..10_000).map(|i| ((i * 8 + index) as f32 * 0.7).sin() * 10f32.powi((i % 7) as i32)).collect();
                for _ in 0..20 {
                    numbers = mean(numbers.into_iter().map(|x| x * (1.0 + index as f32)).collect());
                }
                let bits = numbers.iter().fold(0u64, |hash, x| hash.rotate_left(7) ^ u64::from(x.to_bits()));
                let doubles = mean(vec![1.0 / (3.0 + index as f64)]);
                assert_eq!(mean(Vec::<f32>::new()), []);
                // Of different lengths, one of them longer than a piece.
                let bytes = gather(vec![index as u8; if index == 5 { 3_000_000 } else { index }]);
                let lengths: Vec<usize> = bytes.iter().map(Vec::len).collect();
                assert_eq!(lengths, [0, 1, 2, 3, 4, 3_000_000, 6, 7]);
                assert!(bytes.iter().enumerate().all(|(i, bytes)| bytes.iter().all(|byte| *byte == i as u8)));
                assert!(gather(Vec::new()).iter().all(Vec::is_empty));
                Ok::<_, String>((bits, doubles[0].to_bits()))
            });
            let (bits, doubles) = result.expect("nothing fails");
            println!("rank {} of {}: {bits:x} {doubles:x}", world.rank(), world.n_ranks());
        }
        "failure" => {
            let outcome = world.run(8, || {
                mean(vec![0.0f32]);
                if shard().index == 5 {
                    return Err("no disk".to_owned());
                }
                mean(vec![0.0f32]);
                Ok(())
            });
            println!("rank {} got {outcome:?}", world.rank());
        }
        // The second run begins with nobody gone; in it one rank ends before the others.
        "early" => {
            let run = |n_rounds: &(dyn Fn(usize) -> usize + Sync)| {
                world.run(4, || {
                    (0..n_rounds(shard().index)).for_each(|_| drop(mean(vec![0.0f32])));
                    Ok::<_, String>(())
                })
            };
            run(&|_| 3).expect("all meet three times");
            println!("rank {} came through", world.rank());
            let outcome = run(&|index| if index == 1 { 2 } else { 3 });
            println!("rank {} got {outcome:?}", world.rank());
        }
        "odd" => println!("{}", world.run(8, || Ok::<_, String>(())).expect_err("three ranks do not divide eight")),
        other => panic!("unknown program {other}"),
    }
}

#[test]
fn every_number_of_ranks_gives_the_same_bits() {
    let mut first: Option<String> = None;
    for n_ranks in [1, 2, 4] {
        let Some(output) = start(n_ranks, "sums") else { return };
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let results: Vec<&str> =
            text.lines().filter_map(|line| Some(line.split_once(&format!(" of {n_ranks}: "))?.1)).collect();
        assert_eq!(results.len(), n_ranks, "{text}");
        for result in results {
            assert_eq!(result, first.get_or_insert_with(|| result.to_owned()));
        }
    }
}

#[test]
fn a_rank_that_fails_ends_all() {
    let Some(output) = start(4, "failure") else { return };
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("error: rank 2 of 4: shard 5: no disk"), "{text}");
    assert!(!text.contains("got"), "no rank goes on: {text}");
}

/// Without this the others would wait forever.
#[test]
fn a_rank_that_ends_early_ends_all() {
    let Some(output) = start(4, "early") else { return };
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!output.status.success(), "{text}");
    assert_eq!(text.matches("came through").count(), 4, "{text}");
    assert!(text.contains("in exchange 6 for rank 1, whose run ended after 5 exchanges"), "{text}");
    assert!(!text.contains("got"), "no rank goes on: {text}");
}

#[test]
fn ranks_that_cannot_share_the_shards_are_refused() {
    let Some(output) = start(3, "odd") else { return };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("a multiple of the number of ranks, which is 3, got 8"), "{text}");
}
