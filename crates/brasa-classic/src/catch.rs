//! Catch: the smallest task whose observations are images.

use brasa_env::{After, RuleEnv, Rules, Space};
use brasa_number::Number;

/// Rows of the board.
const ROWS: usize = 10;
/// Columns of the board.
pub(crate) const COLUMNS: usize = 5;
/// Places of the board.
const PLACES: usize = ROWS * COLUMNS;

/// A ball falls down a board of 10 x 5 places, and a paddle on the last row must be below it.
///
/// Actions are 0 left, 1 stay and 2 right. After 9 steps the episode ends with reward 1 if the paddle has caught the ball, and -1 if not. Every ball
/// can be caught, so the optimum is 1; a random paddle has a mean return of about -0.6.
///
/// ```
/// use brasa_classic::Catch;
/// use brasa_env::Env;
///
/// assert_eq!(Catch::default().obs_space().width(), 50);
/// ```
pub type Catch = RuleEnv<CatchRules, 3, 1, PLACES>;

/// The rules of [`Catch`], which are those of `Catch` in bsuite (Osband et al. 2020): the ball begins in a uniformly random column.
///
/// A state consists of the column of the ball, its row from the top, and the column of the paddle. An observation is an image of one channel,
/// 1 where the ball and the paddle are.
///
/// ```
/// use brasa_classic::CatchRules;
/// use brasa_env::Rules;
///
/// let after = CatchRules.step([3.0, 8.0, 2.0], [2.0]);
/// assert_eq!((after.reward, after.terminated), (1.0, Some(true)));
/// assert_eq!(CatchRules.obs_space().shape(), [10, 5, 1]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CatchRules;

impl Rules<3, 1, PLACES> for CatchRules {
    const TIME_LIMIT: u32 = 10;
    const OBSERVES_STATE: bool = false;
    const TERMINATES: bool = true;

    fn obs_space(&self) -> Space {
        Space::shaped(0.0, 1.0, [ROWS, COLUMNS, 1]).of_bytes()
    }

    fn action_space(&self) -> Space {
        Space::Discrete(3)
    }

    fn begin<N: Number>(&self, [noise, _, _]: [N; 3]) -> [N; 3] {
        let column = (noise * COLUMNS as f64).floor().min_of((COLUMNS - 1) as f64);
        [column, noise.constant(0.0), noise.constant((COLUMNS / 2) as f64)]
    }

    #[inline(always)]
    fn step<N: Number>(&self, [ball, row, paddle]: [N; 3], [action]: [N; 1]) -> After<N, 3> {
        let (row, paddle) = (row + 1.0, (paddle + action - 1.0).clamp(0.0, (COLUMNS - 1) as f64));
        let terminated = row.equal(row.constant((ROWS - 1) as f64));
        let result = N::select(ball.equal(paddle), ball.constant(1.0), ball.constant(-1.0));
        let reward = N::select(terminated, result, ball.constant(0.0));
        After { state: [ball, row, paddle], reward, terminated: Some(terminated) }
    }

    #[inline(always)]
    fn observe<N: Number>(&self, [ball, row, paddle]: [N; 3]) -> [N; PLACES] {
        std::array::from_fn(|place| {
            let at = |x: N, number: usize| x.equal(x.constant(number as f64));
            let (own_row, column) = (place / COLUMNS, place % COLUMNS);
            let mut is_seen = N::both(at(row, own_row), at(ball, column));
            if own_row == ROWS - 1 {
                is_seen = N::either(is_seen, at(paddle, column));
            }
            N::select(is_seen, ball.constant(1.0), ball.constant(0.0))
        })
    }
}
