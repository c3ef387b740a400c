//! The rows of a team as batches of its networks.

use brasa_core::{Rows, TeamObs};
use burn::tensor::Tensor;

use crate::exported::Layers;
use crate::{Sharing, StackedMlp};

/// Networks of `n_agents` agents: hidden layers, "bodies", with heads behind them. Row `i` of a batch belongs to agent `i % n_agents`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TeamRows {
    pub sharing: Sharing,
    pub n_agents: usize,
}

impl TeamRows {
    /// Bodies, each with own weights.
    pub fn n_bodies(self) -> usize {
        match self.sharing {
            Sharing::Independent => self.n_agents,
            Sharing::Trunk | Sharing::All => 1,
        }
    }

    /// Heads, each with own weights.
    pub fn n_heads(self) -> usize {
        match self.sharing {
            Sharing::Independent | Sharing::Trunk => self.n_agents,
            Sharing::All => 1,
        }
    }

    /// Inputs of a body, for observations of `width` numbers.
    pub fn inputs(self, width: usize) -> usize {
        width + if self.sharing == Sharing::All { self.n_agents } else { 0 }
    }

    /// Inputs of the heads: `[heads, rows of each, width]`, or `[1, ..]` for all of them.
    pub fn hidden(self, body: &StackedMlp, obs: &TeamObs) -> Tensor<3> {
        assert_eq!(obs.n_agents, self.n_agents, "agents of observations and of the network");
        match (self.sharing, obs.common()) {
            (Sharing::Independent | Sharing::Trunk, Some(common)) => body.forward(common.unsqueeze()),
            _ => self.hidden_of_rows(body, obs.rows()),
        }
    }

    /// [`TeamRows::hidden`] of complete observations, `[n_rows, width]`.
    pub fn hidden_of_rows(self, body: &StackedMlp, rows: Tensor<2>) -> Tensor<3> {
        match self.sharing {
            Sharing::Independent => body.forward(self.by_head(rows)),
            Sharing::Trunk => self.by_head(body.forward(rows.unsqueeze()).squeeze_dim(0)),
            Sharing::All => {
                let n_teams = rows.n_rows() / self.n_agents;
                let id = Tensor::<2>::eye(self.n_agents, &rows.device()).repeat_dim(0, n_teams);
                body.forward(Tensor::cat(vec![rows, id], 1).unsqueeze())
            }
        }
    }

    /// `[heads, rows of each, width]` from `[n_rows, width]`; row `i` belongs to head `i % heads`.
    pub fn by_head(self, rows: Tensor<2>) -> Tensor<3> {
        let ([n_rows, width], heads) = (rows.dims(), self.n_heads());
        rows.reshape([n_rows / heads, heads, width]).swap_dims(0, 1)
    }

    /// `[n_rows, width]` from `[heads, rows of each, width]`.
    pub fn by_row(self, heads: Tensor<3>) -> Tensor<2> {
        let [n, each, width] = heads.dims();
        heads.swap_dims(0, 1).reshape([n * each, width])
    }

    /// Makes the number of an agent, which is an input of the first layer, a bias of this layer for each agent.
    pub fn number_agents(self, layers: &mut Layers) {
        if self.sharing == Sharing::All {
            layers.with_agent_numbers(self.n_agents);
        }
    }
}
