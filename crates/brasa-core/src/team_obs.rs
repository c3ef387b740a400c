//! Observations for networks that compute all agents of an environment together.

use std::ops::Range;

use brasa_kernels::concat;
use burn::tensor::{Bool, Device, Int, Tensor};

use crate::obs::joined;
use crate::rows::rows_of_envs;
use crate::{Normalization, ObsForm, ObsParts, Rows, row_indices};

/// Observations of agents, with the shared part stored once.
///
/// Row `i` belongs to agent `i % n_agents`, both in the order of environments and in sampled batches.
///
/// ```
/// use brasa_core::{Shared, TeamObs, read_back};
/// use burn::tensor::Tensor;
///
/// // One environment with two agents, which share the hour.
/// let device = brasa_device::open_named("cpu")?;
/// let shared = Some(Shared::PerEnv(Tensor::from_floats([[7.0]], &device)));
/// let own = Some(Tensor::from_floats([[0.5], [0.75]], &device));
/// let obs = TeamObs { shared, own, mask: None, n_agents: 2, actions_per_flag: 1 };
/// assert_eq!(read_back(obs.rows()), [7.0, 0.5, 7.0, 0.75]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct TeamObs {
    /// The part that all agents of an environment share; `None` for width 0.
    pub shared: Option<Shared>,
    /// `[n_rows, own width]`: the part of each agent; `None` for width 0.
    pub own: Option<Tensor<2>>,
    /// `[n_rows, n_actions / actions_per_flag]`: 1 for legal actions, 0 for others; `None` if all are legal.
    pub mask: Option<Tensor<2>>,
    /// Agents per environment.
    pub n_agents: usize,
    /// Consecutive actions per column of the mask.
    pub actions_per_flag: usize,
}

/// The shared part of [`TeamObs`].
///
/// ```
/// use brasa_core::{Rows, Shared, TeamObs};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let shared = Some(Shared::PerEnv(Tensor::from_floats([[7.0], [8.0]], &device)));
/// let obs = TeamObs { shared, own: None, mask: None, n_agents: 2, actions_per_flag: 1 };
/// assert_eq!(obs.n_rows(), 4);
/// // A selection of agents has one shared row for each agent.
/// let picked = obs.select(Tensor::from_ints([3, 0, 1], &device));
/// assert!(matches!(picked.shared, Some(Shared::PerRow(rows)) if rows.dims() == [3, 1]));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone)]
pub enum Shared {
    /// `[n_rows / n_agents, shared width]`: one row for each `n_agents` consecutive rows, as environments write it.
    PerEnv(Tensor<2>),
    /// `[n_rows, shared width]`: one row per agent, as after a selection of agents from different steps.
    PerRow(Tensor<2>),
}

impl TeamObs {
    /// `[n_rows, width]`: the complete observation of each row, the shared numbers first.
    ///
    /// # Panics
    /// If there are neither shared nor own numbers.
    pub fn rows(&self) -> Tensor<2> {
        let shared = self.shared.as_ref().map(|shared| match shared {
            Shared::PerRow(rows) => rows.clone(),
            Shared::PerEnv(rows) => repeat_rows(rows.clone(), self.n_agents),
        });
        match (shared, self.own.clone()) {
            (Some(shared), Some(own)) => concat(vec![shared, own]),
            (shared, own) => shared.or(own).expect("there are shared or own numbers"),
        }
    }

    /// `[n_envs, width]` if all agents of an environment have the same observation.
    pub fn common(&self) -> Option<Tensor<2>> {
        match (&self.shared, &self.own) {
            (Some(Shared::PerEnv(rows)), None) => Some(rows.clone()),
            _ => None,
        }
    }

    /// The rows of the shared part for `rows`.
    fn envs(&self, rows: Range<usize>) -> Range<usize> {
        let n = self.n_agents;
        assert!(rows.start.is_multiple_of(n) && rows.end.is_multiple_of(n), "agents of an environment stay together");
        rows.start / n..rows.end / n
    }
}

/// Repeats every row `n` times.
fn repeat_rows(rows: Tensor<2>, n: usize) -> Tensor<2> {
    let [n_rows, width] = rows.dims();
    if n == 1 {
        return rows;
    }
    rows.unsqueeze_dim::<3>(1).expand([n_rows, n, width]).reshape([n_rows * n, width])
}

impl ObsForm for TeamObs {
    fn assemble(parts: ObsParts) -> Self {
        let ObsParts { shared, own, mask, n_agents, actions_per_flag } = parts;
        assert!(shared.is_some() || own.is_some(), "there are shared or own numbers");
        Self { shared: shared.map(Shared::PerEnv), own, mask, n_agents, actions_per_flag }
    }

    fn legal(&self) -> Option<Tensor<2>> {
        let mask = self.mask.clone()?;
        let ([n_rows, flags], n) = (mask.dims(), self.actions_per_flag);
        if n == 1 {
            return Some(mask);
        }
        Some(mask.unsqueeze_dim::<3>(2).expand([n_rows, flags, n]).reshape([n_rows, flags * n]))
    }

    fn joint(self, _shared_width: usize, team: Tensor<1, Int>) -> Self {
        Self { own: self.own.map(|own| joined(own, team)), ..self }
    }
}

impl Rows for TeamObs {
    fn n_rows(&self) -> usize {
        match &self.shared {
            Some(Shared::PerEnv(rows)) => rows.n_rows() * self.n_agents,
            Some(Shared::PerRow(rows)) => rows.n_rows(),
            None => self.own.n_rows(),
        }
    }

    fn bytes_per_row(&self) -> f64 {
        let shared = self.shared.as_ref().map_or(0.0, |shared| match shared {
            Shared::PerEnv(rows) => rows.bytes_per_row() / self.n_agents as f64,
            Shared::PerRow(rows) => rows.bytes_per_row(),
        });
        shared + self.own.bytes_per_row() + self.mask.bytes_per_row()
    }

    fn zeroed(&self, n_rows: usize, device: &Device) -> Self {
        let shared = self.shared.as_ref().map(|shared| match shared {
            Shared::PerEnv(rows) => Shared::PerEnv(rows.zeroed(self.envs(0..n_rows).end, device)),
            Shared::PerRow(rows) => Shared::PerRow(rows.zeroed(n_rows, device)),
        });
        Self { shared, own: self.own.zeroed(n_rows, device), mask: self.mask.zeroed(n_rows, device), ..*self }
    }

    fn select(&self, indices: Tensor<1, Int>) -> Self {
        let shared = self.shared.as_ref().map(|shared| match shared {
            Shared::PerEnv(rows) => Rows::select(rows, indices.clone().div_scalar(self.n_agents as i64)),
            Shared::PerRow(rows) => Rows::select(rows, indices.clone()),
        });
        Self {
            shared: shared.map(Shared::PerRow),
            own: self.own.select(indices.clone()),
            mask: self.mask.select(indices),
            ..*self
        }
    }

    /// Agents of an environment that are all in `range` still have what they share once.
    fn range(&self, range: Range<usize>) -> Self {
        let n = self.n_agents;
        let is_whole = range.start.is_multiple_of(n) && range.end.is_multiple_of(n);
        let shared = self.shared.as_ref().map(|shared| match shared {
            Shared::PerEnv(rows) if is_whole => Shared::PerEnv(rows.range(self.envs(range.clone()))),
            Shared::PerEnv(rows) => {
                let envs = row_indices(range.clone().map(|row| row / n), &rows.device());
                Shared::PerRow(Rows::select(rows, envs))
            }
            Shared::PerRow(rows) => Shared::PerRow(rows.range(range.clone())),
        });
        Self { shared, own: self.own.range(range.clone()), mask: self.mask.range(range), ..*self }
    }

    fn select_envs(&self, envs: Tensor<1, Int>, n_agents: usize) -> Self {
        let shared = match &self.shared {
            Some(Shared::PerEnv(rows)) if n_agents == self.n_agents => {
                Some(Shared::PerEnv(Rows::select(rows, envs.clone())))
            }
            None => None,
            _ => return self.select(rows_of_envs(envs, n_agents)),
        };
        let (own, mask) = (self.own.select_envs(envs.clone(), n_agents), self.mask.select_envs(envs, n_agents));
        Self { shared, own, mask, ..*self }
    }

    fn assign(&mut self, range: Range<usize>, rows: Self) {
        let envs = matches!(self.shared, Some(Shared::PerEnv(_))).then(|| self.envs(range.clone()));
        match (&mut self.shared, rows.shared) {
            (Some(Shared::PerEnv(all)), Some(Shared::PerEnv(rows))) => all.assign(envs.expect("just told"), rows),
            (Some(Shared::PerRow(all)), Some(Shared::PerRow(rows))) => all.assign(range.clone(), rows),
            (None, None) => {}
            _ => panic!("the shared part keeps its form"),
        }
        self.own.assign(range.clone(), rows.own);
        self.mask.assign(range, rows.mask);
    }

    fn cat(parts: Vec<Self>) -> Self {
        let Some(Self { n_agents, actions_per_flag, .. }) = parts.first() else { panic!("there are parts") };
        let (n_agents, actions_per_flag) = (*n_agents, *actions_per_flag);
        let is_per_env = matches!(parts[0].shared, Some(Shared::PerEnv(_)));
        let (mut shared, mut own, mut mask) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            assert_eq!(matches!(part.shared, Some(Shared::PerEnv(_))), is_per_env, "the shared part keeps its form");
            let rows_of = |(Shared::PerEnv(rows) | Shared::PerRow(rows))| rows;
            shared.push(part.shared.map(rows_of));
            own.push(part.own);
            mask.push(part.mask);
        }
        let shared = Rows::cat(shared).map(if is_per_env { Shared::PerEnv } else { Shared::PerRow });
        Self { shared, own: Rows::cat(own), mask: Rows::cat(mask), n_agents, actions_per_flag }
    }

    fn mask_where(self, mask: &Tensor<1, Bool>, other: Self) -> Self {
        let shared = match (self.shared, other.shared) {
            (Some(Shared::PerEnv(rows)), Some(Shared::PerEnv(other))) => {
                // An episode ends for all agents of an environment.
                let n_envs = rows.n_rows();
                let mask = mask.clone().reshape([n_envs, self.n_agents]).slice([0..n_envs, 0..1]).reshape([n_envs]);
                Some(Shared::PerEnv(Rows::mask_where(rows, &mask, other)))
            }
            (Some(Shared::PerRow(rows)), Some(Shared::PerRow(other))) => {
                Some(Shared::PerRow(Rows::mask_where(rows, mask, other)))
            }
            (None, None) => None,
            _ => panic!("the shared part keeps its form"),
        };
        let own = Rows::mask_where(self.own, mask, other.own);
        Self { shared, own, mask: Rows::mask_where(self.mask, mask, other.mask), ..self }
    }

    fn normalizable(&self) -> Option<Tensor<2>> {
        Some(self.rows())
    }

    fn normalized(self, by: &Normalization) -> Option<Self> {
        let width = self.shared.as_ref().map_or(0, |(Shared::PerEnv(rows) | Shared::PerRow(rows))| rows.dims()[1]);
        let shared = self.shared.map(|shared| match shared {
            Shared::PerEnv(rows) => Shared::PerEnv(by.apply(0, &rows)),
            Shared::PerRow(rows) => Shared::PerRow(by.apply(0, &rows)),
        });
        Some(Self { shared, own: self.own.map(|own| by.apply(width, &own)), ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Obs;
    use brasa_env::wrappers::RunningMoments;
    use burn::tensor::TensorData;

    fn floats(tensor: Tensor<2>) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    /// Two environments of three agents with two shared numbers and one own number.
    fn team() -> TeamObs {
        let device = brasa_test::device();
        let tensor = |values: Vec<f32>, shape: [usize; 2]| Tensor::from_data(TensorData::new(values, shape), &device);
        TeamObs::assemble(ObsParts {
            shared: Some(tensor(vec![1.0, 2.0, 3.0, 4.0], [2, 2])),
            own: Some(tensor((10..16).map(|x| x as f32).collect(), [6, 1])),
            mask: Some(tensor(vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0], [6, 2])),
            n_agents: 3,
            actions_per_flag: 2,
        })
    }

    #[test]
    fn shared_numbers_stand_before_own_ones_and_flags_speak_for_their_options() {
        let team = team();
        assert_eq!(team.n_rows(), 6);
        let expected = [[1.0, 2.0, 10.0], [1.0, 2.0, 11.0], [1.0, 2.0, 12.0], [3.0, 4.0, 13.0], [3.0, 4.0, 14.0]];
        assert_eq!(floats(team.rows())[..15], expected.concat());
        assert_eq!(floats(team.legal().expect("there is a mask"))[..8], [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
        assert!(team.common().is_none());
        assert!(TeamObs { own: None, ..team }.common().is_some());
    }

    #[test]
    fn shared_and_own_numbers_are_normalized_by_their_columns() {
        let team = team();
        let rows = ndarray::Array2::from_shape_vec((6, 3), floats(team.rows())).expect("six rows of three");
        let mut moments = RunningMoments::new(3);
        moments.add(rows.view());
        let by = Normalization::new(&moments, &brasa_test::device());
        let expected = floats(Obs::new(team.rows()).normalized(&by).expect("flat").values);
        let picked = Tensor::<1, Int>::from_ints([0, 1, 2, 3, 4, 5], &brasa_test::device());
        for team in [team.clone(), team.select(picked)] {
            assert_eq!(floats(team.normalizable().expect("rows")), rows.as_slice().expect("in order"));
            assert_eq!(floats(team.normalized(&by).expect("by parts").rows()), expected);
        }
    }

    #[test]
    fn rows_are_selected_and_assigned_with_what_they_share() {
        let team = team();
        let indices = Tensor::<1, Int>::from_ints([4, 0, 2], &brasa_test::device());
        let expected = [3.0, 4.0, 14.0, 1.0, 2.0, 10.0, 1.0, 2.0, 12.0];
        assert_eq!(floats(team.select(indices.clone()).rows()), expected);
        assert_eq!(floats(Rows::select(&team.rows(), indices)), expected);
        let mut twice = team.zeroed(12, &brasa_test::device());
        twice.assign(6..12, team.clone());
        assert_eq!(twice.n_rows(), 12);
        assert_eq!(floats(twice.rows())[18..], floats(team.rows()));
        assert_eq!(floats(twice.rows())[..18], [0.0; 18]);
    }

    #[test]
    fn a_range_has_the_rows_that_are_selected_and_whole_teams_share_on() {
        let device = brasa_test::device();
        let numbers = |n: usize, dims: [usize; 2]| {
            Tensor::<2>::from_data(TensorData::new((0..n).map(|i| i as f32).collect::<Vec<_>>(), dims), &device)
        };
        let team = TeamObs {
            shared: Some(Shared::PerEnv(numbers(6, [3, 2]))),
            own: Some(numbers(6, [6, 1])),
            mask: Some(numbers(12, [6, 2])),
            n_agents: 2,
            actions_per_flag: 1,
        };
        for (range, is_shared) in [(2..6, true), (1..4, false), (0..6, true)] {
            let (part, selected) = (team.range(range.clone()), team.select(row_indices(range, &device)));
            assert_eq!(matches!(part.shared, Some(Shared::PerEnv(_))), is_shared);
            assert_eq!(part.n_rows(), selected.n_rows());
            let parts = |team: TeamObs| [floats(team.rows()), floats(team.mask.expect("it has one"))];
            assert_eq!(parts(part), parts(selected));
        }
    }
}
