//! Exported policies as a C header.

mod graph;
mod image;
mod memory;

use std::fmt::Write;

use crate::about::{comment, text_of};
use crate::policy::inner_widths;
use crate::{About, ExportError, ExportedPolicy, Function, Groups, Layer, high_and_low};

/// The beginning of a header.
const HEAD: &str =
    "#if !defined(__cplusplus) && !defined(_MSC_VER) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L)
#error \"this header needs C99 or later, for example -std=c99: earlier C has other declarations of its functions\"
#endif
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
";

impl ExportedPolicy {
    /// A C99 header with the function `NAME_act`, which needs the C library alone and allocates nothing. Earlier C is rejected by `#error`.
    ///
    /// `void NAME_act(const float *obs, const float *mask, float *action)` computes the actions of one environment: `obs` has
    /// `NAME_N_AGENTS` rows of `NAME_OBS_WIDTH` numbers, `mask` as many rows of `NAME_N_ACTIONS` (0 for illegal actions; `NULL` if environments have
    /// none), `action` as many rows of `NAME_ACTION_WIDTH`. Choices are indices. Invalid input gives NaN and -1, as in
    /// [`ExportedPolicy::act`].
    ///
    /// A policy that remembers has one argument more before the last, `float *state`: as many rows of `NAME_STATE_WIDTH`, 0 where an episode
    /// begins. The function replaces them.
    ///
    /// # Errors
    /// [`ExportError::Name`] if `name` is no identifier; [`ExportError::Layer`] if the layers do not fit together.
    pub fn to_c(&self, name: &str) -> Result<String, ExportError> {
        crate::names::check(name)?;
        let widths = self.widths()?;
        let widest = widths.iter().max().expect("there is at least the observation");
        let upper = name.to_ascii_uppercase();
        let mut text = String::new();
        let out = &mut text;
        let line = |out: &mut String, text: &str| writeln!(out, "{text}").expect("a string can be written");
        line(out, "/* A policy trained with Brasa. See the function at the end.");
        line(out, &format!("{} */", comment(&self.about)));
        line(out, &format!("#ifndef {upper}_H\n#define {upper}_H\n{HEAD}"));
        for (constant, value) in [
            ("OBS_WIDTH", self.obs_width),
            ("N_AGENTS", self.n_agents),
            ("N_ACTIONS", self.n_actions()),
            ("ACTION_WIDTH", self.action_width()),
        ] {
            line(out, &format!("#define {upper}_{constant} {value}"));
        }
        let states = self.states(&widths);
        let state_width: usize = states.iter().sum();
        if state_width > 0 {
            line(out, &format!("#define {upper}_STATE_WIDTH {state_width}"));
        }
        line(out, &format!("#define {upper}_VERSION {}", text_of(crate::about::VERSION)));
        let About { run, step, config, .. } = &self.about;
        for (constant, value) in [
            ("RUN", run.as_deref().map(text_of)),
            ("STEP", step.map(|step| format!("{step}ull"))),
            ("CONFIG", config.as_deref().map(text_of)),
        ] {
            if let Some(value) = value {
                line(out, &format!("#define {upper}_{constant} {value}"));
            }
        }
        line(out, "");
        // Comparisons of numbers may not see NaN where the compiler is told that there is none.
        line(out, &format!("static int {name}_is_nan(float x) {{"));
        line(
            out,
            "    uint32_t bits;\n    memcpy(&bits, &x, sizeof bits);\n    return (bits & 0x7fffffffu) > 0x7f800000u;\n}\n",
        );
        let mut body = String::new();
        write_layers(out, &mut body, name, &self.layers, &widths, &states);
        line(
            out,
            &format!(
                "\n/* obs: {upper}_N_AGENTS rows of {upper}_OBS_WIDTH; mask: as many rows of {upper}_N_ACTIONS, 0 for"
            ),
        );
        let no_mask = if self.masked { "and not NULL" } else { "or NULL" };
        line(out, &format!("   illegal actions, {no_mask}; action: as many rows of the action. Choices are indices."));
        if state_width > 0 {
            line(
                out,
                &format!(
                    "   state: as many rows of {upper}_STATE_WIDTH, what is remembered: 0 where an episode begins, then as the function left it."
                ),
            );
        }
        line(
            out,
            "   Invalid input: if a number of an observation is NaN, or names a graph or node that does not exist, continuous actions are",
        );
        line(
            out,
            "   NAN and choices -1. A choice is -1 too if a score or a number of its mask is NaN, or if no action is legal, or if the mask is",
        );
        line(out, "   NULL and must not be. */");
        let state = if state_width > 0 { "float *state, " } else { "" };
        line(out, &format!("static void {name}_act(const float *obs, const float *mask, {state}float *action) {{"));
        line(out, &format!("    float x[{widest}], y[{widest}];\n    int agent, known, i, j;"));
        line(
            out,
            &format!("    (void)y; (void)j; (void)mask;\n    for (agent = 0; agent < {}; ++agent) {{", self.n_agents),
        );
        line(out, if self.masked { "        known = mask != NULL;" } else { "        known = 1;" });
        line(out, &format!("        for (i = 0; i < {}; ++i) {{", self.obs_width));
        line(out, &format!("            x[i] = obs[agent * {} + i];", self.obs_width));
        line(out, &format!("            if ({name}_is_nan(x[i])) {{ known = 0; }}\n        }}"));
        out.push_str(&body);
        let (heads, action_width, n_actions) = (self.output.heads(), self.action_width(), self.n_actions());
        let mut first = 0;
        for (head, n) in heads.iter().enumerate() {
            let end = first + n;
            line(out, "        j = -1;");
            line(out, &format!("        for (i = {first}; i < {end}; ++i) {{"));
            let flag = format!("mask[agent * {n_actions} + i]");
            line(
                out,
                &format!(
                    "            if ({name}_is_nan(x[i]) || (mask != NULL && {name}_is_nan({flag}))) {{ j = -1; break; }}"
                ),
            );
            line(out, &format!("            if (mask != NULL && {flag} <= 0.0f) {{ continue; }}"));
            line(out, "            if (j < 0 || x[i] > x[j]) { j = i; }\n        }");
            line(
                out,
                &format!(
                    "        action[agent * {action_width} + {head}] = (float)(j < 0 || !known ? -1 : j - {first});"
                ),
            );
            first = end;
        }
        let n_numbers = action_width - heads.len();
        if n_numbers > 0 {
            let from = if first == 0 { String::new() } else { format!("{first} + ") };
            let to = if heads.is_empty() { String::new() } else { format!("{} + ", heads.len()) };
            line(
                out,
                &format!(
                    "        for (i = 0; i < {n_numbers}; ++i) {{ action[agent * {action_width} + {to}i] = known ? x[{from}i] : NAN; }}"
                ),
            );
        }
        line(out, &format!("    }}\n}}\n\n#endif /* {upper}_H */"));
        Ok(text)
    }
}

/// Writes the constants of layers to `out` and their statements on `x`, with `y` beside it, to `body`. The names of constants begin with
/// `id`. `states` has the numbers that each layer remembers of a row; layers of groups remember nothing.
fn write_layers(out: &mut String, body: &mut String, id: &str, layers: &[Layer], widths: &[usize], states: &[usize]) {
    for (i, layer) in layers.iter().enumerate() {
        let (n, next) = (widths[i], widths[i + 1]);
        let mut array = |field: &str, values: &[f32]| {
            let array = format!("{id}_{i}_{field}");
            write_array(out, &array, values);
            array
        };
        // The numbers of an agent, or those of all.
        let own = |id: String, values: &[f32], n: usize| match values.len() == n {
            true => id,
            false => format!("({id} + agent * {n})"),
        };
        let each = |statement: String| format!("        for (i = 0; i < {n}; ++i) {{ {statement} }}\n");
        body.push_str(&match layer {
            Layer::Normalize { mean, deviation, clip } => {
                let [mean, mean_low] = high_and_low(mean);
                let [deviation, deviation_low] = high_and_low(deviation);
                let (mean, mean_low) = (array("mean", &mean), array("mean_low", &mean_low));
                let (deviation, deviation_low) = (array("deviation", &deviation), array("deviation_low", &deviation_low));
                let clip = number(*clip);
                // The order is right for a `double` of 32 bits too.
                let normal = format!("(((double)x[i] - {mean}[i]) - {mean_low}[i]) / ((double){deviation}[i] + {deviation_low}[i])");
                each(format!("x[i] = (float)({normal}); {}", limit(&format!("-{clip}"), &clip)))
            }
            Layer::Scale { factor, offset } => {
                let place = |values: &[f32]| if values.len() == 1 { "0" } else { "i" };
                let places = [place(factor), place(offset)];
                let (factor, offset) = (array("factor", factor), array("offset", offset));
                each(format!("x[i] = x[i] * {factor}[{}] + {offset}[{}];", places[0], places[1]))
            }
            Layer::Clip { low, high } => {
                let (low, high) = (array("low", low), array("high", high));
                each(limit(&format!("{low}[i]"), &format!("{high}[i]")))
            }
            Layer::Activation(function) => each(apply_function(*function, "x[i]")),
            Layer::Graph(network) => {
                let id = format!("{id}_{i}");
                graph::write(out, &id, network);
                format!("        {id}_scores(x, y);\n        for (i = 0; i < {next}; ++i) {{ x[i] = y[i]; }}\n")
            }
            Layer::Memory(memory) => {
                let place = memory::Place { first: states[..i].iter().sum(), n: states[i], all: states.iter().sum() };
                memory::write(out, &format!("{id}_{i}"), memory, n, place)
            }
            Layer::Image(layer) => {
                let id = format!("{id}_{i}");
                image::write(out, &id, layer);
                format!("        {id}_image(x, y);\n        for (i = 0; i < {next}; ++i) {{ x[i] = y[i]; }}\n")
            }
            Layer::Residual(layers) => {
                let id = format!("{id}_{i}");
                write_residual(out, &id, layers, n);
                format!("        {id}_residual(x, y);\n        for (i = 0; i < {n}; ++i) {{ x[i] = y[i]; }}\n")
            }
            Layer::Groups(groups) => {
                let id = format!("{id}_{i}");
                write_groups(out, &id, groups);
                format!("        {id}_groups(x, y);\n        for (i = 0; i < {next}; ++i) {{ x[i] = y[i]; }}\n")
            }
            Layer::Linear { weight, bias, .. } => {
                let (w, b) = (array("weight", weight), array("bias", bias));
                let (w, b) = (own(w, weight, n * next), own(b, bias, next));
                format!(
                    "        for (j = 0; j < {next}; ++j) {{ y[j] = {b}[j]; }}\n        \
                    for (i = 0; i < {n}; ++i) {{ for (j = 0; j < {next}; ++j) {{ y[j] += x[i] * {w}[i * {next} + j]; }} }}\n        \
                    for (j = 0; j < {next}; ++j) {{ x[j] = y[j]; }}\n"
                )
            }
        });
    }
}

/// Writes the constants of groups of columns and the function `ID_groups`, from a row to the results of all groups.
fn write_groups(out: &mut String, id: &str, groups: &Groups) {
    let widths = groups.widths();
    let (n_groups, width, result) = (groups.n_groups(), groups.width, widths[groups.layers.len()]);
    let widest = widths.iter().max().expect("there are the columns");
    write_indices(out, &format!("{id}_columns"), &groups.columns);
    let mut body = String::new();
    write_layers(out, &mut body, &format!("{id}_group"), &groups.layers, &widths, &[]);
    let text = format!(
        "static void {id}_groups(const float *row, float *result) {{\n    \
        float x[{widest}], y[{widest}];\n    int group, i, j;\n    (void)y; (void)j;\n    \
        for (group = 0; group < {n_groups}; ++group) {{\n        \
        for (i = 0; i < {width}; ++i) {{ x[i] = row[{id}_columns[group * {width} + i]]; }}\n\
        {body}        for (i = 0; i < {result}; ++i) {{ result[group * {result} + i] = x[i]; }}\n    }}\n}}\n\n"
    );
    out.push_str(&text);
}

/// Writes the constants of the layers of a residual and the function `ID_residual`, from a row of `width` columns to its sum with their result.
fn write_residual(out: &mut String, id: &str, layers: &[Layer], width: usize) {
    let widths = inner_widths(layers, width, "a residual").expect("the layers were checked");
    let widest = widths.iter().max().expect("there is the input");
    let mut body = String::new();
    write_layers(out, &mut body, &format!("{id}_inside"), layers, &widths, &[]);
    let text = format!(
        "static void {id}_residual(const float *row, float *result) {{\n    \
        float x[{widest}], y[{widest}];\n    int i, j;\n    (void)y; (void)j;\n    \
        for (i = 0; i < {width}; ++i) {{ x[i] = row[i]; }}\n\
        {body}    for (i = 0; i < {width}; ++i) {{ result[i] = row[i] + x[i]; }}\n}}\n\n"
    );
    out.push_str(&text);
}

/// A statement that limits `x[i]`; `fmaxf` and `fminf` would drop NaN.
fn limit(low: &str, high: &str) -> String {
    format!("x[i] = x[i] < {low} ? {low} : x[i] > {high} ? {high} : x[i];")
}

/// A statement that applies a function to `x`.
fn apply_function(function: Function, x: &str) -> String {
    match function {
        Function::Tanh => format!("{x} = tanhf({x});"),
        Function::Relu => format!("{x} = {x} < 0.0f ? 0.0f : {x};"),
        Function::LeakyRelu(slope) => format!("{x} = {x} < 0.0f ? {} * {x} : {x};", number(slope)),
        Function::Elu => format!("{x} = {x} > 0.0f ? {x} : expm1f({x});"),
    }
}

fn write_array(out: &mut String, id: &str, values: &[f32]) {
    write!(out, "static const float {id}[{}] = {{", values.len()).expect("a string can be written");
    for (i, value) in values.iter().enumerate() {
        let separator = if i % 8 == 0 { "\n    " } else { " " };
        write!(out, "{separator}{},", number(*value)).expect("a string can be written");
    }
    out.push_str("\n};\n");
}

fn write_indices(out: &mut String, id: &str, values: &[usize]) {
    let _ = write!(out, "static const int {id}[{}] = {{", values.len());
    for (i, value) in values.iter().enumerate() {
        let _ = write!(out, "{}{value},", if i % 16 == 0 { "\n    " } else { " " });
    }
    out.push_str("\n};\n");
}

/// A number with all its digits as C writes it.
fn number(value: f32) -> String {
    match value {
        f32::INFINITY => "INFINITY".into(),
        f32::NEG_INFINITY => "-INFINITY".into(),
        value => format!("{value:?}f"),
    }
}
