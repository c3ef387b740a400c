//! Convolutional networks on observations that are images.

use brasa_core::env::{BoxSpace, Space, field};
use brasa_core::export::{Function, ImageLayer, ImageShape, Layer, Window};
use burn::module::Module;
use burn::nn::PaddingConfig2d;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::exported::numbers;
use crate::{Init, NnError, initialized};

/// The layers of a [`Cnn`].
///
/// ```
/// use brasa_nn::CnnLayers;
///
/// #[derive(serde::Deserialize)]
/// struct Table {
///     layers: CnnLayers,
/// }
///
/// let table: Table = serde_json::from_str(r#"{ "layers": { "residual": [8, 16] } }"#)?;
/// assert_eq!(table.layers, CnnLayers::Residual(vec![8, 16]));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CnnLayers {
    /// The default: the three convolutions of DQN on Atari (Mnih et al. 2015), for images of at least 36 x 36.
    #[default]
    Nature,
    /// The residual network of IMPALA with 16, 32 and 32 channels (Espeholt et al. 2018).
    Impala,
    /// Convolutions, each followed by a rectifier.
    Convolutions(Vec<ConvolutionConfig>),
    /// The residual network of IMPALA with a sequence of layers for each of these numbers of channels. Each sequence halves the image.
    Residual(Vec<usize>),
}

/// One convolution.
///
/// ```
/// use brasa_nn::ConvolutionConfig;
///
/// let convolution: ConvolutionConfig = serde_json::from_str(r#"{ "filters": 16, "kernel": 3 }"#)?;
/// assert_eq!((convolution.stride, convolution.padding), (1, 0));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionConfig {
    /// Number of channels of the result.
    pub filters: usize,
    /// Height and width of the kernel, in pixels.
    pub kernel: usize,
    /// Pixels between two places of the kernel. Default 1.
    #[serde(default = "one")]
    pub stride: usize,
    /// Zeros around the image, in pixels. Default 0.
    #[serde(default)]
    pub padding: usize,
}

fn one() -> usize {
    1
}

/// Which dimension of an image counts its channels.
///
/// ```
/// use brasa_nn::{CnnQNetworkConfig, Channels};
///
/// assert_eq!(CnnQNetworkConfig::default().channels, Channels::Auto);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Channels {
    /// The default: the smaller one of the first and the last dimension.
    #[default]
    Auto,
    /// `[channels, height, width]`.
    First,
    /// `[height, width, channels]`.
    Last,
}

/// How rows of numbers are read as images.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Image {
    height: usize,
    width: usize,
    channels: usize,
    is_last: bool,
    /// Lower bound and range of all pixels, which become 0 to 1; `None` for images without such bounds.
    bounds: Option<(f32, f32)>,
}

impl Image {
    fn of(space: &Space, channels: Channels) -> Result<Self, NnError> {
        let fail = |got: String| {
            let rule = "a convolutional network needs observations with the shape of an image, as `Space::image` has";
            Err(NnError::Space(format!("{rule}; got {got}")))
        };
        let Space::Box(BoxSpace { low, high, shape, .. }) = space else { return fail("choices".into()) };
        let [first, middle, last] = shape[..] else { return fail(format!("the shape {shape:?}")) };
        let is_last = match channels {
            Channels::Auto => last <= first,
            Channels::First => false,
            Channels::Last => true,
        };
        let (height, width, channels) = if is_last { (first, middle, last) } else { (middle, last, first) };
        let (least, most) = (low[0], high[0]);
        let is_uniform = low.iter().all(|x| *x == least) && high.iter().all(|x| *x == most);
        let range = most - least;
        let bounds = (is_uniform && range.is_finite() && range > 0.0).then_some((least, range));
        Ok(Self { height, width, channels, is_last, bounds })
    }

    /// `[n_rows, channels, height, width]`, from 0 to 1.
    fn read(&self, rows: Tensor<2>) -> Tensor<4> {
        let [n_rows, _] = rows.dims();
        let rows = match self.bounds {
            None | Some((0.0, 1.0)) => rows,
            Some((0.0, range)) => rows / range,
            Some((least, range)) => (rows - least) / range,
        };
        match self.is_last {
            true => rows.reshape([n_rows, self.height, self.width, self.channels]).permute([0, 3, 1, 2]),
            false => rows.reshape([n_rows, self.channels, self.height, self.width]),
        }
    }
}

/// The convolutions of a network on images.
///
/// ```
/// use brasa_core::env::{Space, named_rng};
/// use brasa_nn::{Channels, Cnn, CnnLayers};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let rng = &mut named_rng(0, "example", 0);
/// let cnn = Cnn::new(&CnnLayers::Nature, Channels::Auto, &Space::image(84, 84, 4), true, &device, rng)?;
/// let features = cnn.forward(Tensor::full([2, 84 * 84 * 4], 255.0, &device));
/// assert_eq!(features.dims(), [2, 64 * 7 * 7]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct Cnn {
    convolutions: Vec<Conv2d>,
    residual: Vec<Sequence>,
    #[module(skip)]
    image: Image,
    #[module(skip)]
    outputs: usize,
}

/// A convolution, a pool that halves the image, and two residual blocks.
#[derive(Module, Debug)]
struct Sequence {
    first: Conv2d,
    pool: MaxPool2d,
    blocks: Vec<Block>,
}

#[derive(Module, Debug)]
struct Block {
    first: Conv2d,
    second: Conv2d,
}

impl Block {
    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let inside = self.second.forward(relu(self.first.forward(relu(x.clone()))));
        x + inside
    }
}

impl Sequence {
    fn new(inputs: usize, outputs: usize, device: &Device) -> Self {
        let block = || Block { first: same(outputs, outputs, device), second: same(outputs, outputs, device) };
        let pool = MaxPool2dConfig::new([3, 3]).with_strides([2, 2]).with_padding(around(1)).init();
        Self { first: same(inputs, outputs, device), pool, blocks: vec![block(), block()] }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        self.blocks.iter().fold(self.pool.forward(self.first.forward(x)), |x, block| block.forward(x))
    }
}

fn around(pixels: usize) -> PaddingConfig2d {
    PaddingConfig2d::Explicit(pixels, pixels, pixels, pixels)
}

/// A convolution of 3 x 3 pixels that keeps the size of the image.
fn same(inputs: usize, outputs: usize, device: &Device) -> Conv2d {
    Conv2dConfig::new([inputs, outputs], [3, 3]).with_padding(around(1)).init(device)
}

impl Cnn {
    /// Convolutions for images of `obs_space`, with initial weights from `rng`: orthogonal with gain sqrt(2), or PyTorch's default.
    ///
    /// # Errors
    /// [`NnError::Space`] if the observations are not images; [`NnError::Field`] for a convolution without filters or larger than its image.
    pub fn new(
        layers: &CnnLayers,
        channels: Channels,
        obs_space: &Space,
        orthogonal: bool,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, NnError> {
        let image = Image::of(obs_space, channels)?;
        let convolution = |filters, kernel, stride| ConvolutionConfig { filters, kernel, stride, padding: 0 };
        let (convolutions, depths) = match layers {
            CnnLayers::Nature => (vec![convolution(32, 8, 4), convolution(64, 4, 2), convolution(64, 3, 1)], vec![]),
            CnnLayers::Impala => (vec![], vec![16, 32, 32]),
            CnnLayers::Convolutions(convolutions) => (convolutions.clone(), vec![]),
            CnnLayers::Residual(depths) => (vec![], depths.clone()),
        };
        let n_layers = convolutions.len() + depths.len();
        field::rule(n_layers > 0, "layers", "must have at least one convolution", "none")?;
        let (mut size, mut depth) = ([image.height, image.width], image.channels);
        let mut plain = Vec::new();
        for ConvolutionConfig { filters, kernel, stride, padding } in convolutions {
            let positive = filters > 0 && kernel > 0 && stride > 0;
            let value = format!("{filters} filters of {kernel} with stride {stride}");
            field::rule(positive, "layers", "must have filters, kernels and strides of at least 1", value)?;
            let [height, width] = size.map(|pixels| pixels + 2 * padding);
            let rule = format!("must have kernels of at most {height} x {width}, the image at that layer");
            field::rule(kernel <= height.min(width), "layers", rule, kernel)?;
            size = [height, width].map(|pixels| (pixels - kernel) / stride + 1);
            let config = Conv2dConfig::new([depth, filters], [kernel, kernel]).with_stride([stride, stride]);
            plain.push(config.with_padding(around(padding)).init(device));
            depth = filters;
        }
        let mut residual = Vec::new();
        for filters in depths {
            field::rule(filters > 0, "layers", "must have at least one channel", filters)?;
            residual.push(Sequence::new(depth, filters, device));
            size = size.map(|pixels| pixels.div_ceil(2));
            depth = filters;
        }
        let outputs = depth * size[0] * size[1];
        let init = if orthogonal { Init::Orthogonal(2f64.sqrt()) } else { Init::FanIn };
        Ok(initialized(Self { convolutions: plain, residual, image, outputs }, init, rng))
    }

    /// Numbers of a row of features.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Numbers of a row of observations.
    pub fn inputs(&self) -> usize {
        self.image.height * self.image.width * self.image.channels
    }

    /// The features of images.
    ///
    /// # Shapes
    /// - `rows`: `[n_rows, inputs]`, each row an image with the last dimension of its shape innermost
    /// - output: `[n_rows, outputs]`
    pub fn forward(&self, rows: Tensor<2>) -> Tensor<2> {
        let image = self.image.read(rows);
        let image = self.convolutions.iter().fold(image, |x, layer| relu(layer.forward(x)));
        let image = self.residual.iter().fold(image, |x, layers| layers.forward(x));
        let features: Tensor<2> = image.flatten(1, 3);
        if self.residual.is_empty() { features } else { relu(features) }
    }

    /// The layers in exported policies.
    pub fn exported(&self) -> Vec<Layer> {
        let Image { height, width, channels, .. } = self.image;
        let mut images = Images { size: ImageShape { channels, height, width }, list: Vec::new() };
        if let Some((least, range)) = self.image.bounds.filter(|bounds| *bounds != (0.0, 1.0)) {
            images.list.push(Layer::Scale { factor: vec![1.0 / range], offset: vec![-least / range] });
        }
        if self.image.is_last {
            images.list.push(Layer::Image(ImageLayer::ChannelsFirst(images.size)));
        }
        for convolution in &self.convolutions {
            images.convolution(convolution);
            images.relu();
        }
        for Sequence { first, blocks, .. } in &self.residual {
            images.convolution(first);
            // As `Sequence::new`.
            let window = Window { size: 3, stride: 2, padding: 1 };
            images.push(ImageLayer::MaxPool { input: images.size, window });
            for Block { first, second } in blocks {
                let mut inside = Images { size: images.size, list: Vec::new() };
                for layer in [first, second] {
                    inside.relu();
                    inside.convolution(layer);
                }
                images.list.push(Layer::Residual(inside.list));
            }
        }
        if !self.residual.is_empty() {
            images.relu();
        }
        images.list
    }
}

/// Exported layers on images, with the size of the last image.
struct Images {
    size: ImageShape,
    list: Vec<Layer>,
}

impl Images {
    fn relu(&mut self) {
        self.list.push(Layer::Activation(Function::Relu));
    }

    fn convolution(&mut self, layer: &Conv2d) {
        let [filters, _, size, _] = layer.weight.dims();
        let padding = match layer.padding {
            PaddingConfig2d::Explicit(pixels, ..) => pixels,
            _ => 0,
        };
        let window = Window { size, stride: layer.stride[0], padding };
        let bias = layer.bias.as_ref().map_or(vec![0.0; filters], |bias| numbers(bias.val()));
        self.push(ImageLayer::Convolution { input: self.size, window, weight: numbers(layer.weight.val()), bias });
    }

    fn push(&mut self, layer: ImageLayer) {
        self.size = layer.output();
        self.list.push(Layer::Image(layer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_core::env::named_rng;
    use brasa_core::read_back;

    fn cnn(layers: &CnnLayers, channels: Channels, space: &Space) -> Result<Cnn, NnError> {
        Cnn::new(layers, channels, space, true, &brasa_test::device(), &mut named_rng(0, "test", 0))
    }

    /// An image with channels first and the one with channels last have equal features, whatever the range of the pixels.
    #[test]
    fn images_are_read_in_both_orders_and_scaled() {
        let device = brasa_test::device();
        let layers = CnnLayers::Convolutions(vec![ConvolutionConfig { filters: 3, kernel: 2, stride: 1, padding: 1 }]);
        let (height, width, channels) = (4, 5, 2);
        let pixel = |y: usize, x: usize, c: usize| ((y * 7 + x * 3 + c * 11) % 13) as f32 * 10.0;
        let mut last = vec![0.0; height * width * channels];
        let mut first = last.clone();
        for (y, x, c) in (0..height).flat_map(|y| (0..width).flat_map(move |x| (0..channels).map(move |c| (y, x, c)))) {
            last[(y * width + x) * channels + c] = pixel(y, x, c);
            first[(c * height + y) * width + x] = pixel(y, x, c);
        }
        let features = |space: &Space, numbers: &[f32]| {
            let network = cnn(&layers, Channels::Auto, space).expect("it fits");
            let rows = Tensor::<1>::from_floats(numbers, &device).unsqueeze();
            read_back(network.forward(rows))
        };
        let expected = features(&Space::image(height, width, channels), &last);
        assert_eq!(expected.len(), 3 * 5 * 6);
        assert_eq!(features(&Space::shaped(0.0, 255.0, [channels, height, width]), &first), expected);
        let shifted: Vec<f32> = last.iter().map(|x| x - 100.0).collect();
        let close = features(&Space::shaped(-100.0, 155.0, [height, width, channels]), &shifted);
        assert!(close.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5));
    }

    #[test]
    fn residual_networks_halve_the_image_in_each_sequence() {
        let device = brasa_test::device();
        let network = cnn(&CnnLayers::Impala, Channels::Auto, &Space::image(13, 10, 3)).expect("it fits");
        assert_eq!((network.inputs(), network.outputs()), (390, 32 * 2 * 2));
        assert_eq!(network.forward(Tensor::zeros([2, 390], &device)).dims(), [2, 128]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let message = |layers, space: &Space| cnn(&layers, Channels::Auto, space).expect_err("no fit").to_string();
        let vector = Space::uniform_box(0.0, 1.0, ["a", "b"]);
        assert!(message(CnnLayers::Nature, &vector).contains("the shape of an image"));
        let small = message(CnnLayers::Nature, &Space::image(20, 20, 1));
        assert_eq!(small, "`layers` must have kernels of at most 1 x 1, the image at that layer, got 3");
    }
}
