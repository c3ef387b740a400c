//! Layers on images.

/// The size of an image.
///
/// ```
/// use brasa_export::ImageShape;
///
/// let image = ImageShape { channels: 3, height: 84, width: 84 };
/// assert_eq!(image.columns(), Some(21_168));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageShape {
    /// Number of channels.
    pub channels: usize,
    /// Rows of pixels.
    pub height: usize,
    /// Columns of pixels.
    pub width: usize,
}

/// Where a window stands on an image.
///
/// ```
/// use brasa_export::{ImageShape, Window};
///
/// // The first convolution of DQN on Atari.
/// let window = Window { size: 8, stride: 4, padding: 0 };
/// let image = ImageShape { channels: 4, height: 84, width: 84 };
/// assert_eq!(window.on(image), Some((20, 20)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Height and width, in pixels.
    pub size: usize,
    /// Pixels between two places.
    pub stride: usize,
    /// Pixels around the image.
    pub padding: usize,
}

/// A layer on rows that are images. An image has its channels outermost, and its pixels row by row.
///
/// ```
/// use brasa_export::{ExportedPolicy, ImageLayer, ImageShape, Layer, Output, Window};
///
/// # let policy = |obs_width, layers, output| ExportedPolicy {
/// #     obs_width, n_agents: 1, masked: false, layers, output, about: brasa_export::About::default(),
/// # };
/// let input = ImageShape { channels: 1, height: 2, width: 3 };
/// let window = Window { size: 2, stride: 1, padding: 0 };
/// // The largest number of each square.
/// let layers = vec![Layer::Image(ImageLayer::MaxPool { input, window })];
/// let policy: ExportedPolicy = policy(6, layers, Output::Real);
/// assert_eq!(policy.act(&[1.0, 2.0, 3.0, 6.0, 5.0, 4.0], None), [6.0, 5.0]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum ImageLayer {
    /// From an image with its channels innermost, of this size.
    ChannelsFirst(ImageShape),
    /// A convolution with zeros around the image.
    Convolution {
        /// The image.
        input: ImageShape,
        /// The kernel.
        window: Window,
        /// `[filters, channels, size, size]`.
        weight: Vec<f32>,
        /// `[filters]`.
        bias: Vec<f32>,
    },
    /// The largest number of each place of a window.
    MaxPool {
        /// The image.
        input: ImageShape,
        /// The window.
        window: Window,
    },
}

impl ImageShape {
    /// Numbers of an image; `None` if there are more than can be counted.
    pub fn columns(self) -> Option<usize> {
        self.channels.checked_mul(self.height)?.checked_mul(self.width)
    }
}

impl Window {
    /// Height and width of the result on an image; `None` if the window has no place on it.
    pub fn on(self, image: ImageShape) -> Option<(usize, usize)> {
        let places = |pixels: usize| {
            let padded = pixels.checked_add(self.padding.checked_mul(2)?)?;
            Some(padded.checked_sub(self.size)?.checked_div(self.stride)? + 1)
        };
        (self.size > 0).then_some((places(image.height)?, places(image.width)?))
    }
}

impl ImageLayer {
    /// The image of the input.
    pub(crate) fn input(&self) -> ImageShape {
        match self {
            Self::ChannelsFirst(input) | Self::Convolution { input, .. } | Self::MaxPool { input, .. } => *input,
        }
    }

    /// The image of the result.
    ///
    /// # Panics
    /// If the window has no place on the image: the layer was checked.
    pub fn output(&self) -> ImageShape {
        let on = |window: &Window, input| window.on(input).expect("the layer was checked");
        match self {
            Self::ChannelsFirst(input) => *input,
            Self::Convolution { input, window, bias, .. } => {
                let (height, width) = on(window, *input);
                ImageShape { channels: bias.len(), height, width }
            }
            Self::MaxPool { input, window } => {
                let (height, width) = on(window, *input);
                ImageShape { height, width, ..*input }
            }
        }
    }

    /// Width of the result for an input of `width`.
    pub(crate) fn result(&self, width: usize) -> Result<usize, String> {
        let input = self.input();
        if input.columns() != Some(width) {
            let ImageShape { channels, height, width: columns } = input;
            return Err(format!("an image of {channels} x {height} x {columns} does not have {width} numbers"));
        }
        let window = match self {
            Self::ChannelsFirst(_) => return Ok(width),
            Self::Convolution { window, .. } | Self::MaxPool { window, .. } => *window,
        };
        let Window { size, stride, padding } = window;
        if window.on(input).is_none() || size == 0 {
            return Err(format!(
                "`window` of {size} with stride {stride} and padding {padding} does not fit the image"
            ));
        }
        match self {
            Self::Convolution { weight, bias, .. } => {
                let expected =
                    [bias.len(), input.channels, size, size].iter().try_fold(1usize, |n, d| n.checked_mul(*d));
                if bias.is_empty() || expected != Some(weight.len()) {
                    let (filters, n) = (bias.len(), weight.len());
                    return Err(format!(
                        "`weight` must have {filters} x {} x {size} x {size} numbers, got {n}",
                        input.channels
                    ));
                }
            }
            // A place without a pixel has no largest one.
            _ if padding >= size => return Err(format!("`padding` must be below {size}, got {padding}")),
            _ => {}
        }
        self.output().columns().ok_or_else(|| "the image of the result is too large".into())
    }

    /// Checks that all numbers are finite.
    pub(crate) fn check_numbers(&self) -> Result<(), String> {
        match self {
            Self::Convolution { weight, bias, .. } => crate::policy::all_finite(&[("weight", weight), ("bias", bias)]),
            Self::ChannelsFirst(_) | Self::MaxPool { .. } => Ok(()),
        }
    }

    /// The layer on one image.
    pub(crate) fn forward(&self, x: &[f32], y: &mut Vec<f32>) {
        let (input, output) = (self.input(), self.output());
        let pixels = input.height * input.width;
        match self {
            Self::ChannelsFirst(_) => {
                y.extend((0..x.len()).map(|i| x[i % pixels * input.channels + i / pixels]));
            }
            Self::Convolution { window, weight, bias, .. } => {
                let area = window.size * window.size;
                for (filter, bias) in bias.iter().enumerate() {
                    let weight = &weight[filter * input.channels * area..(filter + 1) * input.channels * area];
                    y.extend(places(input, output, *window).map(|place| {
                        let terms = place.map(|(pixel, at)| {
                            (0..input.channels).map(|c| x[c * pixels + pixel] * weight[c * area + at]).sum::<f32>()
                        });
                        bias + terms.sum::<f32>()
                    }));
                }
            }
            Self::MaxPool { window, .. } => {
                for channel in x.chunks_exact(pixels) {
                    let largest = |most: f32, x: f32| if x > most || x.is_nan() { x } else { most };
                    y.extend(
                        places(input, output, *window)
                            .map(|place| place.map(|(pixel, _)| channel[pixel]).fold(f32::NEG_INFINITY, largest)),
                    );
                }
            }
        }
    }
}

/// The places of a window, each with its pixels within the image and their indices in the window.
fn places(
    input: ImageShape,
    output: ImageShape,
    window: Window,
) -> impl Iterator<Item = impl Iterator<Item = (usize, usize)>> {
    let Window { size, stride, padding } = window;
    (0..output.height * output.width).map(move |place| {
        let (top, left) = (place / output.width * stride, place % output.width * stride);
        (0..size * size).filter_map(move |at| {
            let y = (top + at / size).checked_sub(padding).filter(|y| *y < input.height)?;
            let x = (left + at % size).checked_sub(padding).filter(|x| *x < input.width)?;
            Some((y * input.width + x, at))
        })
    })
}
