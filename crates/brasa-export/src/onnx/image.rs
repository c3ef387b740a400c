//! Layers on images in ONNX.

use super::{Graph, ints_attribute};
use crate::{ImageLayer, ImageShape, Window};

impl ImageLayer {
    /// Adds the layer on rows `x` of `n_agents` each; the name of its result.
    pub(super) fn add_to(&self, graph: &mut Graph, x: &str, n_agents: usize) -> String {
        let (ImageShape { channels, height, width }, output) = (self.input(), self.output());
        let reshaped = |graph: &mut Graph, x: &str, dims: &[usize]| {
            let dims: Vec<i64> = std::iter::once(-1).chain(dims.iter().map(|dim| *dim as i64)).collect();
            let shape = graph.ints(&dims);
            graph.node("Reshape", &[x, &shape], vec![])
        };
        let of_window = |Window { size, stride, padding }: Window| {
            let [size, stride, padding] = [size, stride, padding].map(|n| n as i64);
            vec![
                ints_attribute("kernel_shape", &[size; 2]),
                ints_attribute("strides", &[stride; 2]),
                ints_attribute("pads", &[padding; 4]),
            ]
        };
        let y = match self {
            Self::ChannelsFirst(_) => {
                let image = reshaped(graph, x, &[height, width, channels]);
                graph.node("Transpose", &[&image], vec![ints_attribute("perm", &[0, 3, 1, 2])])
            }
            Self::Convolution { window, weight, bias, .. } => {
                let image = reshaped(graph, x, &[channels, height, width]);
                let weight = graph.floats(&[bias.len(), channels, window.size, window.size], weight);
                let bias = graph.floats(&[bias.len()], bias);
                graph.node("Conv", &[&image, &weight, &bias], of_window(*window))
            }
            Self::MaxPool { window, .. } => {
                let image = reshaped(graph, x, &[channels, height, width]);
                graph.node("MaxPool", &[&image], of_window(*window))
            }
        };
        let columns = output.columns().expect("the layer was checked");
        match n_agents {
            1 => reshaped(graph, &y, &[columns]),
            n => reshaped(graph, &y, &[n, columns]),
        }
    }
}
