// The greedy policy of `data`: `act(obs, mask)` for the rows of one environment.
function brasaPolicy(data) {
  "use strict";
  const arrays = {};
  for (const [name, text] of Object.entries(data.arrays)) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    arrays[name] = new Float32Array(bytes.buffer);
  }
  const functions = {
    tanh: Math.tanh,
    relu: (x) => (x < 0 ? 0 : x),
    elu: (x) => (x > 0 ? x : Math.expm1(x)),
  };

  const functionOf = (kind) => {
    if (typeof kind === "string") return functions[kind];
    const slope = kind["leaky-relu"];
    return (x) => (x < 0 ? slope * x : x);
  };

  // y = x W + b, with the columns of `bias` from `first` on and the matrix at `start`.
  function affine(x, at, weight, bias, outputs, start = 0, first = 0) {
    const y = Float32Array.from({ length: outputs }, (_, j) => (bias ? bias[first + j] : 0));
    for (let i = 0; i < x.length; i++) {
      for (let j = 0; j < outputs; j++) y[j] += x[i] * weight[start + i * outputs + j];
    }
    return y;
  }
  const named = (x, name) => affine(x, name, arrays[name + ".weight"], arrays[name + ".bias"], arrays[name + ".bias"].length);

  function forward(kind, at, x, agent) {
    if (kind === "scale") return x.map((x, i) => x * arrays[at + ".factor"][i] + arrays[at + ".offset"][i]);
    if (kind === "clip") {
      return x.map((x, i) => Math.min(Math.max(x, arrays[at + ".low"][i]), arrays[at + ".high"][i]));
    }
    if (kind.normalize) {
      const { clip } = kind.normalize;
      const [mean, meanLow, deviation, deviationLow] =
        ["mean", "mean_low", "deviation", "deviation_low"].map((field) => arrays[at + "." + field]);
      const normal = (x, i) => (x - mean[i] - meanLow[i]) / (deviation[i] + deviationLow[i]);
      return x.map((x, i) => Math.min(Math.max(normal(x, i), -clip), clip));
    }
    if (kind.activation) return x.map(functionOf(kind.activation));
    if (kind.linear) {
      const { outputs } = kind.linear;
      const weight = arrays[at + ".weight"];
      const bias = arrays[at + ".bias"];
      // Weights of all agents, or of each.
      const start = weight.length === x.length * outputs ? 0 : agent * x.length * outputs;
      return affine(x, at, weight, bias, outputs, start, bias.length === outputs ? 0 : agent * outputs);
    }
    if (kind.groups) {
      const { width, layers } = kind.groups;
      const columns = arrays[at + ".columns"];
      const results = [];
      for (let first = 0; first < columns.length; first += width) {
        let own = Float32Array.from(columns.subarray(first, first + width), (column) => x[column]);
        layers.forEach((layer, i) => (own = forward(layer, `${at}.group.${i}`, own, 0)));
        results.push(...own);
      }
      return Float32Array.from(results);
    }
    return scoresOfGraph(kind.graph, at, x);
  }

  // Attention of `kind` on `n` nodes whose edges begin at entry `first` of the starts.
  function attend(kind, at, graph, nodes, n, first) {
    const { edge_width: edgeWidth } = graph;
    const starts = arrays[graph.at + ".edges.starts"];
    const sources = arrays[graph.at + ".edges.sources"];
    const features = arrays[graph.at + ".edges.features"];
    const vector = arrays[at + ".attention"];
    const bias = arrays[at + ".bias"];
    const channels = vector.length / kind.heads;
    const outputs = arrays[at + ".value.bias"].length / kind.heads;
    const all = (name) => nodes.map((x) => named(x, at + "." + name));
    const [source, destination, value] = ["source", "destination", "value"].map(all);
    const leaky = (x) => (x > 0 ? x : kind.slope * x);
    const result = nodes.map((x, node) => {
      const edges = [];
      for (let edge = starts[first + node]; edge < starts[first + node + 1]; edge++) edges.push(edge);
      const terms = edges.map((edge) =>
        affine(features.subarray(edge * edgeWidth, (edge + 1) * edgeWidth), at, arrays[at + ".edge"], null, vector.length));
      const sums = new Float32Array(kind.heads * outputs);
      for (let head = 0; head < kind.heads; head++) {
        const scores = edges.map((edge, slot) => {
          let score = 0;
          for (let j = head * channels; j < (head + 1) * channels; j++) {
            score += leaky(source[sources[edge]][j] + destination[node][j] + terms[slot][j]) * vector[j];
          }
          return score;
        });
        const most = Math.max(...scores);
        const weights = scores.map((score) => Math.exp(score - most));
        const total = weights.reduce((sum, weight) => sum + weight, 0);
        edges.forEach((edge, slot) => {
          for (let j = head * outputs; j < (head + 1) * outputs; j++) {
            sums[j] += (weights[slot] / total) * value[sources[edge]][j];
          }
        });
      }
      let y = sums;
      if (!kind.concat) {
        y = new Float32Array(outputs);
        sums.forEach((sum, j) => (y[j % outputs] += sum / kind.heads));
      }
      y = y.map((y, j) => y + bias[j]);
      if (kind.residual === "same") y = y.map((y, j) => y + x[j]);
      if (kind.residual === "projected") {
        const projected = affine(x, at, arrays[at + ".residual"], null, y.length);
        y = y.map((y, j) => y + projected[j]);
      }
      return y;
    });
    if (kind.norm) normalize(result, at + ".norm");
    return kind.activation ? result.map((y) => y.map(functionOf(kind.activation))) : result;
  }

  // Each node over its features, or each feature over the nodes.
  function normalize(nodes, at) {
    const [scale, shift, meanScale] = ["scale", "shift", "mean_scale"].map((field) => arrays[at + "." + field]);
    const moments = (values, factor) => {
      const mean = (factor * values.reduce((sum, x) => sum + x, 0)) / values.length;
      const variance = values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / values.length;
      return [mean, Math.sqrt(variance + 1e-5)];
    };
    const apply = (node, j, [mean, root]) => (node[j] = ((node[j] - mean) / root) * scale[j] + shift[j]);
    if (meanScale.length === 0) {
      for (const node of nodes) {
        const own = moments(Array.from(node), 1);
        node.forEach((_, j) => apply(node, j, own));
      }
      return;
    }
    for (let j = 0; j < scale.length; j++) {
      const own = moments(nodes.map((node) => node[j]), meanScale[j]);
      nodes.forEach((node) => apply(node, j, own));
    }
  }

  function scoresOfGraph(kind, at, row) {
    const graph = { ...kind, at };
    const [index, own] = [row[0], row[1]];
    const counts = arrays[at + ".edges.nodes"];
    const n = Number.isInteger(index) && index >= 0 && index < counts.length ? counts[index] : 0;
    if (!(Number.isInteger(own) && own >= 0 && own < n)) return new Float32Array(kind.n_nodes + 1).fill(NaN);
    const { n_nodes: nNodes, node_features: width, agent_features: agentWidth } = kind;
    const firstFeature = 2 + agentWidth;
    let nodes = Array.from({ length: n }, (_, i) => row.slice(firstFeature + i * width, firstFeature + (i + 1) * width));
    kind.layers.forEach((layer, i) => (nodes = attend(layer, `${at}.layers.${i}`, graph, nodes, n, index * nNodes)));
    const columns = Array.from(nodes[0], (_, j) => nodes.map((node) => node[j]));
    let read = [];
    if (kind.readout.own) read.push(...nodes[own]);
    if (kind.readout.mean) read.push(...columns.map((column) => column.reduce((sum, x) => sum + x, 0) / n));
    if (kind.readout.max) read.push(...columns.map((column) => Math.max(...column)));
    if (kind.readout.agent) read.push(...row.slice(2, firstFeature));
    read = Float32Array.from(read);
    const scores = new Float32Array(nNodes + 1).fill(-1e9);
    if (kind.head === "pointer") {
      const query = named(read, at + ".query");
      nodes.forEach((node, i) => {
        const key = named(node, at + ".key");
        scores[i] = key.reduce((sum, x, j) => sum + x * query[j], 0) / Math.sqrt(query.length);
      });
      scores[nNodes] = named(query, at + ".wait")[0];
      return scores;
    }
    kind.head.index.forEach((layer, i) => (read = forward(layer, `${at}.head.${i}`, read, 0)));
    const begin = (index * nNodes + own) * nNodes;
    arrays[at + ".ranks"].subarray(begin, begin + nNodes).forEach((rank, i) => {
      if (rank > 0) scores[i] = read[rank];
    });
    scores[nNodes] = read[0];
    return scores;
  }

  // `values` are `n` numbers; a list with another length or other values is a mistake.
  function check(name, values, n, isRight, rule) {
    const isList = Array.isArray(values) || (ArrayBuffer.isView(values) && !(values instanceof DataView));
    if (!isList) throw new TypeError(`\`${name}\` must be an array of numbers, got ${values === null ? "null" : typeof values}`);
    if (values.length !== n) throw new RangeError(`\`${name}\` must have ${n} numbers, got ${values.length}`);
    for (let i = 0; i < n; i++) {
      const value = values[i];
      if (typeof value !== "number") throw new TypeError(`\`${name}[${i}]\` must be a number, got ${typeof value}`);
      if (!isRight(value)) throw new RangeError(`\`${name}[${i}]\` must be ${rule}, got ${value}`);
    }
  }

  // The result of the last layer for each row: scores of choices, or actions. All are NaN if a number of the row is.
  function scores(obs) {
    check("obs", obs, data.n_agents * data.obs_width, () => true, "a number");
    const rows = [];
    for (let row = 0; row < data.n_agents; row++) {
      let x = Float32Array.from(obs.slice(row * data.obs_width, (row + 1) * data.obs_width));
      const isKnown = !x.some(Number.isNaN);
      data.layers.forEach((kind, i) => (x = forward(kind, String(i), x, row)));
      rows.push(isKnown ? x : x.fill(NaN));
    }
    return rows;
  }

  // Actions of the environment, row by row; choices are indices, or -1 if a score or the mask is NaN, or nothing is legal. `mask` has 0 for
  // illegal actions and 1 for the others; it is absent where environments have none.
  function act(obs, mask) {
    const results = scores(obs);
    const hasMask = mask !== undefined && mask !== null;
    if (hasMask) {
      if (data.output === "real") throw new TypeError("`mask` must be absent: the actions are no choices");
      const isFlag = (flag) => flag === 0 || flag === 1 || Number.isNaN(flag);
      check("mask", mask, data.n_agents * results[0].length, isFlag, "0 or 1");
    } else if (data.masked) {
      throw new TypeError("`mask` must be given: not every action is legal");
    }
    const actions = [];
    results.forEach((x, row) => {
      if (data.output === "real") {
        actions.push(...x);
        return;
      }
      let first = 0;
      for (const n of data.output.choice.heads) {
        let best = -1;
        for (let i = first; i < first + n; i++) {
          const flag = hasMask ? mask[row * x.length + i] : 1;
          if (Number.isNaN(x[i]) || Number.isNaN(flag)) {
            best = -1;
            break;
          }
          if (flag === 0) continue;
          if (best < 0 || x[i] > x[best]) best = i;
        }
        actions.push(best < 0 ? -1 : best - first);
        first += n;
      }
    });
    return actions;
  }

  return { act, scores, about: data.about, data };
}
