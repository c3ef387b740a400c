//! Card games.

use brasa_env::{Env, EnvRng, EnvSpec, Space, Step, option_index};
use ndarray::{ArrayView1, ArrayViewMut1};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::Difficulty;

/// Cards of a deck.
const DECK: usize = 52;
/// Suits of a deck.
const SUITS: usize = 4;

/// What an agent must know of the cards that it saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    /// The first card.
    First,
    /// The card this many steps before; 1 is the one that is seen.
    Previous(usize),
    /// The number of cards of a kind.
    Count,
    /// All cards, from the last one to the first one, after the last one was dealt.
    Reverse,
}

/// A game of POPGym (Morad et al. 2023, arXiv 2303.01859) with a shuffled deck.
///
/// An observation has 1 at first steps in its first column (POPGym's `Antialias`), then the kind of the card as a column of its own for each kind,
/// and what belongs to the game. The right action has a share of 1 as its reward, and a wrong action minus this share: perfect memory has a return
/// of 1. Rewards, observations and ends are those of `popgym` 1.0.7.
///
/// ```
/// use brasa_classic::{CardGame, Difficulty};
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let (mut game, mut obs, mut rng) = (CardGame::repeat_first(Difficulty::Easy), Array1::zeros(5), episode_rng(0, 0, 0));
/// game.reset(&mut rng, obs.view_mut());
/// let suit = obs.iter().skip(1).position(|x| *x == 1.0).expect("a card is seen");
/// let first = game.step(array![suit as f32].view(), &mut rng, obs.view_mut());
/// // Later, the first card is no longer seen.
/// let second = game.step(array![suit as f32].view(), &mut rng, obs.view_mut());
/// assert_eq!((first.reward, second.reward), (1.0 / 51.0, 1.0 / 51.0));
/// ```
#[derive(Debug, Clone)]
pub struct CardGame {
    task: Task,
    n_cards: usize,
    /// Kinds of cards that are told apart.
    kinds: usize,
    state: CardState,
}

/// The cards of an episode of a [`CardGame`].
///
/// ```
/// use brasa_classic::{CardGame, CardState, Difficulty};
/// use brasa_env::Env;
///
/// let mut game = CardGame::repeat_first(Difficulty::Easy);
/// // A deck without order.
/// let cards: Vec<u8> = (0..52).map(|card| card % 4).collect();
/// game.set_state(CardState::dealt_first(cards, vec![]));
/// assert_eq!(game.state().n_dealt, 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardState {
    /// Kinds of all cards in the order in which they are dealt.
    pub cards: Vec<u8>,
    /// Kinds that are asked for with each card, where the game asks.
    pub queries: Vec<u8>,
    /// Cards that were dealt.
    pub n_dealt: usize,
    /// Cards that were named after the last one was dealt.
    pub n_named: usize,
}

impl CardState {
    /// After the first card.
    pub fn dealt_first(cards: Vec<u8>, queries: Vec<u8>) -> Self {
        Self { cards, queries, n_dealt: 1, n_named: 0 }
    }
}

impl CardGame {
    fn new(task: Task, decks: usize, kinds: usize) -> Self {
        let n_cards = decks * DECK;
        let queries = if task == Task::Count { n_cards } else { 0 };
        let state = CardState::dealt_first(vec![0; n_cards], vec![0; queries]);
        Self { task, n_cards, kinds, state }
    }

    /// The suit of the first card is the right action at every step; 1, 8 or 16 decks.
    pub fn repeat_first(difficulty: Difficulty) -> Self {
        Self::new(Task::First, difficulty.of([1, 8, 16]), SUITS)
    }

    /// The suit of the card 3, 31 or 63 steps before is right, as soon as there is one; 1, 2 or 3 decks.
    pub fn repeat_previous(difficulty: Difficulty) -> Self {
        let (decks, back) = difficulty.of([(1, 4), (2, 32), (3, 64)]);
        Self::new(Task::Previous(back), decks, SUITS)
    }

    /// A second card asks how many of its kind have been dealt: 2 colors, 4 suits or 13 ranks of 1, 2 or 4 decks.
    pub fn count_recall(difficulty: Difficulty) -> Self {
        let (decks, kinds) = difficulty.of([(1, 2), (2, SUITS), (4, 13)]);
        Self::new(Task::Count, decks, kinds)
    }

    /// After 1, 2 or 3 decks, the suits are right in reverse order. A last column is 1 while cards are dealt.
    pub fn autoencode(difficulty: Difficulty) -> Self {
        Self::new(Task::Reverse, difficulty.of([1, 2, 3]), SUITS)
    }

    /// Steps of an episode.
    pub fn n_steps(&self) -> usize {
        match self.task {
            Task::Reverse => 2 * self.n_cards - 1,
            _ => self.n_cards - 1,
        }
    }

    fn n_actions(&self) -> usize {
        match self.task {
            Task::Count => self.n_cards / self.kinds + 1,
            _ => self.kinds,
        }
    }

    fn observe(&self, is_first: bool, mut obs: ArrayViewMut1<f32>) {
        let CardState { cards, queries, n_dealt, n_named } = &self.state;
        obs.fill(0.0);
        obs[0] = f32::from(u8::from(is_first));
        // Where cards are named, a card of the first kind lies open.
        let card = if *n_named > 0 { 0 } else { cards[n_dealt - 1] };
        obs[1 + usize::from(card)] = 1.0;
        match self.task {
            Task::Count => obs[1 + self.kinds + usize::from(queries[n_dealt - 1])] = 1.0,
            Task::Reverse => obs[1 + self.kinds] = f32::from(u8::from(*n_dealt < self.n_cards)),
            Task::First | Task::Previous(_) => {}
        }
    }
}

/// Shuffles cards of equally many of each kind.
fn shuffle(kinds: usize, rng: &mut EnvRng, cards: &mut [u8]) {
    for (i, card) in cards.iter_mut().enumerate() {
        *card = (i % kinds) as u8;
    }
    for i in (1..cards.len()).rev() {
        cards.swap(i, rng.random_range(0..=i));
    }
}

impl Env for CardGame {
    type State = CardState;

    fn obs_space(&self) -> Space {
        let kinds = |name: &'static str| (0..self.kinds).map(move |kind| format!("{name}_{kind}"));
        let mut names = vec!["is_first".to_owned()];
        names.extend(kinds("card"));
        match self.task {
            Task::Count => names.extend(kinds("asked")),
            Task::Reverse => names.push("is_dealt".into()),
            Task::First | Task::Previous(_) => {}
        }
        Space::uniform_box(0.0, 1.0, names)
    }

    fn action_space(&self) -> Space {
        Space::Discrete(self.n_actions())
    }

    fn truncation_interval(&self) -> u64 {
        EnvSpec::NEVER
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: ArrayViewMut1<f32>) {
        shuffle(self.kinds, rng, &mut self.state.cards);
        shuffle(self.kinds, rng, &mut self.state.queries);
        (self.state.n_dealt, self.state.n_named) = (1, 0);
        self.observe(true, obs);
    }

    fn step(&mut self, action: ArrayView1<f32>, _: &mut EnvRng, obs: ArrayViewMut1<f32>) -> Step {
        let chosen = option_index(action, 0, self.n_actions());
        let n = self.n_cards;
        let CardState { cards, queries, n_dealt, n_named } = &mut self.state;
        let card = |i: usize| Some(usize::from(cards[i]));
        // The right action, if there is one at this step, and the number of steps that have one.
        let (right, n_rewarded) = match self.task {
            Task::First => (card(0), n - 1),
            Task::Previous(back) => (n_dealt.checked_sub(back).and_then(card), n - back),
            Task::Count => {
                let asked = queries[*n_dealt - 1];
                (Some(cards[..*n_dealt].iter().filter(|kind| **kind == asked).count()), n - 1)
            }
            Task::Reverse if *n_dealt < n => (None, n),
            Task::Reverse => (card(n - 1 - *n_named), n),
        };
        let share = 1.0 / n_rewarded as f64;
        let reward = right.map_or(0.0, |right| if chosen == right { share } else { -share });
        if *n_dealt < n {
            *n_dealt += 1;
        } else {
            *n_named += 1;
        }
        // Where no card is named, the episode ends with the last card.
        let terminated = match self.task {
            Task::Reverse => *n_named == n,
            _ => *n_dealt == n,
        };
        self.observe(false, obs);
        Step { reward: reward as f32, terminated, truncated: false }
    }

    fn state(&self) -> CardState {
        self.state.clone()
    }

    fn set_state(&mut self, state: CardState) {
        self.state = state;
    }
}
