//! A lower bound.

use super::SweepProblem;
use crate::EvacuationError;
use brasa_env::InvalidField;

/// Iterations of the prices of the spanning-tree bound, for few and for many searches.
const ROUNDS: (usize, usize) = (200, 30);
/// Number of pairs of searches over all iterations from which fewer iterations are used; about 20 ms.
const PAIRS: usize = 4_000_000;

/// Lower bounds on the makespan, by argument.
///
/// ```
/// use brasa_evacuation::{LowerBound, Layout, SweepProblem, Sweeps, Timing, lower_bound};
///
/// let office = Layout::office();
/// let problem = SweepProblem::new(&office, &Timing::hops(), Sweeps::Once, &office.starts(2))?;
/// let bounds: LowerBound = lower_bound(&problem);
/// assert!(bounds.farthest <= bounds.best() && bounds.best() <= 13.0);
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LowerBound {
    /// The farthest room must be reached and searched.
    pub farthest: f64,
    /// Every visit to one of a set of pairwise non-adjacent rooms needs an edge in and an edge out.
    pub counting: f64,
    /// Some responder makes at least the mean number of these visits, rounded up.
    pub share: f64,
    /// All routes together form a tree over all visits that branches only at the start.
    pub spanning: f64,
}

impl LowerBound {
    /// The largest of the bounds.
    pub fn best(&self) -> f64 {
        self.farthest.max(self.counting).max(self.share).max(self.spanning)
    }
}

/// Lower bounds for a building without fire.
///
/// Lower bounds on the makespan, for buildings of any size.
///
/// Let `k` responders walk for `W_i` and search for `S_i`. The makespan is at least the mean of `W_i + S_i`, and the
/// `S_i` sum to the services of all visits, `S`. It remains to bound the walking. The result is the maximum of four
/// bounds; each is proven at its function.
///
/// All bounds also hold for time in whole ticks, for slower or closed edges, and for waiting responders,
/// because none of these makes a walk shorter. If all times are whole, the bound is rounded up.
///
/// ```
/// use brasa_evacuation::{Layout, SweepProblem, Sweeps, Timing, lower_bound};
///
/// let daycare = Layout::daycare();
/// let bound = |n_responders| {
///     let problem = SweepProblem::new(&daycare, &Timing::hops(), Sweeps::ByRisk, &daycare.starts(n_responders))?;
///     Ok::<_, brasa_evacuation::EvacuationError>(lower_bound(&problem).best())
/// };
/// assert_eq!(bound(2)?, 109.0);
/// // A larger team may be faster.
/// assert!(bound(4)? < 109.0);
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
pub fn lower_bound(problem: &SweepProblem) -> LowerBound {
    let chosen = Independent::new(problem);
    LowerBound {
        farthest: problem.round_up(farthest(problem)),
        counting: problem.round_up(counting(problem, &chosen)),
        share: problem.round_up(share(problem, &chosen)),
        spanning: problem.round_up(spanning(problem)),
    }
}

/// Lower bound if rooms are lost to the fire and then need no search: the smallest tick `T` that is
/// at least the bound for the rooms that are not lost by `T`.
///
/// A sweep that ends at `T` has searched every room that is not lost by `T`, and the fire made no path shorter,
/// so its `T` has this property. The fire must be known; it does not depend on the responders.
///
/// `losses(tick)` are the nodes lost by the end of `tick`; the set must not shrink from tick to tick.
///
/// ```
/// use brasa_evacuation::{Layout, SweepProblem, Sweeps, Timing, lower_bound, lower_bound_with_losses};
///
/// let office = Layout::office();
/// let problem = SweepProblem::new(&office, &Timing::hops(), Sweeps::Once, &office.starts(2))?;
/// let without_fire = lower_bound(&problem).best() as u32;
/// assert_eq!(lower_bound_with_losses(&problem, |_| Vec::new())?, without_fire);
/// // All rooms are lost from the first tick on: nothing is left to search.
/// let rooms: Vec<usize> = office.rooms().collect();
/// assert_eq!(lower_bound_with_losses(&problem, |_| rooms.clone())?, 0);
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
///
/// # Errors
/// [`EvacuationError::Field`] if the problem does not count whole ticks.
pub fn lower_bound_with_losses(
    problem: &SweepProblem,
    losses: impl Fn(u32) -> Vec<usize>,
) -> Result<u32, EvacuationError> {
    if !problem.whole {
        return Err(InvalidField::new("problem", "must count whole ticks", "seconds").into());
    }
    let mut tick = 0;
    loop {
        let lost = losses(tick);
        let bound = lower_bound(&problem.without(|node| lost.contains(&node))).best();
        let last = bound.min(f64::from(u32::MAX)) as u32;
        if tick >= last {
            return Ok(tick);
        }
        // Nothing changes before the next loss. Losses do not shrink, so the search for it may halve what is left.
        let (mut same, mut changed) = (tick, last);
        if losses(last).len() == lost.len() {
            return Ok(last);
        }
        while changed - same > 1 {
            let middle = same + (changed - same) / 2;
            let is_same = losses(middle).len() == lost.len();
            *(if is_same { &mut same } else { &mut changed }) = middle;
        }
        tick = changed;
    }
}

/// A room that needs `q` different responders is reached by at least one that starts no nearer than the `q`-th nearest.
fn farthest(problem: &SweepProblem) -> f64 {
    let time = |(index, room): (usize, &super::Room)| {
        let mut times: Vec<f64> = problem.from_start.iter().map(|row| row[index]).collect();
        times.sort_by(f64::total_cmp);
        times[room.required - 1] + room.service
    };
    problem.rooms.iter().enumerate().map(time).fold(0.0, f64::max)
}

/// Pairwise non-adjacent rooms in which no responder starts.
struct Independent {
    /// Rooms of the problem, in order of decreasing cost of a visit.
    rooms: Vec<Visited>,
    /// Per node of the layout.
    is_chosen: Vec<bool>,
    /// Smallest walk of each responder before its first edge into one of these rooms, ascending; see [`counting`].
    approaches: Vec<f64>,
}

/// Smallest cost of a visit of a room.
struct Visited {
    room: usize,
    /// The cheapest edge of the room.
    way: f64,
    /// Edge in, search, edge out.
    cost: f64,
}

impl Independent {
    fn new(problem: &SweepProblem) -> Self {
        let graph = &problem.graph;
        let mut is_chosen = vec![false; graph.topology.n_nodes()];
        let visited = |room: usize| {
            let ways = graph.topology.neighbors(problem.rooms[room].node).map(|(_, edge)| graph.costs[edge]);
            let way = ways.fold(f64::INFINITY, f64::min);
            Visited { room, way, cost: problem.rooms[room].service + 2.0 * way }
        };
        let mut rooms: Vec<Visited> = independent_rooms(problem).into_iter().map(visited).collect();
        rooms.sort_by(|a, b| b.cost.total_cmp(&a.cost).then(a.room.cmp(&b.room)));
        rooms.iter().for_each(|visited| is_chosen[problem.rooms[visited.room].node] = true);
        let mut approaches: Vec<f64> =
            problem.starts.iter().map(|start| approach(problem, *start, &is_chosen)).collect();
        approaches.sort_by(f64::total_cmp);
        Self { rooms, is_chosen, approaches }
    }
}

/// Lower bound on walking, by counting edges.
///
/// Let `I` be a set of pairwise non-adjacent rooms in which no responder starts. Every walk along an edge belongs to at
/// most one of three kinds, so their bounds can be added:
///
/// 1. *Edges with an end in `I`.* Each visit of a room `r` needs an edge in, with cost at least `m(r)`, the cost of its
///    cheapest edge, and an edge out with cost at least `m(r)`, unless the walk ends there. No edge joins two rooms
///    of `I`, so no edge is counted for two visits. A walk ends at most once: if `j` responders visit `I`,
///    the sum is at least `2 sum q(r) m(r)` minus the `j` largest `m(r)` of visits.
/// 2. *Edges between floors without an end in `I`.* Without these edges, the building consists of separate parts.
///    A part with a room that needs `q` responders, where only `p < q` start, is entered by at least `q - p` others,
///    each along such an edge, because no other edge leads into a part. Edges into different parts are different.
/// 3. *Other edges.* Before its first edge into `I`, a responder that visits `I` walks from its start to a neighbor of
///    a room of `I` without entering `I`: at least the shortest such walk `a(i)`, where edges of kind 2 are free.
///
/// The number of responders that visit `I` is unknown, so the bound is the minimum over all `j`, with the `j` smallest
/// `a(i)`. The cost in `I` is divided among the `j` responders, the total cost among all.
fn counting(problem: &SweepProblem, chosen: &Independent) -> f64 {
    let n = problem.n_responders() as f64;
    if chosen.rooms.is_empty() {
        return services(problem) / n;
    }
    let required = |visited: &Visited| problem.rooms[visited.room].required;
    let inside: f64 = chosen.rooms.iter().map(|visited| required(visited) as f64 * visited.cost).sum();
    let mut ends: Vec<f64> =
        chosen.rooms.iter().flat_map(|visited| std::iter::repeat_n(visited.way, required(visited))).collect();
    ends.sort_by(|a, b| b.total_cmp(a));
    let is_outside = |room: &usize| !chosen.is_chosen[problem.rooms[*room].node];
    let outside: f64 = (0..problem.rooms.len()).filter(is_outside).map(|room| searches(problem, room)).sum();
    let between_floors = floors(problem, &chosen.is_chosen);
    let mut work = inside;
    let mut bound = f64::INFINITY;
    for (j, (approach, end)) in chosen.approaches.iter().zip(&ends).enumerate() {
        work += approach - end;
        bound = bound.min((work / (j + 1) as f64).max((work + outside + between_floors) / n));
    }
    bound
}

/// Lower bound by the responder with the most visits.
///
/// Let `J` be a subset of the `I` of [`counting`], with `v` visits. No responder searches a room twice, so one of the
/// `k` responders visits at least `ceil(v / k)` different rooms of `J`. Its cost is at least that of the cheapest rooms
/// of this number, each with an edge in and out, minus the last edge out, plus the shortest approach. (Before its first
/// edge into `J` it walks at least to its first neighbor of `I`.) `J` are the most expensive rooms; their number
/// maximizes the bound.
fn share(problem: &SweepProblem, chosen: &Independent) -> f64 {
    let approach = chosen.approaches[0];
    let mut visits = 0;
    let mut dearest_way: f64 = 0.0;
    let mut bound: f64 = 0.0;
    for (last, visited) in chosen.rooms.iter().enumerate() {
        visits += problem.rooms[visited.room].required;
        dearest_way = dearest_way.max(visited.way);
        let most = visits.div_ceil(problem.n_responders());
        let cheapest: f64 = chosen.rooms[last + 1 - most..=last].iter().map(|visited| visited.cost).sum();
        bound = bound.max(cheapest - dearest_way + approach);
    }
    bound
}

/// Time of all searches.
fn services(problem: &SweepProblem) -> f64 {
    (0..problem.rooms.len()).map(|room| searches(problem, room)).sum()
}

/// Time of all searches of `room`.
fn searches(problem: &SweepProblem, room: usize) -> f64 {
    problem.rooms[room].required as f64 * problem.rooms[room].service
}

/// Pairwise non-adjacent rooms in which no responder starts, by greedy choice: the room with the
/// fewest remaining neighbors first.
fn independent_rooms(problem: &SweepProblem) -> Vec<usize> {
    let topology = &problem.graph.topology;
    let node = |room: usize| problem.rooms[room].node;
    let mut open: Vec<usize> = (0..problem.rooms.len()).filter(|room| !problem.starts.contains(&node(*room))).collect();
    let mut is_open = vec![false; topology.n_nodes()];
    open.iter().for_each(|room| is_open[node(*room)] = true);
    let mut chosen = Vec::new();
    loop {
        let open_neighbors = |room: &usize| topology.neighbors(node(*room)).filter(|(next, _)| is_open[*next]).count();
        let Some(best) = open.iter().copied().min_by_key(|room| (open_neighbors(room), *room)) else {
            return chosen;
        };
        chosen.push(best);
        is_open[node(best)] = false;
        topology.neighbors(node(best)).for_each(|(next, _)| is_open[next] = false);
        open.retain(|room| is_open[node(*room)]);
    }
}

/// Whether an edge joins two floors and touches no room of `I`.
fn joins_floors(problem: &SweepProblem, is_chosen: &[bool], a: usize, b: usize) -> bool {
    let floors = &problem.graph.floors;
    floors[a] != floors[b] && !is_chosen[a] && !is_chosen[b]
}

/// Lower bound on walking between floors.
fn floors(problem: &SweepProblem, is_chosen: &[bool]) -> f64 {
    let topology = &problem.graph.topology;
    let n_nodes = topology.n_nodes();
    let mut part = vec![usize::MAX; n_nodes];
    let mut parts = 0;
    for first in 0..n_nodes {
        if part[first] != usize::MAX {
            continue;
        }
        let mut open = vec![first];
        part[first] = parts;
        while let Some(node) = open.pop() {
            for (next, _) in topology.neighbors(node) {
                if part[next] == usize::MAX && !joins_floors(problem, is_chosen, node, next) {
                    part[next] = parts;
                    open.push(next);
                }
            }
        }
        parts += 1;
    }
    let mut needed = vec![0; parts];
    for room in &problem.rooms {
        let most = &mut needed[part[room.node]];
        *most = room.required.max(*most);
    }
    for start in &problem.starts {
        let most = &mut needed[part[*start]];
        *most = most.saturating_sub(1);
    }
    let mut cheapest = vec![f64::INFINITY; parts];
    for node in 0..n_nodes {
        for (next, edge) in topology.neighbors(node).filter(|(next, _)| part[*next] != part[node]) {
            let cost = &mut cheapest[part[next]];
            *cost = problem.graph.costs[edge].min(*cost);
        }
    }
    // A building of one part has no edge into it and needs none.
    needed.iter().zip(cheapest).filter(|(needed, _)| **needed > 0).map(|(needed, cost)| *needed as f64 * cost).sum()
}

/// Shortest walk from `start` to a neighbor of a room of `I` without entering `I`, with free stairs.
fn approach(problem: &SweepProblem, start: usize, is_chosen: &[bool]) -> f64 {
    let graph = &problem.graph;
    let mut times = vec![0.0; graph.topology.n_nodes()];
    let cost = |edge: usize, into: usize| {
        let (a, b) = graph.ends[edge];
        if is_chosen[into] {
            f64::INFINITY
        } else if joins_floors(problem, is_chosen, a, b) {
            0.0
        } else {
            graph.costs[edge]
        }
    };
    graph.topology.field(&[start], cost, &mut times);
    (0..times.len())
        .filter(|node| graph.topology.neighbors(*node).any(|(next, _)| is_chosen[next]))
        .map(|node| times[node])
        .fold(f64::INFINITY, f64::min)
}

/// Lower bound on walking, by a spanning tree.
///
/// Every search is a point, and all starts together are one point, the root. The routes together are a tree
/// over these points in which a search has at most two edges and the root at most one per responder. An edge between
/// two searches costs the shortest travel time, an edge to the root at least that from the nearest start. Two
/// searches of the same room are made by different responders and share no edge. So the minimum spanning tree bounds
/// the walking.
///
/// Trees with branches are cheaper than routes. Let every point have a price `p >= 0` that is added to each of its
/// edges, and subtract it twice for a search and `k` times for the root. This makes routes no more expensive, so for
/// any prices
///
/// ```text
/// minimum tree with costs d(u, v) + p(u) + p(v), minus (2 sum p(search) + k p(root))
/// ```
///
/// is still a bound. Prices are increased at points with too many edges and decreased at the others, in decreasing
/// steps (Held and Karp, "The traveling-salesman problem and minimum spanning trees", 1970), and the largest
/// bound is used.
fn spanning(problem: &SweepProblem) -> f64 {
    let points: Vec<usize> =
        problem.rooms.iter().enumerate().flat_map(|(index, room)| std::iter::repeat_n(index, room.required)).collect();
    let root = points.len();
    let n_responders = problem.n_responders();
    let from_root: Vec<f64> = (0..problem.rooms.len())
        .map(|room| problem.from_start.iter().map(|row| row[room]).fold(f64::INFINITY, f64::min))
        .collect();
    let cost = |a: usize, b: usize| match (a == root, b == root) {
        (true, _) => from_root[points[b]],
        (_, true) => from_root[points[a]],
        _ if points[a] == points[b] => f64::INFINITY,
        _ => problem.between[points[a]][points[b]],
    };
    let most = |point: usize| if point == root { n_responders } else { 2 };
    let mut prices = vec![0.0; root + 1];
    let mut degrees = vec![0usize; root + 1];
    let rounds = (PAIRS / (root * root).max(1)).clamp(ROUNDS.1, ROUNDS.0);
    let mut best: f64 = 0.0;
    let mut first_step = 0.0;
    for round in 0..rounds {
        let tree = cheapest_tree(root, &|a, b| cost(a, b) + prices[a] + prices[b], &mut degrees);
        let given_back: f64 = prices.iter().enumerate().map(|(point, price)| most(point) as f64 * price).sum();
        best = best.max(tree - given_back);
        if round == 0 {
            // A fifth of a mean edge.
            first_step = 0.2 * tree / points.len().max(1) as f64;
        }
        if (0..=root)
            .all(|point| degrees[point] <= most(point) && (prices[point] == 0.0 || degrees[point] == most(point)))
        {
            // The tree is a set of routes, whose prices cancel: no prices give a larger bound.
            break;
        }
        let left = 1.0 - round as f64 / rounds as f64;
        let step = first_step * left * left;
        for point in 0..=root {
            prices[point] = (prices[point] + step * (degrees[point] as f64 - most(point) as f64)).max(0.0);
        }
    }
    (best + services(problem)) / n_responders as f64
}

/// Cost of the minimum spanning tree over the points `0..=root` (Prim), and the degree of each point.
fn cheapest_tree(root: usize, cost: &impl Fn(usize, usize) -> f64, degrees: &mut [usize]) -> f64 {
    degrees.fill(0);
    let mut nearest = vec![(f64::INFINITY, root); root];
    let mut open: Vec<usize> = (0..root).collect();
    let mut newest = root;
    let mut total = 0.0;
    while !open.is_empty() {
        let mut best = 0;
        for (place, point) in open.iter().enumerate() {
            let through = cost(newest, *point);
            if through < nearest[*point].0 {
                nearest[*point] = (through, newest);
            }
            if nearest[*point].0 < nearest[open[best]].0 {
                best = place;
            }
        }
        newest = open.swap_remove(best);
        let (cost, neighbor) = nearest[newest];
        total += cost;
        degrees[newest] += 1;
        degrees[neighbor] += 1;
    }
    total
}
