//! The optimal joint choice of tiny networks, by exhaustive search.

use super::objective::{Objective, Score};
use super::options;
use crate::error::UaraError;
use crate::radio::Link;
use crate::receiver::Receiver;
use crate::snapshot::Snapshot;

/// Largest number of joint choices.
///
/// ```
/// # use brasa_uara::{Interference, Radio, Snapshot};
/// # let radio = Radio {
/// #     n_users: 2, n_stations: 2, n_channels: 2, power_levels: vec![1.0], bandwidth_hz: 1e6, noise_mw: 1e-9,
/// #     min_sinr: 8.0, max_bits_per_hz: None, interference: Interference::PerTransmitter,
/// # };
/// # let (received_mw, all) = (vec![63e-9, 7e-9, 7e-9, 63e-9], vec![true; 4]);
/// # let snapshot = Snapshot { radio: radio.into(), received_mw, reached: all.clone(), allowed: all };
/// use brasa_uara::baselines::{MAX_JOINT_CHOICES, Objective, exhaustive};
///
/// // With 2,000 channels, the two users have 16 million joint choices.
/// let mut large = snapshot.clone();
/// large.radio = Radio { n_channels: 2000, ..(*snapshot.radio).clone() }.into();
/// let error = exhaustive(&large, Objective::SumRate).unwrap_err();
/// assert!(error.to_string().contains(&format!("at most {MAX_JOINT_CHOICES} joint choices")));
/// ```
pub const MAX_JOINT_CHOICES: u64 = 1_000_000;

/// Results of all joint choices.
///
/// ```
/// # use brasa_uara::{Interference, Radio, Snapshot};
/// # let radio = Radio {
/// #     n_users: 2, n_stations: 2, n_channels: 2, power_levels: vec![1.0], bandwidth_hz: 1e6, noise_mw: 1e-9,
/// #     min_sinr: 8.0, max_bits_per_hz: None, interference: Interference::PerTransmitter,
/// # };
/// # let (received_mw, all) = (vec![63e-9, 7e-9, 7e-9, 63e-9], vec![true; 4]);
/// # let snapshot = Snapshot { radio: radio.into(), received_mw, reached: all.clone(), allowed: all };
/// use brasa_uara::baselines::{Exhaustive, Objective, exhaustive};
///
/// // Two users, each near its station; alone on a channel, each has 6 Mb/s.
/// let Exhaustive { n_choices, n_all_satisfied, score, .. } = exhaustive(&snapshot, Objective::Satisfied)?;
/// // Four options for each user, and two joint choices on different channels.
/// assert_eq!((n_choices, n_all_satisfied, score.satisfied), (16, 2, 2));
/// # Ok::<(), brasa_uara::UaraError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Exhaustive {
    /// The best joint choice, the first one if equal, in the order of options with the last user changing fastest.
    pub links: Vec<Link>,
    /// Its score.
    pub score: Score,
    /// Number of joint choices.
    pub n_choices: u64,
    /// Number of joint choices that satisfy all users.
    pub n_all_satisfied: u64,
    /// Satisfied users, summed over all joint choices.
    pub sum_satisfied: u64,
    /// The sum of all rates, averaged over all joint choices, Mb/s: the expectation of random choices.
    pub mean_sum_rate_mbps: f64,
    /// The largest sum of all rates, Mb/s, independent of the objective.
    pub best_sum_rate_mbps: f64,
}

/// Evaluates every joint choice of the users' options.
///
/// ```
/// # use brasa_uara::{Interference, Radio, Snapshot};
/// # let radio = Radio {
/// #     n_users: 2, n_stations: 2, n_channels: 2, power_levels: vec![1.0], bandwidth_hz: 1e6, noise_mw: 1e-9,
/// #     min_sinr: 8.0, max_bits_per_hz: None, interference: Interference::PerTransmitter,
/// # };
/// # let (received_mw, all) = (vec![63e-9, 7e-9, 7e-9, 63e-9], vec![true; 4]);
/// # let snapshot = Snapshot { radio: radio.into(), received_mw, reached: all.clone(), allowed: all };
/// use brasa_uara::baselines::{Objective, exhaustive};
///
/// // Two users, each near its station; alone on a channel, each has 6 Mb/s.
/// let best = exhaustive(&snapshot, Objective::SumRate)?;
/// assert!((best.score.sum_rate_mbps - 12.0).abs() < 1e-9);
/// assert!(best.mean_sum_rate_mbps < best.best_sum_rate_mbps);
/// # Ok::<(), brasa_uara::UaraError>(())
/// ```
///
/// # Errors
/// [`UaraError::TooLarge`] if there are more than [`MAX_JOINT_CHOICES`].
pub fn exhaustive(snapshot: &Snapshot, objective: Objective) -> Result<Exhaustive, UaraError> {
    let radio = &snapshot.radio;
    let counts = (0..radio.n_users).map(|user| options::stations(snapshot, user).len() * radio.options_per_station());
    let n_choices = counts.fold(1u64, |product, count| product.saturating_mul(count as u64));
    if n_choices > MAX_JOINT_CHOICES {
        return Err(UaraError::TooLarge {
            what: "the exhaustive search",
            limit: format!("at most {MAX_JOINT_CHOICES} joint choices"),
            got: if n_choices == u64::MAX { format!("{n_choices} or more") } else { n_choices.to_string() },
        });
    }
    let options: Vec<Vec<Link>> = (0..radio.n_users).map(|user| options::links(snapshot, user).collect()).collect();
    let mut places = vec![0; radio.n_users];
    let mut links: Vec<Link> = options.iter().map(|options| options[0]).collect();
    let mut receiver = Receiver::new(radio);
    let mut sinr = vec![0.0; radio.n_users];
    let mut found = Exhaustive {
        links: links.clone(),
        score: Score::default(),
        n_choices,
        n_all_satisfied: 0,
        sum_satisfied: 0,
        mean_sum_rate_mbps: 0.0,
        best_sum_rate_mbps: 0.0,
    };
    let mut sum_rates = 0.0;
    for _ in 0..n_choices {
        receiver.sinr(&snapshot.received_mw, &snapshot.reached, &links, &mut sinr);
        let score = Score {
            satisfied: sinr.iter().filter(|sinr| **sinr >= radio.min_sinr).count(),
            sum_rate_mbps: sinr.iter().map(|sinr| radio.rate_mbps(*sinr)).sum(),
        };
        found.n_all_satisfied += u64::from(score.satisfied == radio.n_users);
        found.sum_satisfied += score.satisfied as u64;
        found.best_sum_rate_mbps = found.best_sum_rate_mbps.max(score.sum_rate_mbps);
        sum_rates += score.sum_rate_mbps;
        if objective.is_better(score, found.score) {
            found.score = score;
            found.links.clone_from(&links);
        }
        // The next joint choice, with the last user changing fastest.
        for user in (0..radio.n_users).rev() {
            places[user] = (places[user] + 1) % options[user].len();
            links[user] = options[user][places[user]];
            if places[user] > 0 {
                break;
            }
        }
    }
    found.mean_sum_rate_mbps = sum_rates / n_choices as f64;
    Ok(found)
}
