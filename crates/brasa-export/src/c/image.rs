//! Layers on images in C.

use super::write_array;
use crate::{ImageLayer, ImageShape, Window};

/// Writes the constants of a layer and the function `ID_image`, from a row to the result.
pub(super) fn write(out: &mut String, id: &str, layer: &ImageLayer) {
    let (input, output) = (layer.input(), layer.output());
    let (template, window) = match layer {
        ImageLayer::ChannelsFirst(_) => (CHANNELS_FIRST, Window { size: 1, stride: 1, padding: 0 }),
        ImageLayer::Convolution { window, weight, bias, .. } => {
            write_array(out, &format!("{id}_weight"), weight);
            write_array(out, &format!("{id}_bias"), bias);
            (CONVOLUTION, *window)
        }
        ImageLayer::MaxPool { window, .. } => (MAX_POOL, *window),
    };
    let ImageShape { channels, height, width } = input;
    let marks = [
        ("id", id.to_owned()),
        ("channels", channels.to_string()),
        ("height", height.to_string()),
        ("width", width.to_string()),
        ("filters", output.channels.to_string()),
        ("rows", output.height.to_string()),
        ("columns", output.width.to_string()),
        ("size", window.size.to_string()),
        ("stride", window.stride.to_string()),
        ("padding", window.padding.to_string()),
    ];
    let fill = |text: String, (mark, value): (&str, String)| text.replace(&format!("@{mark}@"), &value);
    out.push_str(&marks.into_iter().fold(template.to_owned(), fill));
}

const CHANNELS_FIRST: &str = "static void @id@_image(const float *x, float *y) {
    int c, i;
    for (c = 0; c < @channels@; ++c) {
        for (i = 0; i < @height@ * @width@; ++i) { y[c * @height@ * @width@ + i] = x[i * @channels@ + c]; }
    }
}

";
const CONVOLUTION: &str = "static void @id@_image(const float *x, float *y) {
    int f, c, r, s, i, j;
    for (f = 0; f < @filters@; ++f) { for (r = 0; r < @rows@; ++r) { for (s = 0; s < @columns@; ++s) {
        float sum = @id@_bias[f];
        for (c = 0; c < @channels@; ++c) { for (i = 0; i < @size@; ++i) { for (j = 0; j < @size@; ++j) {
            int v = r * @stride@ + i - @padding@, u = s * @stride@ + j - @padding@;
            if (v < 0 || v >= @height@ || u < 0 || u >= @width@) { continue; }
            sum += x[(c * @height@ + v) * @width@ + u] * @id@_weight[((f * @channels@ + c) * @size@ + i) * @size@ + j];
        } } }
        y[(f * @rows@ + r) * @columns@ + s] = sum;
    } } }
}

";
const MAX_POOL: &str = "static void @id@_image(const float *x, float *y) {
    int c, r, s, i, j;
    for (c = 0; c < @channels@; ++c) { for (r = 0; r < @rows@; ++r) { for (s = 0; s < @columns@; ++s) {
        float most = -INFINITY;
        for (i = 0; i < @size@; ++i) { for (j = 0; j < @size@; ++j) {
            int v = r * @stride@ + i - @padding@, u = s * @stride@ + j - @padding@;
            if (v < 0 || v >= @height@ || u < 0 || u >= @width@) { continue; }
            if (x[(c * @height@ + v) * @width@ + u] > most) { most = x[(c * @height@ + v) * @width@ + u]; }
        } }
        y[(c * @rows@ + r) * @columns@ + s] = most;
    } } }
}

";
