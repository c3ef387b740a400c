//! Networks that on-policy algorithms learn, as one type.

use brasa::core::{ActorCritic, Decision, Evaluation, Explore, NoiseSpec, Obs, Policy};
use brasa::evacuation::{Evacuation, observe};
use brasa::gat::{Aggregation, Graph, GraphActorCritic, GraphActorCriticConfig, GraphSpec, Graphs};
use brasa::nn::{ActorCriticConfig, MlpActorCritic};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use serde::Serialize;

use crate::error::CliError;

/// Shape of a network.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    Mlp(ActorCriticConfig),
    Graph(GraphActorCriticConfig),
}

/// A network that acts and judges.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant, reason = "one value per run")]
pub enum AnyActorCritic {
    Mlp(MlpActorCritic),
    Graph(GraphActorCritic),
}

/// The graphs that observations of a scenario speak of, and where in a row things stand.
#[derive(Debug, Clone)]
pub struct GraphWorld {
    pub spec: GraphSpec,
    pub graphs: Vec<Graph>,
}

impl GraphWorld {
    /// The buildings of an evacuation.
    pub fn of(scenario: &Evacuation) -> Result<Self, CliError> {
        let columns = scenario.columns();
        let spec = GraphSpec {
            nodes: columns.nodes,
            node_features: columns.node,
            privileged_features: columns.privileged,
            agent_features: columns.agent,
        };
        let timing = &scenario.config().rules.timing;
        let graphs = scenario
            .buildings()
            .iter()
            .map(|building| Graph::from_edges(building.n_nodes(), &observe::edges(building.layout(), timing)));
        Ok(Self { spec, graphs: graphs.collect::<Result<_, _>>()? })
    }

    /// The graphs on the plain side of `device`.
    pub fn table(&self, aggregation: Aggregation, device: &Device) -> Result<Graphs, CliError> {
        Ok(Graphs::new(self.graphs.clone(), aggregation, &device.clone().without_autodiff())?)
    }
}

impl Policy for AnyActorCritic {
    type Obs = Obs;
    type Action = Tensor<2>;
    type Extra = Decision;

    fn noise(&self) -> NoiseSpec {
        match self {
            Self::Mlp(network) => network.noise(),
            Self::Graph(network) => network.noise(),
        }
    }

    fn act(&self, obs: Obs, explore: Explore) -> (Tensor<2>, Decision) {
        match self {
            Self::Mlp(network) => network.act(obs, explore),
            Self::Graph(network) => network.act(obs, explore),
        }
    }

    fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Mlp(network) => network.to_env(action),
            Self::Graph(network) => network.to_env(action),
        }
    }
}

impl ActorCritic for AnyActorCritic {
    fn value(&self, obs: Obs) -> Tensor<1> {
        match self {
            Self::Mlp(network) => network.value(obs),
            Self::Graph(network) => network.value(obs),
        }
    }

    fn evaluate(&self, obs: Obs, action: Tensor<2>) -> Evaluation {
        match self {
            Self::Mlp(network) => network.evaluate(obs, action),
            Self::Graph(network) => network.evaluate(obs, action),
        }
    }

    fn std(&self) -> Option<Tensor<1>> {
        match self {
            Self::Mlp(network) => network.std(),
            Self::Graph(_) => None,
        }
    }
}
