//! Shards of one process exchange numbers, fail together and leave nothing behind.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use brasa_shards::{RunError, ShardError, World, gather, mean, shard};

type Outcome<T> = Result<T, RunError<String>>;

#[test]
fn all_shards_get_the_same_mean_and_all_bytes() -> Outcome<()> {
    for n_shards in [1, 2, 8, 16] {
        let (sum, bytes) = World::solo().run(n_shards, || {
            let index = shard().index;
            // Many rounds: a slow shard must not meet the results of a later round.
            for round in 0..200 {
                let expected = (0..n_shards).map(|i| (i * round) as f64).sum::<f64>() / n_shards as f64;
                assert_eq!(mean(vec![(index * round) as f64]), [expected]);
            }
            Ok::<_, String>((mean(vec![index as f32, 1.0]), gather(vec![index as u8; index])))
        })?;
        assert_eq!(sum, [(n_shards - 1) as f32 / 2.0, 1.0]);
        assert_eq!(*bytes, (0..n_shards).map(|i| vec![i as u8; i]).collect::<Vec<_>>());
    }
    assert_eq!(shard().count, 1);
    Ok(())
}

#[test]
fn a_shard_that_fails_ends_the_others() {
    let ended = AtomicUsize::new(0);
    struct Count<'a>(&'a AtomicUsize);
    impl Drop for Count<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let fail_at = |failing: usize, panics: bool| {
        let ended = &ended;
        World::solo().run(8, move || {
            let _count = Count(ended);
            mean(vec![0.0f32]);
            if shard().index == failing {
                if panics {
                    panic!("a bug");
                }
                return Err("no disk".to_owned());
            }
            // It would wait forever.
            mean(vec![0.0f32]);
            Ok(())
        })
    };
    assert!(matches!(fail_at(0, false), Err(RunError::Own(message)) if message == "no disk"));
    assert_eq!(fail_at(5, false).expect_err("it fails").to_string(), "shard 5: no disk");
    assert_eq!(fail_at(3, true).expect_err("it fails").to_string(), "shard 3: panicked: a bug");
    assert_eq!(ended.load(Ordering::SeqCst), 24, "every shard has ended");
    assert!(catch_unwind(AssertUnwindSafe(|| fail_at(0, true))).is_err());
    assert_eq!(shard().count, 1);
}

/// A shard that returns before an exchange of the others: without this they would wait forever.
#[test]
fn a_shard_that_ends_early_ends_the_others() {
    for (early, pause_of) in [(0, 0), (0, 1), (3, 0), (3, 3)] {
        let outcome = World::solo().run(4, || {
            mean(vec![0.0f32]);
            let index = shard().index;
            // It leaves before the others wait, or while they do.
            if index == pause_of {
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            if index != early {
                mean(vec![0.0f32]);
            }
            Ok::<_, String>(())
        });
        let message = outcome.expect_err("the others cannot meet").to_string();
        assert!(message.starts_with(&format!("shard {early}: it ended while other shards wait for it")), "{message}");
    }
}

#[test]
fn shards_that_do_different_things_are_a_bug_that_is_named() {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        World::solo().run(2, || {
            match shard().index {
                0 => drop(mean(vec![0.0f32])),
                _ => drop(gather(Vec::new())),
            }
            Ok::<_, String>(())
        })
    }));
    // Whoever arrives second finds it.
    if let Ok(outcome) = outcome {
        let message = outcome.expect_err("it fails").to_string();
        assert!(message.contains("the same values in the same order"), "{message}");
    }
}

#[test]
fn a_number_of_shards_that_cannot_be_divided_is_refused() {
    let refused = World::solo().run(6, || Ok::<_, String>(()));
    assert!(matches!(refused, Err(RunError::Dist(ShardError::Shards { n_shards: 6, n_ranks: 1 }))));
}
