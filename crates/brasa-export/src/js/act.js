// The greedy policy of `data`: `act(obs, mask, state)` for the rows of one environment.
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

  // The number of actions of each choice; none for numbers.
  const heads = data.output === "real" ? [] : (data.output.choice || data.output.both).heads;
  const nActions = heads.reduce((sum, n) => sum + n, 0);

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

  // Numbers that a layer remembers of a row of `width` columns.
  function remembered(kind, at, width) {
    if (kind.window) return (kind.window.frames - 1) * width;
    if (!kind.recurrent) return 0;
    const gates = arrays[at + ".output.bias"].length;
    return kind.recurrent.cell === "lstm" ? gates / 2 : gates / 3;
  }

  // A layer that remembers `before`: its result, and what it remembers then.
  function step(kind, at, x, before) {
    if (kind.window) {
      const rows = new Float32Array(before.length + x.length);
      rows.set(before);
      rows.set(x, before.length);
      return [rows, rows.slice(x.length)];
    }
    const sigmoid = (x) => 0.5 * Math.tanh(0.5 * x) + 0.5;
    const isLstm = kind.recurrent.cell === "lstm";
    const n = isLstm ? before.length / 2 : before.length;
    const a = named(x, at + ".input");
    const b = named(before.subarray(0, n), at + ".output");
    const gate = (place, i) => sigmoid(a[place * n + i] + b[place * n + i]);
    const after = new Float32Array(before.length);
    for (let i = 0; i < n; i++) {
      const last = 2 * n + i;
      if (isLstm) {
        after[n + i] = gate(1, i) * before[n + i] + gate(0, i) * Math.tanh(a[last] + b[last]);
        after[i] = gate(3, i) * Math.tanh(after[n + i]);
      } else {
        const candidate = Math.tanh(a[last] + gate(0, i) * b[last]);
        after[i] = candidate + gate(1, i) * (before[i] - candidate);
      }
    }
    return [after.slice(0, n), after];
  }

  function forward(kind, at, x, agent) {
    if (kind === "scale") {
      // One number for all columns, or one each.
      const [factor, offset] = [arrays[at + ".factor"], arrays[at + ".offset"]];
      return x.map((x, i) => x * factor[factor.length === 1 ? 0 : i] + offset[offset.length === 1 ? 0 : i]);
    }
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
    if (kind.residual) {
      let y = x;
      kind.residual.layers.forEach((layer, i) => (y = forward(layer, `${at}.residual.${i}`, y, 0)));
      return x.map((x, i) => x + y[i]);
    }
    if (kind["channels-first"]) {
      const { channels, height, width } = kind["channels-first"];
      const pixels = height * width;
      return x.map((_, i) => x[(i % pixels) * channels + Math.floor(i / pixels)]);
    }
    if (kind.convolution || kind["max-pool"]) return onImage(kind, at, x);
    return scoresOfGraph(kind.graph, at, x);
  }

  // A convolution, or the largest number of each place of a window, on an image with its channels outermost.
  function onImage(kind, at, x) {
    const { input: { channels, height, width }, window: { size, stride, padding } } = kind.convolution || kind["max-pool"];
    const [weight, bias] = [arrays[at + ".weight"], arrays[at + ".bias"]];
    const [rows, columns] = [height, width].map((pixels) => Math.floor((pixels + 2 * padding - size) / stride) + 1);
    const filters = kind.convolution ? bias.length : channels;
    const y = new Float32Array(filters * rows * columns);
    for (let f = 0; f < filters; f++) for (let r = 0; r < rows; r++) for (let s = 0; s < columns; s++) {
      let result = kind.convolution ? bias[f] : -Infinity;
      for (let i = 0; i < size; i++) for (let j = 0; j < size; j++) {
        const [v, u] = [r * stride + i - padding, s * stride + j - padding];
        if (v < 0 || v >= height || u < 0 || u >= width) continue;
        if (!kind.convolution) {
          result = Math.max(result, x[(f * height + v) * width + u]);
          continue;
        }
        for (let c = 0; c < channels; c++) {
          result += x[(c * height + v) * width + u] * weight[((f * channels + c) * size + i) * size + j];
        }
      }
      y[(f * rows + r) * columns + s] = result;
    }
    return y;
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

  // The result of the last layer for each row, scores of choices or actions, and what is remembered then. All results are NaN if a number of the
  // row is; such a row changes nothing that is remembered.
  function results(obs, state) {
    check("obs", obs, data.n_agents * data.obs_width, () => true, "a number");
    const given = state === undefined || state === null ? start() : state;
    check("state", given, data.n_agents * data.state_width, () => true, "a number");
    const next = Float32Array.from(given);
    const rows = [];
    for (let row = 0, first = 0; row < data.n_agents; row++) {
      let x = Float32Array.from(obs.slice(row * data.obs_width, (row + 1) * data.obs_width));
      const isKnown = !x.some(Number.isNaN);
      data.layers.forEach((kind, i) => {
        const at = String(i);
        const n = remembered(kind, at, x.length);
        if (n === 0 && !kind.window) {
          x = forward(kind, at, x, row);
          return;
        }
        const [result, after] = step(kind, at, x, next.slice(first, first + n));
        if (isKnown) next.set(after, first);
        first += n;
        x = result;
      });
      rows.push(isKnown ? x : x.fill(NaN));
    }
    return [rows, next];
  }

  // What is remembered where an episode begins; empty for a policy without memory.
  function start() {
    return new Float32Array(data.n_agents * data.state_width);
  }

  function scores(obs, state) {
    return results(obs, state)[0];
  }

  // Actions of the environment, row by row; choices are indices, or -1 if a score or the mask is NaN, or nothing is legal. `mask` has 0 for
  // illegal actions and 1 for the others; it is absent where environments have none. `state` is what a policy remembers, which it replaces.
  function act(obs, mask, state) {
    const remembers = data.state_width > 0;
    if (remembers && (state === undefined || state === null)) {
      throw new TypeError("`state` must be given to a policy that remembers: `start()` where an episode begins");
    }
    const [rows, next] = results(obs, state);
    const hasMask = mask !== undefined && mask !== null;
    if (hasMask) {
      if (heads.length === 0) throw new TypeError("`mask` must be absent: the actions are no choices");
      const isFlag = (flag) => flag === 0 || flag === 1 || Number.isNaN(flag);
      check("mask", mask, data.n_agents * nActions, isFlag, "0 or 1");
    } else if (data.masked) {
      throw new TypeError("`mask` must be given: not every action is legal");
    }
    const actions = [];
    rows.forEach((x, row) => {
      let first = 0;
      for (const n of heads) {
        let best = -1;
        for (let i = first; i < first + n; i++) {
          const flag = hasMask ? mask[row * nActions + i] : 1;
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
      // The numbers behind the choices.
      actions.push(...x.slice(first));
    });
    if (remembers) next.forEach((x, i) => (state[i] = x));
    return actions;
  }

  return { act, scores, start, about: data.about, data };
}
