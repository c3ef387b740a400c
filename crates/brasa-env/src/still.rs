//! Environments in which nothing happens.

use ndarray::ArrayView2;

use crate::{BatchSlabs, EnvBatch, EnvError, EnvSpec, StateTag};

const TAG: StateTag = StateTag::new("still", 1);

/// A batch of environments in which nothing happens: observations and rewards are 0, every action is legal, and no episode ends.
///
/// It stands for environments of which only the spaces are known, for instance to plan the memory of a run.
///
/// ```
/// use brasa_env::{EnvSpec, Space, Still, check_env};
///
/// let names = |prefix: char, n: usize| (0..n).map(move |i| format!("{prefix}{i}"));
/// let (obs, action) = (Space::uniform_box(-1.0, 1.0, names('o', 30)), Space::uniform_box(-1.0, 1.0, names('a', 5)));
/// let spec = EnvSpec::new(obs, action, 1);
/// check_env(10, |envs| Ok(Still::new(&spec.with_n_envs(envs.len()))))?;
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Still {
    spec: EnvSpec,
}

impl Still {
    /// Environments with these constants.
    pub fn new(spec: &EnvSpec) -> Self {
        Self { spec: spec.clone() }
    }
}

impl EnvBatch for Still {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, _: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        *out = BatchSlabs::new(&self.spec);
        out.mask.fill(1.0);
        Ok(())
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        assert_eq!(actions.dim(), (self.spec.n_rows(), self.spec.action.width()), "shape of the actions");
        self.reset(0, out)?;
        out.next_mask.fill(1.0);
        out.elapsed.fill(1.0);
        Ok(())
    }

    fn restart(&mut self, _: usize, _: &mut BatchSlabs) -> Result<(), EnvError> {
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        TAG.encode(self.spec.n_envs, &self.spec.obs.width())
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        let width: usize = TAG.decode(self.spec.n_envs, bytes)?;
        if width != self.spec.obs.width() {
            let reason = format!("it is of environments with observations of {width} numbers");
            return Err(EnvError::State { reason });
        }
        Ok(())
    }
}
