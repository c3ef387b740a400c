//! Policies from files of other programs, as policies of an experiment.

use std::any::Any;
use std::path::Path;

use brasa_core::PolicyState;
use brasa_env::{BatchSlabs, Controller, EnvError, EnvSpec, GraphEdges, GraphWorld, Space};
use brasa_export::{ExportedPolicy, GraphNetwork, Layer, NO_ACTION, Output};
use burn::tensor::Device;
use ndarray::{Array2, ArrayView2, ArrayViewMut2};

use crate::ExperimentError;
use crate::browser::rows;
use crate::policy::{Actor, LoadedPolicy};
use crate::registry::PolicyContext;

/// Reads an exported policy, or a model of Stable-Baselines3, which is a zip archive.
pub(crate) fn read(path: &Path) -> Result<ExportedPolicy, ExperimentError> {
    let named = |error: &dyn std::fmt::Display| ExperimentError::Input(format!("{}: {error}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| named(&error))?;
    let policy = match bytes.starts_with(b"PK") {
        true => ExportedPolicy::from_stable_baselines3(&bytes),
        false => ExportedPolicy::from_safetensors(&bytes),
    };
    policy.map_err(|error| named(&error))
}

impl LoadedPolicy {
    /// An exported policy for environments of `spec`.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] if observations, actions or the number of agents differ.
    pub fn of_exported(policy: ExportedPolicy, spec: &EnvSpec, device: &Device) -> Result<Self, ExperimentError> {
        let actions = match &spec.action {
            Space::Discrete(n) => Output::Choice { heads: vec![*n] },
            Space::MultiDiscrete(heads) => Output::Choice { heads: heads.clone() },
            Space::Box(_) => Output::Real,
            Space::Hybrid { heads, .. } => Output::Both { heads: heads.clone() },
        };
        let refuse = |of: &str, needed: &dyn std::fmt::Debug, got: &dyn std::fmt::Debug| {
            Err(ExperimentError::Input(format!("the policy does not fit: {of} must be {needed:?}, got {got:?}")))
        };
        policy.validate().map_err(ExperimentError::input)?;
        let spec = &spec.of_actors();
        if policy.obs_width != spec.obs.width() {
            return refuse("its numbers of an observation", &spec.obs.width(), &policy.obs_width);
        }
        if policy.output != actions || policy.action_width() != spec.action.width() {
            return refuse("its actions", &spec.action, &policy.output);
        }
        if policy.n_agents != 1 && policy.n_agents != spec.n_agents {
            return refuse("its number of agents", &spec.n_agents, &policy.n_agents);
        }
        Ok(Self::acting(Box::new(Foreign { policy, spec: spec.clone(), device: device.clone() }), spec, device))
    }
}

#[derive(Clone)]
struct Foreign {
    policy: ExportedPolicy,
    spec: EnvSpec,
    device: Device,
}

impl Foreign {
    /// Actions for rows of observations, with what the policy remembers of them, which it replaces.
    fn act(&self, obs: &[f32], mask: Option<&[f32]>, state: &mut PolicyState) -> Vec<f32> {
        let width = self.policy.state_width();
        if width == 0 {
            return self.policy.act(obs, mask);
        }
        let mut remembered = state.rows().map_or(Vec::new(), |rows| rows.into_raw_vec_and_offset().0);
        let actions = self.policy.act_from(obs, mask, &mut remembered);
        let rows = ArrayView2::from_shape((remembered.len() / width, width), &remembered).expect("a state per row");
        *state = PolicyState::from_rows(rows, &self.device);
        actions
    }
}

impl Actor for Foreign {
    fn boxed(&self) -> Box<dyn Actor> {
        Box::new(self.clone())
    }

    fn controller(&self, of: &LoadedPolicy) -> Box<dyn Controller> {
        Box::new(LoadedPolicy::acting(
            Box::new(Self { spec: of.spec().clone(), ..self.clone() }),
            of.spec(),
            of.device(),
        ))
    }

    fn state_width(&self) -> usize {
        self.policy.state_width()
    }

    fn decide(
        &self,
        view: &BatchSlabs,
        state: &mut PolicyState,
        mut actions: ArrayViewMut2<f32>,
    ) -> Result<(), EnvError> {
        let (obs, mask) = rows(view, &self.spec);
        let chosen = self.act(&obs, mask.as_deref(), state);
        let (width, n_choices) = (self.spec.action.width(), self.spec.action.heads().len());
        let is_missing = |(at, action): (usize, &f32)| at % width < n_choices && *action == NO_ACTION;
        if let Some(at) = chosen.iter().enumerate().position(is_missing) {
            let env = at / (self.spec.n_agents * width);
            let reason = "a number of its observation or mask is NaN or unknown, or its mask forbids every action";
            return Err(EnvError::NoAction { env, reason });
        }
        actions.iter_mut().zip(chosen).for_each(|(action, chosen)| *action = chosen);
        Ok(())
    }

    fn decide_rows(
        &self,
        obs: ArrayView2<f32>,
        mask: Option<ArrayView2<f32>>,
        state: &mut PolicyState,
    ) -> Result<Array2<f32>, EnvError> {
        let flat = |rows: ArrayView2<f32>| rows.iter().copied().collect::<Vec<f32>>();
        let actions = self.act(&flat(obs), mask.map(flat).as_deref(), state);
        Ok(Array2::from_shape_vec((obs.nrows(), self.policy.action_width()), actions).expect("an action per row"))
    }

    fn adapted(&self, _: &LoadedPolicy, context: &PolicyContext<'_>) -> Result<Box<dyn Actor>, ExperimentError> {
        let world = context.extensions.get::<GraphWorld>();
        for layer in &self.policy.layers {
            if let Layer::Graph(network) = layer
                && !world.is_some_and(|world| has_graphs(network, world))
            {
                let message =
                    "an exported policy has the graphs of its training; this experiment is evaluated on others";
                return Err(ExperimentError::Input(message.into()));
            }
        }
        Ok(self.boxed())
    }

    fn as_any(&self) -> &dyn Any {
        &self.policy
    }

    fn exported(&self) -> Option<ExportedPolicy> {
        Some(self.policy.clone())
    }
}

/// Whether the edges of a policy, without its self-loops, are those of `world`.
fn has_graphs(network: &GraphNetwork, world: &GraphWorld) -> bool {
    let edges = &network.edges;
    let of_graph = |(index, graph): (usize, &GraphEdges)| {
        let mut expected: Vec<([usize; 2], &[f32])> = (graph.ends.iter().enumerate())
            .filter(|(_, [source, destination])| source != destination)
            .map(|(edge, ends)| {
                (*ends, &graph.features[edge * graph.edge_width..][..edges.width.min(graph.edge_width)])
            })
            .collect();
        expected.sort_unstable_by_key(|([source, destination], _)| [*destination, *source]);
        let first = index * network.n_nodes;
        let found = (0..graph.n_nodes).flat_map(|node| {
            let own = edges.starts[first + node]..edges.starts[first + node + 1];
            own.map(move |edge| ([edges.sources[edge], node], &edges.features[edge * edges.width..][..edges.width]))
        });
        edges.nodes[index] == graph.n_nodes && found.filter(|([source, node], _)| source != node).eq(expected)
    };
    network.n_nodes == world.spec.nodes
        && edges.nodes.len() == world.graphs.len()
        && world.graphs.iter().enumerate().all(of_graph)
}
