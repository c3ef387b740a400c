//! Spaces of observations and actions.

use std::borrow::Cow;

use ndarray::ArrayView1;
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::{EnvError, EnvRng};

/// The set of values of one row of observations or actions.
///
/// Every value is stored as `f32`; a discrete action is its index, exact up to 2^24.
///
/// ```
/// use brasa_env::Space;
///
/// let obs = Space::named_box([("soc", 0.0, 1.0), ("import_kwh", 0.0, f32::INFINITY)]);
/// assert!(obs.contains(&[0.5, 120.0]) && !obs.contains(&[1.5, 120.0]));
/// let action = Space::MultiDiscrete(vec![3, 2]);
/// assert_eq!((action.width(), action.n_actions(), action.heads()), (2, 5, &[3, 2][..]));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Space {
    /// Real vectors between two bounds, which may be infinite.
    Box(BoxSpace),
    /// One choice out of `n`, as an index.
    Discrete(usize),
    /// Several independent choices; head `i` has `heads[i]` actions.
    MultiDiscrete(Vec<usize>),
    /// Choices and real numbers together: a row has the indices of the choices first.
    ///
    /// ```
    /// use brasa_env::{BoxSpace, Space};
    ///
    /// // A door that is shut, open or locked, and the power of a fan.
    /// let power = BoxSpace { low: vec![0.0], high: vec![2.5], names: vec!["fan_kw".into()], ..BoxSpace::default() };
    /// let action = Space::Hybrid { heads: vec![3], numbers: power };
    /// assert!(action.contains(&[2.0, 1.5]) && !action.contains(&[2.0, 3.0]));
    /// assert_eq!((action.width(), action.n_actions()), (2, 3));
    /// ```
    Hybrid {
        /// Number of actions of each choice.
        heads: Vec<usize>,
        /// The real numbers.
        numbers: BoxSpace,
    },
}

/// A real vector whose components have bounds, and names or a shape.
///
/// ```
/// use brasa_env::{BoxSpace, Space};
///
/// let names = vec!["soc".into(), "power".into()];
/// let space = BoxSpace { low: vec![0.0, 1.0], high: vec![1.0, 0.0], names, ..BoxSpace::default() };
/// let error = Space::Box(space).validate().unwrap_err();
/// assert_eq!(error.to_string(), "invalid space: bounds of `power` must be ordered, got 1 and 0");
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct BoxSpace {
    /// Smallest value of each component.
    pub low: Vec<f32>,
    /// Largest value of each component.
    pub high: Vec<f32>,
    /// Name of each component, with unit (`soc`, `import_kwh`); none if the shape names the components.
    pub names: Vec<String>,
    /// Sizes of the dimensions of an array such as an image, of which a row has the last dimension innermost; empty for a plain vector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shape: Vec<usize>,
    /// Whether every number is a whole one from 0 to 255: replay buffers then store it as a byte.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bytes: bool,
}

impl BoxSpace {
    /// The name of component `index`, or its place in the shape, such as `[3,0,1]`.
    ///
    /// ```
    /// use brasa_env::Space;
    ///
    /// let Space::Box(image) = Space::image(4, 5, 3) else { unreachable!("images are boxes") };
    /// assert_eq!(image.name(16), "[1,0,1]");
    /// ```
    pub fn name(&self, index: usize) -> Cow<'_, str> {
        if let Some(name) = self.names.get(index) {
            return Cow::Borrowed(name);
        }
        let (mut rest, mut place) = (index, Vec::new());
        for size in self.shape.iter().rev() {
            place.push((rest % size).to_string());
            rest /= size;
        }
        place.reverse();
        Cow::Owned(format!("[{}]", place.join(",")))
    }

    /// [`BoxSpace::name`] of every component.
    pub fn all_names(&self) -> Vec<String> {
        (0..self.low.len()).map(|index| self.name(index).into_owned()).collect()
    }

    /// The components `columns`, in this order, as a plain vector.
    ///
    /// # Panics
    /// If a column does not exist.
    ///
    /// ```
    /// use brasa_env::{BoxSpace, Space};
    ///
    /// let Space::Box(space) = Space::named_box([("angle", -1.0, 1.0), ("speed", -8.0, 8.0)]) else { unreachable!() };
    /// let BoxSpace { low, names, .. } = space.select([1]);
    /// assert_eq!((low, names), (vec![-8.0], vec!["speed".to_owned()]));
    /// ```
    #[must_use]
    pub fn select(&self, columns: impl IntoIterator<Item = usize>) -> Self {
        let mut selected = Self { bytes: self.bytes, ..Self::default() };
        for column in columns {
            selected.low.push(self.low[column]);
            selected.high.push(self.high[column]);
            selected.names.push(self.name(column).into_owned());
        }
        selected
    }

    /// Writes uniformly random numbers between the bounds. An infinite bound is replaced by one at `reach` from 0, or at twice `reach` from
    /// the other bound where that lies further out.
    pub(crate) fn sample<'a>(&self, reach: f32, rng: &mut EnvRng, row: impl IntoIterator<Item = &'a mut f32>) {
        for ((slot, low), high) in row.into_iter().zip(&self.low).zip(&self.high) {
            let from = match low.is_finite() {
                true => *low,
                false if *high > -reach => -reach,
                false => high - 2.0 * reach,
            };
            let to = match high.is_finite() {
                true => *high,
                false if *low < reach => reach,
                false => low + 2.0 * reach,
            };
            let u = rng.random::<f32>();
            let value = if (to - from).is_finite() { from + (to - from) * u } else { from * (1.0 - u) + to * u };
            *slot = value.max(*low).min(*high);
        }
    }
}

impl Space {
    /// A box with the same bounds for every name.
    pub fn uniform_box<S: Into<String>>(low: f32, high: f32, names: impl IntoIterator<Item = S>) -> Self {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        Self::Box(BoxSpace { low: vec![low; names.len()], high: vec![high; names.len()], names, ..BoxSpace::default() })
    }

    /// A box from (name, low, high) triples.
    pub fn named_box<S: Into<String>>(items: impl IntoIterator<Item = (S, f32, f32)>) -> Self {
        let mut space = BoxSpace::default();
        for (name, low, high) in items {
            space.names.push(name.into());
            space.low.push(low);
            space.high.push(high);
        }
        Self::Box(space)
    }

    /// A box with a shape, whose components have equal bounds and no names.
    ///
    /// ```
    /// use brasa_env::Space;
    ///
    /// let heat = Space::shaped(-50.0, 1200.0, [20, 30]);
    /// assert_eq!((heat.width(), heat.shape()), (600, [20, 30].as_slice()));
    /// ```
    pub fn shaped(low: f32, high: f32, shape: impl Into<Vec<usize>>) -> Self {
        let shape = shape.into();
        let width = shape.iter().product();
        Self::Box(BoxSpace { low: vec![low; width], high: vec![high; width], shape, ..BoxSpace::default() })
    }

    /// Images of bytes, 0 to 255, with the channels innermost.
    pub fn image(height: usize, width: usize, channels: usize) -> Self {
        Self::shaped(0.0, 255.0, [height, width, channels]).of_bytes()
    }

    /// The same box, of whole numbers from 0 to 255 ([`BoxSpace::bytes`]).
    ///
    /// # Panics
    /// If the space has choices.
    #[must_use]
    pub fn of_bytes(self) -> Self {
        let Self::Box(space) = self else { panic!("only a box has bytes, got {self:?}") };
        Self::Box(BoxSpace { bytes: true, ..space })
    }

    /// Whether every number fits into a byte ([`BoxSpace::bytes`]).
    pub fn has_bytes(&self) -> bool {
        matches!(self, Self::Box(BoxSpace { bytes: true, .. }))
    }

    /// Sizes of the dimensions of a box with a shape; empty for other spaces.
    pub fn shape(&self) -> &[usize] {
        match self {
            Self::Box(space) => &space.shape,
            _ => &[],
        }
    }

    /// Numbers per row.
    pub fn width(&self) -> usize {
        match self {
            Self::Discrete(_) => 1,
            _ => self.heads().len() + self.numbers().map_or(0, |numbers| numbers.low.len()),
        }
    }

    /// Number of actions of every choice; none for a box.
    pub fn heads(&self) -> &[usize] {
        match self {
            Self::Box(_) => &[],
            Self::Discrete(n) => std::slice::from_ref(n),
            Self::MultiDiscrete(heads) | Self::Hybrid { heads, .. } => heads,
        }
    }

    /// The real numbers, which follow the choices in a row; `None` if there are only choices.
    ///
    /// ```
    /// use brasa_env::Space;
    ///
    /// let power = Space::uniform_box(-1.0, 1.0, ["power_kw"]);
    /// assert_eq!(power.numbers().unwrap().names, ["power_kw"]);
    /// assert_eq!(Space::Discrete(3).numbers(), None);
    /// ```
    pub fn numbers(&self) -> Option<&BoxSpace> {
        match self {
            Self::Box(numbers) | Self::Hybrid { numbers, .. } => Some(numbers),
            Self::Discrete(_) | Self::MultiDiscrete(_) => None,
        }
    }

    /// Names of the components of a row: `action` for one choice, `choice_0`, `choice_1` for several, then those of the numbers.
    ///
    /// ```
    /// use brasa_env::Space;
    ///
    /// assert_eq!(Space::Discrete(3).names(), ["action"]);
    /// assert_eq!(Space::MultiDiscrete(vec![3, 2]).names(), ["choice_0", "choice_1"]);
    /// ```
    pub fn names(&self) -> Vec<String> {
        let choice = |head: usize| if self.heads().len() == 1 { "action".into() } else { format!("choice_{head}") };
        let numbers = self.numbers().map_or_else(Vec::new, BoxSpace::all_names);
        (0..self.heads().len()).map(choice).chain(numbers).collect()
    }

    /// Entries of the action mask: one per action of every head, 0 for a box.
    pub fn n_actions(&self) -> usize {
        self.heads().iter().sum()
    }

    /// Whether `row` is in the space; bounds are included, NaN is not.
    pub fn contains(&self, row: &[f32]) -> bool {
        if row.len() != self.width() {
            return false;
        }
        let (choices, rest) = row.split_at(self.heads().len());
        choices.iter().zip(self.heads()).all(|(x, n)| is_index(*x, *n))
            && self.numbers().is_none_or(|numbers| {
                let is_whole = |x: &f32| !numbers.bytes || x.fract() == 0.0;
                let bounds = numbers.low.iter().zip(&numbers.high);
                rest.iter().zip(bounds).all(|(x, (low, high))| low <= x && x <= high && is_whole(x))
            })
    }

    /// Rejects an invalid space.
    ///
    /// # Errors
    /// [`EnvError::Space`] if bounds and names differ in length, a lower bound is not below its upper
    /// bound or is NaN, or a head has no action.
    pub fn validate(&self) -> Result<(), EnvError> {
        let fail = |rule: String| Err(EnvError::Space { rule });
        if let Some(space) = self.numbers() {
            let n_shaped = space.shape.iter().product::<usize>();
            if !space.shape.is_empty() && n_shaped != space.low.len() {
                return fail(format!(
                    "a box of shape {:?} needs {n_shaped} lower bounds, got {}",
                    space.shape,
                    space.low.len()
                ));
            }
            let is_named = !space.names.is_empty() || space.shape.is_empty();
            if space.low.len() != space.high.len() || (is_named && space.low.len() != space.names.len()) {
                return fail(format!(
                    "a box needs as many lower bounds, upper bounds and names, got {}, {} and {}",
                    space.low.len(),
                    space.high.len(),
                    space.names.len()
                ));
            }
            for (index, (low, high)) in space.low.iter().zip(&space.high).enumerate() {
                if space.bytes && !(*low >= 0.0 && *high <= 255.0) {
                    let name = space.name(index);
                    return fail(format!(
                        "bytes are numbers from 0 to 255, the bounds of `{name}` are {low} and {high}"
                    ));
                }
                if low.is_nan() || high.is_nan() || low > high {
                    let name = space.name(index);
                    return fail(format!("bounds of `{name}` must be ordered, got {low} and {high}"));
                }
            }
        }
        match self {
            Self::Hybrid { heads, numbers } if heads.is_empty() || numbers.low.is_empty() => {
                fail("a hybrid space needs choices and numbers; others are a box or multi-discrete".into())
            }
            Self::Discrete(0) => fail("a discrete space needs at least one option, got 0".into()),
            Self::MultiDiscrete(heads) | Self::Hybrid { heads, .. } if heads.is_empty() || heads.contains(&0) => {
                fail(format!("every choice of a space needs an option, got {heads:?}"))
            }
            _ => Ok(()),
        }
    }
}

fn is_index(x: f32, n: usize) -> bool {
    x >= 0.0 && x.fract() == 0.0 && (x as usize) < n
}

/// The index that `action` chooses at `head`, of `n_actions`.
///
/// # Panics
/// If the number is not an index below `n_actions`.
///
/// ```
/// use brasa_env::option_index;
///
/// // A row of actions with two choices: 2 of 3, then 0 of 2.
/// let action = ndarray::array![2.0, 0.0];
/// assert_eq!(option_index(action.view(), 0, 3), 2);
/// assert_eq!(option_index(action.view(), 1, 2), 0);
/// ```
pub fn option_index(action: ArrayView1<f32>, head: usize, n_actions: usize) -> usize {
    let choice = action[head];
    assert!(is_index(choice, n_actions), "choice {head} of an action must be an index below {n_actions}, got {choice}");
    choice as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contains_checks_bounds_and_indices() {
        let space = Space::named_box([("soc", 0.0, 1.0), ("power_kw", -5.0, 5.0)]);
        for (row, inside) in [([0.0, 5.0], true), ([1.1, 0.0], false), ([f32::NAN, 0.0], false)] {
            assert_eq!(space.contains(&row), inside, "{row:?}");
        }
        assert!(Space::Discrete(3).contains(&[2.0]));
        assert!(!Space::Discrete(3).contains(&[3.0]));
        assert!(!Space::Discrete(3).contains(&[0.5]));
        assert!(Space::MultiDiscrete(vec![2, 3]).contains(&[1.0, 2.0]));
        assert!(!Space::MultiDiscrete(vec![2, 3]).contains(&[2.0, 2.0]));
        let numbers = BoxSpace { low: vec![0.0], high: vec![1.0], names: vec!["kw".into()], ..BoxSpace::default() };
        let hybrid = Space::Hybrid { heads: vec![2, 3], numbers };
        assert_eq!(hybrid.names(), ["choice_0", "choice_1", "kw"]);
        for (row, inside) in [([1.0, 2.0, 0.5], true), ([2.0, 2.0, 0.5], false), ([1.0, 2.0, 1.5], false)] {
            assert_eq!(hybrid.contains(&row), inside, "{row:?}");
        }
        let without = Space::Hybrid { heads: vec![2], numbers: BoxSpace::default() };
        let error = without.validate().expect_err("there are no numbers").to_string();
        assert!(error.contains("needs choices and numbers"), "{error}");
    }

    #[test]
    fn bytes_are_whole_and_end_at_255() {
        let image = Space::image(1, 2, 1);
        image.validate().expect("a valid image");
        assert!(image.has_bytes() && image.contains(&[255.0, 0.0]) && !image.contains(&[0.5, 0.0]));
        let error = Space::uniform_box(0.0, 256.0, ["x"]).of_bytes().validate().expect_err("a byte ends at 255");
        let rule = "bytes are numbers from 0 to 255, the bounds of `x` are 0 and 256";
        assert_eq!(error.to_string(), format!("invalid space: {rule}"));
    }

    #[test]
    fn a_shape_names_components_and_must_have_as_many() {
        let image = Space::image(2, 3, 2);
        image.validate().expect("a valid image");
        assert_eq!((image.width(), image.shape()), (12, [2, 3, 2].as_slice()));
        let Space::Box(mut space) = image else { unreachable!("images are boxes") };
        let names = space.all_names();
        assert_eq!((names[0].as_str(), names[11].as_str()), ("[0,0,0]", "[1,2,1]"));
        // Spaces of files that were written before there were shapes are plain vectors, and plain vectors are written as before.
        let plain = r#"{"Box":{"low":[0.0],"high":[1.0],"names":["x"]}}"#;
        let read: Space = serde_json::from_str(plain).expect("it is a space");
        assert_eq!(read, Space::uniform_box(0.0, 1.0, ["x"]));
        assert_eq!(serde_json::to_string(&read).expect("it can be written"), plain);
        space.low[7] = 300.0;
        let error = Space::Box(space.clone()).validate().expect_err("300 is above 255").to_string();
        assert!(error.contains("bounds of `[1,0,1]` must be ordered, got 300 and 255"), "{error}");
        space.shape = vec![5];
        let error = Space::Box(space).validate().expect_err("12 are not 5").to_string();
        assert!(error.contains("a box of shape [5] needs 5 lower bounds, got 12"), "{error}");
    }

    #[test]
    fn sampled_numbers_are_uniform_between_all_kinds_of_bounds() {
        let rng = &mut crate::named_rng(0, "test", 0);
        let infinite = f32::INFINITY;
        for (low, high, [from, to]) in [
            (-2.0, 3.0, [-2.0, 3.0]),
            (20.0, 30.0, [20.0, 30.0]),
            (-50.0, 50.0, [-50.0, 50.0]),
            (-f32::MAX, f32::MAX, [-f32::MAX, f32::MAX]),
            (-infinite, infinite, [-10.0, 10.0]),
            (2.0, infinite, [2.0, 10.0]),
            (20.0, infinite, [20.0, 40.0]),
            (-infinite, -30.0, [-50.0, -30.0]),
        ] {
            let space = BoxSpace { low: vec![low; 4000], high: vec![high; 4000], ..BoxSpace::default() };
            let mut row = vec![f32::NAN; 4000];
            space.sample(10.0, rng, &mut row);
            let [from, to] = [f64::from(from), f64::from(to)];
            let places = row.iter().map(|x| (f64::from(*x) - from) / (to - from));
            assert!(places.clone().all(|place| (0.0..=1.0).contains(&place)), "outside of {low} to {high}");
            let mean = places.sum::<f64>() / 4000.0;
            assert!((mean - 0.5).abs() < 0.02, "the mean of {low} to {high} is {mean}");
        }
    }

    #[test]
    fn validate_names_the_component() {
        let error = Space::named_box([("soc", 1.0, 0.0)]).validate().expect_err("bounds are swapped");
        assert_eq!(error.to_string(), "invalid space: bounds of `soc` must be ordered, got 1 and 0");
    }
}
