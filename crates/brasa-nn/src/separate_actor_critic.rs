//! Several actor-critics, for agents with policies of their own.

use brasa_core::analytic::ByResults;
use brasa_core::env::field;
use brasa_core::export::ExportedPolicy;
use brasa_core::{
    ActorCritic, Decision, Evaluation, Explore, HostActor, HostDecisions, HostObs, NetworkSizes, NoiseSpec, Obs,
    Policy, PolicyState, Rows, Sequences, row_indices, rows_by_field,
};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};

use crate::NnError;

/// A network for each agent, or for each group of agents.
///
/// Row `i` of a batch belongs to agent `i % n_agents`. Rollouts keep the agents of an environment together, so that every minibatch has whole
/// environments. The loss is a mean over all rows, as if one network computed them.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_core::env::named_rng;
/// use brasa_core::{ActorCritic, Policy, read_back};
/// use brasa_nn::{ActorCriticConfig, MlpActorCritic, SeparateActorCritic};
///
/// // Two agents. `observed` has a row for each.
/// let (device, config) = (brasa_device::open_named("cpu")?, ActorCriticConfig::default());
/// let network = |agent| {
///     let rng = &mut named_rng(0, "weights", agent);
///     MlpActorCritic::new(&config, &obs_space(), &brasa_core::env::Space::Discrete(3), &device, rng)
/// };
/// let networks = vec![network(0)?, network(1)?];
/// let separate = SeparateActorCritic::new(networks.clone(), vec![0, 1])?;
/// assert_eq!(separate.n_agents(), 2);
/// let values = read_back(separate.value(observed(&device)));
/// assert_eq!(values[1], read_back(networks[1].value(observed(&device)))[1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct SeparateActorCritic<N: Module> {
    networks: Vec<N>,
    #[module(skip)]
    of_agents: Vec<usize>,
}

impl<N: ActorCritic<Obs = Obs, Action = Tensor<2>> + Module> SeparateActorCritic<N> {
    /// `of_agents` has the index of the network of each agent: with `[0, 0, 0, 1]`, three agents share a network.
    ///
    /// # Errors
    /// [`NnError::Field`] if an index has no network or a network no agent, and if networks have different sizes.
    pub fn new(networks: Vec<N>, of_agents: Vec<usize>) -> Result<Self, NnError> {
        check_policies("of_agents", &of_agents, networks.len())?;
        let sizes = |network: &N| (network.sizes(), network.state_width());
        let is_alike = networks.windows(2).all(|pair| sizes(&pair[0]) == sizes(&pair[1]));
        field::rule(is_alike, "networks", "must have equal sizes", "others")?;
        Ok(Self { networks, of_agents })
    }

    /// The networks, in the order of their indices.
    pub fn networks(&self) -> &[N] {
        &self.networks
    }

    /// The index of the network of each agent.
    pub fn of_agents(&self) -> &[usize] {
        &self.of_agents
    }

    fn first(&self) -> &N {
        &self.networks[0]
    }

    fn places(&self, n_rows: usize) -> Places {
        Places::new(&self.of_agents, self.networks.len(), n_rows)
    }

    /// The results of every network for its rows, which are given as indices, in the order of all rows.
    fn each<R: Rows>(&self, n_rows: usize, device: &Device, mut of: impl FnMut(&N, Tensor<1, Int>) -> R) -> R {
        let places = self.places(n_rows);
        let rows = places.of_networks.iter().map(|rows| row_indices(rows.iter().copied(), device));
        let parts = self.networks.iter().zip(rows).map(|(network, rows)| of(network, rows)).collect();
        R::cat(parts).select(row_indices(places.back.iter().copied(), device))
    }

    /// The gradient by the parameters of all networks: the results of all must be known before the loss has derivatives by any.
    fn gradient_each(
        &self,
        (obs, action): (&Obs, &Tensor<2>),
        by: &mut ByResults<'_, 3>,
        of: &GradientOf<'_, N>,
    ) -> Option<Vec<f32>> {
        let mut nested = Nested {
            networks: &self.networks,
            places: self.places(obs.n_rows()),
            batch: (obs, action),
            of,
            results: Vec::new(),
            slopes: Default::default(),
            gradients: Vec::new(),
        };
        let first = nested.from(0, by)?;
        // The last network is the first to have its gradient.
        nested.gradients.push(first);
        nested.gradients.reverse();
        Some(nested.gradients.concat())
    }
}

/// Checks that `of_agents` names all of `n_policies` and no others.
///
/// ```
/// use brasa_nn::check_policies;
///
/// check_policies("policies", &[0, 0, 1], 2)?;
/// let error = check_policies("policies", &[0, 2, 2], 3).unwrap_err().to_string();
/// assert_eq!(error, "`policies` must have every index from 0 to 2, got [0, 2, 2]");
/// # Ok::<(), brasa_nn::NnError>(())
/// ```
///
/// # Errors
/// [`NnError::Field`] naming `name`.
pub fn check_policies(name: &'static str, of_agents: &[usize], n_policies: usize) -> Result<(), NnError> {
    let fits = n_policies > 0 && of_agents.iter().all(|policy| *policy < n_policies);
    let fits = fits && (0..n_policies).all(|policy| of_agents.contains(&policy));
    let rule = format!("must have every index from 0 to {}", n_policies.saturating_sub(1));
    Ok(field::rule(fits, name, rule, format!("{of_agents:?}"))?)
}

/// What a network did in one step.
#[derive(Clone)]
struct Acted {
    action: Tensor<2>,
    decision: Decision,
    state: PolicyState,
}

rows_by_field!([] Acted { action, decision, state });

/// The rows of each network among all rows.
struct Places {
    of_networks: Vec<Vec<usize>>,
    /// Of every row, its place among the rows of one network after the other.
    back: Vec<usize>,
}

impl Places {
    fn new(of_agents: &[usize], n_networks: usize, n_rows: usize) -> Self {
        let n_agents = of_agents.len();
        assert!(n_rows.is_multiple_of(n_agents), "{n_rows} rows of {n_agents} agents each");
        let mut of_networks = vec![Vec::new(); n_networks];
        (0..n_rows).for_each(|row| of_networks[of_agents[row % n_agents]].push(row));
        let mut back = vec![0; n_rows];
        of_networks.iter().flatten().enumerate().for_each(|(place, row)| back[*row] = place);
        Self { of_networks, back }
    }

    /// Those of one network among all numbers; an empty list stays empty.
    fn of(&self, network: usize, numbers: &[f32]) -> Vec<f32> {
        let rows = self.of_networks[network].iter();
        if numbers.is_empty() { Vec::new() } else { rows.map(|row| numbers[*row]).collect() }
    }
}

/// The gradient of one network on its rows, which are also given as indices.
type GradientOf<'a, N> = dyn Fn(&N, (&Obs, &Tensor<2>), Tensor<1, Int>, &mut ByResults<'_, 3>) -> Option<Vec<f32>> + 'a;

/// A gradient in which every network waits for the results of those behind it.
struct Nested<'a, N> {
    networks: &'a [N],
    places: Places,
    batch: (&'a Obs, &'a Tensor<2>),
    of: &'a GradientOf<'a, N>,
    /// Of each network.
    results: Vec<[Vec<f32>; 3]>,
    /// Derivatives by the results of all rows.
    slopes: [Vec<f32>; 3],
    /// Of the networks behind the first one, the last one first.
    gradients: Vec<Vec<f32>>,
}

impl<N> Nested<'_, N> {
    /// The gradient of the network `index`; those of the networks behind it are in `gradients` afterwards.
    fn from(&mut self, index: usize, by: &mut ByResults<'_, 3>) -> Option<Vec<f32>> {
        let (networks, of, (obs, action)) = (self.networks, self.of, self.batch);
        let rows = row_indices(self.places.of_networks[index].iter().copied(), &obs.values.device());
        let (obs, action) = (obs.select(rows.clone()), Rows::select(action, rows.clone()));
        of(&networks[index], (&obs, &action), rows, &mut |own| {
            self.results.push(own.map(<[f32]>::to_vec));
            if index + 1 < networks.len() {
                let gradient = self.from(index + 1, by)?;
                self.gradients.push(gradient);
            } else {
                let joined: [Vec<f32>; 3] = std::array::from_fn(|i| {
                    let all: Vec<f32> = self.results.iter().flat_map(|results| &results[i]).copied().collect();
                    self.places.back.iter().map(|place| all[*place]).collect()
                });
                self.slopes = by(joined.each_ref().map(Vec::as_slice))?;
            }
            Some(self.slopes.each_ref().map(|slopes| self.places.of(index, slopes)))
        })
    }
}

/// The sequences of these rows of all steps.
fn sequences_of(sequences: &Sequences, rows: Tensor<1, Int>) -> Sequences {
    let ([n_rows], [n, _]) = (sequences.starts.dims(), sequences.state.dims());
    // Every step has equally many of them.
    let own = rows.dims()[0] * n / n_rows;
    Sequences {
        state: Rows::select(&sequences.state, rows.clone().slice(0..own)),
        starts: Rows::select(&sequences.starts, rows),
    }
}

impl<N: ActorCritic<Obs = Obs, Action = Tensor<2>> + Module> Policy for SeparateActorCritic<N> {
    type Obs = Obs;
    type Action = Tensor<2>;
    type Extra = Decision;

    fn noise(&self) -> NoiseSpec {
        self.first().noise()
    }

    fn act(&self, obs: Obs, explore: Explore) -> (Tensor<2>, Decision) {
        self.act_from(obs, &mut PolicyState::default(), explore)
    }

    fn state_width(&self) -> usize {
        self.first().state_width()
    }

    fn act_from(&self, obs: Obs, state: &mut PolicyState, explore: Explore) -> (Tensor<2>, Decision) {
        let device = obs.values.device();
        let acted = self.each(obs.n_rows(), &device, |network, rows| {
            let mut state = state.select(rows.clone());
            let explore = match &explore {
                Explore::Greedy => Explore::Greedy,
                Explore::Sample(noise) => Explore::Sample(Rows::select(noise, rows.clone())),
            };
            let (action, decision) = network.act_from(obs.select(rows), &mut state, explore);
            Acted { action, decision, state }
        });
        *state = acted.state;
        (acted.action, acted.decision)
    }

    fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
        // All networks have the same actions.
        self.first().to_env(action)
    }

    fn sizes(&self) -> Option<NetworkSizes> {
        self.first().sizes().map(|sizes| NetworkSizes { n_agents: self.of_agents.len(), ..sizes })
    }

    fn n_agents(&self) -> usize {
        self.of_agents.len()
    }

    fn has_action_for(&self, obs: &[f32]) -> bool {
        self.networks.iter().all(|network| network.has_action_for(obs))
    }

    fn exported(&self) -> Option<ExportedPolicy> {
        let policies: Option<Vec<ExportedPolicy>> = self.networks.iter().map(Policy::exported).collect();
        let policies = policies?;
        ExportedPolicy::of_agents(self.of_agents.iter().map(|network| &policies[*network]))
    }
}

impl<N: ActorCritic<Obs = Obs, Action = Tensor<2>> + Module> ActorCritic for SeparateActorCritic<N> {
    fn value(&self, obs: Obs) -> Tensor<1> {
        self.value_from(obs, &PolicyState::default())
    }

    fn value_from(&self, obs: Obs, state: &PolicyState) -> Tensor<1> {
        let device = obs.values.device();
        self.each(obs.n_rows(), &device, |network, rows| {
            network.value_from(obs.select(rows.clone()), &state.select(rows))
        })
    }

    fn evaluate(&self, obs: Obs, action: Tensor<2>) -> Evaluation {
        let device = obs.values.device();
        self.each(obs.n_rows(), &device, |network, rows| {
            network.evaluate(obs.select(rows.clone()), Rows::select(&action, rows))
        })
    }

    fn evaluate_sequences(&self, obs: Obs, action: Tensor<2>, sequences: &Sequences) -> Evaluation {
        let device = obs.values.device();
        self.each(obs.n_rows(), &device, |network, rows| {
            let (obs, action) = (obs.select(rows.clone()), Rows::select(&action, rows.clone()));
            network.evaluate_sequences(obs, action, &sequences_of(sequences, rows))
        })
    }

    fn choice(&self, obs: &Obs) -> Option<Tensor<1>> {
        // It depends on the mask alone.
        self.first().choice(obs)
    }

    fn gradient(&self, obs: &Obs, action: &Tensor<2>, by: &mut ByResults<'_, 3>) -> Option<Vec<f32>> {
        self.gradient_each((obs, action), by, &|network, (obs, action), _, by| network.gradient(obs, action, by))
    }

    fn gradient_of_sequences(
        &self,
        obs: &Obs,
        action: &Tensor<2>,
        sequences: &Sequences,
        by: &mut ByResults<'_, 3>,
    ) -> Option<Vec<f32>> {
        self.gradient_each((obs, action), by, &|network, (obs, action), rows, by| {
            network.gradient_of_sequences(obs, action, &sequences_of(sequences, rows), by)
        })
    }

    fn host_actor(&self) -> Option<Box<dyn HostActor>> {
        let actors: Option<Vec<_>> = self.networks.iter().map(ActorCritic::host_actor).collect();
        Some(Box::new(SeparateActors { actors: actors?, of_agents: self.of_agents.clone() }))
    }

    fn std(&self) -> Option<Tensor<1>> {
        let all: Option<Vec<_>> = self.networks.iter().map(ActorCritic::std).collect();
        all.map(|all| Tensor::cat(all, 0))
    }
}

/// The networks of a [`SeparateActorCritic`] in the memory of the CPU.
struct SeparateActors {
    actors: Vec<Box<dyn HostActor>>,
    of_agents: Vec<usize>,
}

/// What a network did in one step.
#[derive(Default)]
struct HostPart {
    decisions: HostDecisions,
    in_env: Vec<f32>,
    state: Vec<f32>,
}

impl HostActor for SeparateActors {
    fn act(
        &mut self,
        obs: HostObs<'_>,
        state: &mut [f32],
        noise: &[f32],
        decisions: &mut HostDecisions,
        in_env: &mut Vec<f32>,
    ) {
        let places = Places::new(&self.of_agents, self.actors.len(), obs.n_rows);
        let gathered = |numbers: &[f32], rows: &[usize]| -> Vec<f32> {
            let width = numbers.len() / obs.n_rows;
            rows.iter().flat_map(|row| &numbers[row * width..(row + 1) * width]).copied().collect()
        };
        let mut parts = Vec::with_capacity(self.actors.len());
        for (actor, rows) in self.actors.iter_mut().zip(&places.of_networks) {
            let values = gathered(obs.values, rows);
            let mask = obs.mask.map(|mask| gathered(mask, rows));
            let own = HostObs { values: &values, mask: mask.as_deref(), n_rows: rows.len() };
            let mut part = HostPart { state: gathered(state, rows), ..HostPart::default() };
            actor.act(own, &mut part.state, &gathered(noise, rows), &mut part.decisions, &mut part.in_env);
            parts.push(part);
        }
        let put = |to: &mut Vec<f32>, of: fn(&HostPart) -> &Vec<f32>| {
            let all: Vec<f32> = parts.iter().flat_map(of).copied().collect();
            let width = all.len() / obs.n_rows;
            places.back.iter().for_each(|place| to.extend_from_slice(&all[place * width..(place + 1) * width]));
        };
        put(&mut decisions.action, |part| &part.decisions.action);
        put(&mut decisions.log_prob, |part| &part.decisions.log_prob);
        put(&mut decisions.value, |part| &part.decisions.value);
        in_env.clear();
        put(in_env, |part| &part.in_env);
        let mut states = Vec::new();
        put(&mut states, |part| &part.state);
        state.copy_from_slice(&states);
    }
}
