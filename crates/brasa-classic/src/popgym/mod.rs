//! Tasks of POPGym, which need memory.

mod cards;
mod filter;
mod position_only;

use serde::{Deserialize, Serialize};

pub use cards::{CardGame, CardState};
pub use position_only::PositionOnlyCartPole;

use crate::Classic;
use crate::scenario::rule;
use filter::CartPoleFilter;

/// Settings of a task of POPGym.
///
/// ```
/// use brasa_classic::{Difficulty, PopgymConfig};
///
/// let config: PopgymConfig = serde_json::from_str(r#"{ "difficulty": "hard" }"#)?;
/// assert_eq!(config.difficulty, Difficulty::Hard);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PopgymConfig {
    /// Length of an episode and what must be remembered: `easy`, the default, `medium` or `hard`.
    pub difficulty: Difficulty,
    /// Whether observations end with the latest action, as in the results of POPGym; default false.
    pub previous_action: bool,
}

/// The difficulty of a task of POPGym.
///
/// ```
/// use brasa_classic::{CardGame, Difficulty};
/// use brasa_env::Env;
///
/// // One deck, or sixteen.
/// let [easy, hard] = [Difficulty::Easy, Difficulty::Hard].map(CardGame::repeat_first);
/// assert_eq!((easy.n_steps(), hard.n_steps()), (51, 831));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Difficulty {
    /// As published.
    #[default]
    Easy,
    /// As published.
    Medium,
    /// As published.
    Hard,
}

impl Difficulty {
    /// One of three values.
    pub(crate) fn of<T>(self, [easy, medium, hard]: [T; 3]) -> T {
        match self {
            Self::Easy => easy,
            Self::Medium => medium,
            Self::Hard => hard,
        }
    }
}

/// Perfect memory has a return of 1, and errors alone one of -1.
impl Classic<CardGame> {
    /// POPGym's RepeatFirst: name the suit of the first card at every step.
    pub fn repeat_first(difficulty: Difficulty) -> Self {
        Self::cards(CardGame::repeat_first(difficulty))
    }

    /// POPGym's RepeatPrevious: name the suit of the card some steps before.
    pub fn repeat_previous(difficulty: Difficulty) -> Self {
        Self::cards(CardGame::repeat_previous(difficulty))
    }

    /// POPGym's CountRecall: say how many cards of a kind have been dealt.
    pub fn count_recall(difficulty: Difficulty) -> Self {
        Self::cards(CardGame::count_recall(difficulty))
    }

    /// POPGym's Autoencode: see a deck, then name its suits in reverse order.
    pub fn autoencode(difficulty: Difficulty) -> Self {
        Self::cards(CardGame::autoencode(difficulty))
    }

    fn cards(game: CardGame) -> Self {
        // The rules end an episode; no limit cuts it.
        let steps = game.n_steps() as u32 + 1;
        Self::new(move || game.clone(), steps).with_bound(1.0)
    }
}

/// A step has the reward of one share of the time limit, so 1 is the bound of the return.
impl Classic<PositionOnlyCartPole> {
    /// POPGym's PositionOnlyCartPole: CartPole whose speeds are not observed.
    pub fn position_only_cart_pole(difficulty: Difficulty) -> Self {
        Self::positions(PositionOnlyCartPole::new(difficulty))
    }

    /// POPGym's NoisyPositionOnlyCartPole: the positions have noise, too.
    pub fn noisy_position_only_cart_pole(difficulty: Difficulty) -> Self {
        Self::positions(PositionOnlyCartPole::noisy(difficulty))
    }

    fn positions(cart_pole: PositionOnlyCartPole) -> Self {
        let (steps, noise) = (cart_pole.n_steps(), cart_pole.noise());
        let filter = rule().by(move || Box::new(CartPoleFilter::new(noise)));
        Self::new(move || cart_pole.clone(), steps).with_rule(filter).with_bound(1.0)
    }
}
