//! Attention over graphs in C.

use std::fmt::{Display, Write};

use super::{apply_function, number, write_array, write_indices, write_layers};
use crate::graph::{ABSENT, EPSILON};
use crate::{Affine, Attention, GraphNetwork, Head, Norm, Residual};

/// A template with its marks replaced: `@name@` by the value of `name`.
fn fill(template: &str, values: &[(&str, &dyn Display)]) -> String {
    values
        .iter()
        .fold(template.to_owned(), |text, (name, value)| text.replace(&format!("@{name}@"), &value.to_string()))
}

/// Writes the constants of a network and the function `ID_scores`, from a row to the scores.
pub(super) fn write(out: &mut String, id: &str, network: &GraphNetwork) {
    let n = network.n_nodes;
    let edges = &network.edges;
    for (field, values) in [("nodes", &edges.nodes), ("starts", &edges.starts), ("sources", &edges.sources)] {
        write_indices(out, &format!("{id}_{field}"), values);
    }
    if edges.width > 0 {
        write_array(out, &format!("{id}_features"), &edges.features);
    }
    out.push_str(&fill(AFFINE, &[("id", &id)]));
    let widest = network.layers.iter().flat_map(|layer| [layer.inputs(), layer.width()]).max().unwrap_or(1);
    for (i, layer) in network.layers.iter().enumerate() {
        write_attention(out, id, i, layer, network);
    }
    let mut body = String::new();
    for (i, layer) in network.layers.iter().enumerate() {
        let _ = writeln!(body, "    {id}_attend_{i}(graph * {n}, n, nodes, next);");
        let _ = writeln!(body, "    for (i = 0; i < n * {}; ++i) {{ nodes[i] = next[i]; }}", layer.width());
    }
    let width = network.layers.last().map_or(0, Attention::width);
    let mut at = 0;
    let mut part = |template: &str, n_numbers: usize| {
        body.push_str(&fill(template, &[("at", &at), ("width", &n_numbers)]));
        at += n_numbers;
    };
    if network.readout.own {
        part("    for (j = 0; j < @width@; ++j) { read[@at@ + j] = nodes[own * @width@ + j]; }\n", width);
    }
    if network.readout.mean {
        part(MEAN, width);
    }
    if network.readout.max {
        part(MAX, width);
    }
    if network.readout.agent && network.agent_features > 0 {
        part("    for (j = 0; j < @width@; ++j) { read[@at@ + j] = row[2 + j]; }\n", network.agent_features);
    }
    let mut locals = format!("float nodes[{n} * {widest}], next[{n} * {widest}], read[{at}];");
    match &network.head {
        Head::Pointer { query, key, wait } => {
            write_affine(out, &format!("{id}_query"), query);
            write_affine(out, &format!("{id}_key"), key);
            write_affine(out, &format!("{id}_wait"), wait);
            let keys = query.outputs();
            let root = number((keys as f32).sqrt());
            let _ = write!(locals, "\n    float query[{keys}], key[{keys}], sum;");
            let values: [(&str, &dyn Display); 6] =
                [("id", &id), ("read", &at), ("keys", &keys), ("width", &width), ("root", &root), ("N", &n)];
            body.push_str(&fill(POINTER, &values));
        }
        Head::Index { layers, ranks } => {
            write_indices(out, &format!("{id}_ranks"), ranks);
            let mut widths = vec![at];
            for layer in layers {
                let next = layer.width(widths[widths.len() - 1], 1).expect("the layers were checked");
                widths.push(next);
            }
            let widest = widths.iter().max().expect("there is the readout");
            let _ = write!(locals, "\n    float x[{widest}], y[{widest}];");
            let mut head = String::new();
            write_layers(out, &mut head, &format!("{id}_head"), layers, &widths, &[]);
            let _ = writeln!(body, "    (void)y;\n    for (i = 0; i < {at}; ++i) {{ x[i] = read[i]; }}\n{head}");
            body.push_str(&fill(INDEX, &[("id", &id), ("N", &n)]));
        }
    }
    let first = 2 + network.agent_features;
    let features = network.node_features;
    let values: [(&str, &dyn Display); 8] = [
        ("id", &id),
        ("graphs", &edges.nodes.len()),
        ("locals", &locals),
        ("N", &n),
        ("first", &first),
        ("features", &features),
        ("absent", &number(ABSENT)),
        ("body", &body),
    ];
    out.push_str(&fill(SCORES, &values));
}

fn write_attention(out: &mut String, id: &str, i: usize, layer: &Attention, network: &GraphNetwork) {
    let (edge_width, n_slots) = (network.edges.width, network.edges.n_slots());
    let own = format!("{id}_{i}");
    for (field, affine) in [("source", &layer.source), ("destination", &layer.destination), ("value", &layer.value)] {
        write_affine(out, &format!("{own}_{field}"), affine);
    }
    write_array(out, &format!("{own}_attention"), &layer.attention);
    write_array(out, &format!("{own}_bias"), &layer.bias);
    if edge_width > 0 {
        write_array(out, &format!("{own}_edge"), &layer.edge);
    }
    let (scores, values, width) = (layer.attention.len(), layer.value.outputs(), layer.width());
    let (channels, outputs) = (scores / layer.heads, values / layer.heads);
    let edge = match edge_width {
        0 => String::new(),
        n => format!(
            "for (k = 0; k < {n}; ++k) {{ z += {id}_features[edge * {n} + k] * {own}_edge[k * {scores} + j]; }}"
        ),
    };
    let inputs = layer.inputs();
    let residual = match &layer.residual {
        Residual::None => String::new(),
        Residual::Same => "y[j] += nodes[node * @inputs@ + j];".into(),
        Residual::Projected(weight) => {
            write_array(out, &format!("{own}_residual"), weight);
            "for (k = 0; k < @inputs@; ++k) { y[j] += nodes[node * @inputs@ + k] * @own@_residual[k * @width@ + j]; }"
                .into()
        }
    };
    let residual = fill(&residual, &[("inputs", &inputs), ("own", &own), ("width", &width)]);
    let merged = match layer.concat {
        true => "y[j] = sums[j];".to_owned(),
        false => {
            let heads = number(layer.heads as f32);
            format!(
                "y[j] = 0.0f; for (k = 0; k < {values}; k += {outputs}) {{ y[j] += sums[j + k]; }} y[j] /= {heads};"
            )
        }
    };
    let norm = layer.norm.as_ref().map_or(String::new(), |norm| write_norm(out, &own, norm));
    let function = layer.activation.map_or(String::new(), |function| {
        format!("    for (j = 0; j < n * {width}; ++j) {{ {} }}\n", apply_function(function, "out[j]"))
    });
    let slope = number(layer.slope);
    let values: [(&str, &dyn Display); 17] = [
        ("id", &id),
        ("N", &network.n_nodes),
        ("i", &i),
        ("own", &own),
        ("slots", &n_slots),
        ("inputs", &inputs),
        ("scores", &scores),
        ("values", &values),
        ("heads", &layer.heads),
        ("channels", &channels),
        ("outputs", &outputs),
        ("width", &width),
        ("slope", &slope),
        ("edge", &edge),
        ("merged", &merged),
        ("residual", &residual),
        ("finish", &format!("{norm}{function}")),
    ];
    out.push_str(&fill(ATTEND, &values));
}

fn write_norm(out: &mut String, own: &str, norm: &Norm) -> String {
    let width = norm.scale.len();
    write_array(out, &format!("{own}_scale"), &norm.scale);
    write_array(out, &format!("{own}_shift"), &norm.shift);
    let (numbers, epsilon) = (number(width as f32), number(EPSILON));
    let values: [(&str, &dyn Display); 4] =
        [("own", &own), ("width", &width), ("numbers", &numbers), ("epsilon", &epsilon)];
    if norm.mean_scale.is_empty() {
        return fill(LAYER_NORM, &values);
    }
    write_array(out, &format!("{own}_mean_scale"), &norm.mean_scale);
    fill(GRAPH_NORM, &values)
}

fn write_affine(out: &mut String, id: &str, affine: &Affine) {
    write_array(out, &format!("{id}_weight"), &affine.weight);
    write_array(out, &format!("{id}_bias"), &affine.bias);
}

const AFFINE: &str = "
/* y = x W + b for n numbers to m. */
static void @id@_affine(const float *x, int n, const float *weight, const float *bias, int m, float *y) {
    int i, j;
    for (j = 0; j < m; ++j) { y[j] = bias[j]; }
    for (i = 0; i < n; ++i) { for (j = 0; j < m; ++j) { y[j] += x[i] * weight[i * m + j]; } }
}

";

const ATTEND: &str = "
static void @own@_head(int first, int node, int head, const float *source, const float *to, const float *value, float *sums) {
    float scores[@slots@], most = -INFINITY, total = 0.0f, z, score;
    int begin = @id@_starts[first + node], n_edges = @id@_starts[first + node + 1] - begin, slot, edge, j, k;
    (void)k;
    for (slot = 0; slot < n_edges; ++slot) {
        edge = begin + slot;
        score = 0.0f;
        for (j = head * @channels@; j < (head + 1) * @channels@; ++j) {
            z = source[@id@_sources[edge] * @scores@ + j] + to[j];
            @edge@
            score += (z > 0.0f ? z : @slope@ * z) * @own@_attention[j];
        }
        scores[slot] = score;
        most = fmaxf(most, score);
    }
    for (slot = 0; slot < n_edges; ++slot) { scores[slot] = expf(scores[slot] - most); total += scores[slot]; }
    for (j = head * @outputs@; j < (head + 1) * @outputs@; ++j) {
        sums[j] = 0.0f;
        for (slot = 0; slot < n_edges; ++slot) {
            sums[j] += scores[slot] / total * value[@id@_sources[begin + slot] * @values@ + j];
        }
    }
}

static void @id@_attend_@i@(int first, int n, const float *nodes, float *out) {
    float source[@N@ * @scores@], value[@N@ * @values@], to[@scores@], sums[@values@], *y;
    int node, head, j, k;
    (void)k;
    for (node = 0; node < n; ++node) {
        @id@_affine(nodes + node * @inputs@, @inputs@, @own@_source_weight, @own@_source_bias, @scores@, source + node * @scores@);
        @id@_affine(nodes + node * @inputs@, @inputs@, @own@_value_weight, @own@_value_bias, @values@, value + node * @values@);
    }
    for (node = 0; node < n; ++node) {
        @id@_affine(nodes + node * @inputs@, @inputs@, @own@_destination_weight, @own@_destination_bias, @scores@, to);
        for (head = 0; head < @heads@; ++head) { @own@_head(first, node, head, source, to, value, sums); }
        y = out + node * @width@;
        for (j = 0; j < @width@; ++j) {
            @merged@
            y[j] += @own@_bias[j];
            @residual@
        }
    }
@finish@}

";

const LAYER_NORM: &str = "    for (node = 0; node < n; ++node) {
        float mean = 0.0f, variance = 0.0f;
        y = out + node * @width@;
        for (j = 0; j < @width@; ++j) { mean += y[j]; }
        mean /= @numbers@;
        for (j = 0; j < @width@; ++j) { variance += (y[j] - mean) * (y[j] - mean); }
        variance = sqrtf(variance / @numbers@ + @epsilon@);
        for (j = 0; j < @width@; ++j) { y[j] = (y[j] - mean) / variance * @own@_scale[j] + @own@_shift[j]; }
    }
";

const GRAPH_NORM: &str = "    for (j = 0; j < @width@; ++j) {
        float mean = 0.0f, variance = 0.0f;
        for (node = 0; node < n; ++node) { mean += out[node * @width@ + j]; }
        mean = mean / (float)n * @own@_mean_scale[j];
        for (node = 0; node < n; ++node) { variance += (out[node * @width@ + j] - mean) * (out[node * @width@ + j] - mean); }
        variance = sqrtf(variance / (float)n + @epsilon@);
        for (node = 0; node < n; ++node) {
            out[node * @width@ + j] = (out[node * @width@ + j] - mean) / variance * @own@_scale[j] + @own@_shift[j];
        }
    }
";

const MEAN: &str = "    for (j = 0; j < @width@; ++j) {
        read[@at@ + j] = 0.0f;
        for (i = 0; i < n; ++i) { read[@at@ + j] += nodes[i * @width@ + j]; }
        read[@at@ + j] /= (float)n;
    }
";

const MAX: &str = "    for (j = 0; j < @width@; ++j) {
        read[@at@ + j] = nodes[j];
        for (i = 1; i < n; ++i) { if (nodes[i * @width@ + j] > read[@at@ + j] || nodes[i * @width@ + j] != nodes[i * @width@ + j]) { read[@at@ + j] = nodes[i * @width@ + j]; } }
    }
";

const POINTER: &str = "    @id@_affine(read, @read@, @id@_query_weight, @id@_query_bias, @keys@, query);
    for (i = 0; i < n; ++i) {
        @id@_affine(nodes + i * @width@, @width@, @id@_key_weight, @id@_key_bias, @keys@, key);
        sum = 0.0f;
        for (j = 0; j < @keys@; ++j) { sum += key[j] * query[j]; }
        score[i] = sum / @root@;
    }
    @id@_affine(query, @keys@, @id@_wait_weight, @id@_wait_bias, 1, score + @N@);
";

const INDEX: &str = "    for (i = 0; i < @N@; ++i) {
        j = @id@_ranks[(graph * @N@ + own) * @N@ + i];
        if (j > 0) { score[i] = x[j]; }
    }
    score[@N@] = x[0];
";

const SCORES: &str = "
static void @id@_scores(const float *row, float *score) {
    @locals@
    int graph = row[0] >= 0.0f && row[0] < @graphs@.0f ? (int)row[0] : -1, n = graph < 0 ? 0 : @id@_nodes[graph];
    int own = row[1] >= 0.0f && row[1] < (float)n ? (int)row[1] : -1, i, j;
    (void)j;
    if (graph < 0 || own < 0 || (float)graph < row[0] || (float)own < row[1]) {
        for (i = 0; i <= @N@; ++i) { score[i] = NAN; }
        return;
    }
    for (i = 0; i < n * @features@; ++i) { nodes[i] = row[@first@ + i]; }
    for (i = 0; i < @N@; ++i) { score[i] = @absent@; }
@body@}

";
