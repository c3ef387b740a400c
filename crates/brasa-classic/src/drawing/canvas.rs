//! Shapes in the coordinates of a task, on a light ground.

use brasa_env::{Frame, InvalidField};
use tiny_skia::{Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Stroke, Transform};

/// A point in the units of a task; y grows upward.
pub(crate) type Point = (f32, f32);

/// Red, green and blue.
pub(crate) type Rgb = [u8; 3];

const PAPER: Rgb = [0xff, 0xff, 0xff];
pub(crate) const INK: Rgb = [0x22, 0x25, 0x2b];
pub(crate) const SOFT: Rgb = [0x8a, 0x92, 0x9e];
pub(crate) const LINE: Rgb = [0xd9, 0xdc, 0xe1];
pub(crate) const EMBER: Rgb = [0xc2, 0x41, 0x0c];

/// Width of arrows, in pixels.
const ARROW: f32 = 3.0;

/// A picture that is drawn.
pub(crate) struct Canvas {
    pixmap: Pixmap,
    /// From the units of a task to pixels.
    scale: f32,
    origin: Point,
}

impl Canvas {
    /// An empty canvas of `width` and `height` pixels. The origin of the task is at the pixel `origin`, with `scale` pixels per unit.
    ///
    /// # Panics
    /// If width or height is 0.
    pub fn new(width: u32, height: u32, scale: f32, origin: Point) -> Self {
        let mut pixmap = Pixmap::new(width, height).expect("a canvas has pixels");
        let [red, green, blue] = PAPER;
        pixmap.fill(Color::from_rgba8(red, green, blue, 255));
        Self { pixmap, scale, origin }
    }

    /// The picture.
    pub fn into_frame(self) -> Result<Frame, InvalidField> {
        let (pixels, _) = self.pixmap.data().as_chunks();
        let rgb: Vec<[u8; 3]> = pixels.iter().map(|[red, green, blue, _]| [*red, *green, *blue]).collect();
        Frame::new(self.pixmap.width(), self.pixmap.height(), rgb.into_flattened())
    }

    /// A line through `points`, `width` pixels wide, with round ends.
    pub fn line(&mut self, points: &[Point], width: f32, color: Rgb) {
        let stroke = Stroke { width, line_cap: LineCap::Round, line_join: LineJoin::Round, ..Stroke::default() };
        if let Some(path) = self.path(points, false) {
            self.pixmap.stroke_path(&path, &paint(color), &stroke, Transform::identity(), None);
        }
    }

    /// The area inside `points`.
    pub fn polygon(&mut self, points: &[Point], color: Rgb) {
        if let Some(path) = self.path(points, true) {
            self.fill(&path, color);
        }
    }

    /// A circle and its inside.
    pub fn disk(&mut self, center: Point, radius: f32, color: Rgb) {
        let (x, y) = self.pixel(center);
        if let Some(path) = PathBuilder::from_circle(x, y, radius * self.scale) {
            self.fill(&path, color);
        }
    }

    /// A line through `points` with a head at its end.
    pub fn arrow(&mut self, points: &[Point], color: Rgb) {
        let [.., before, end] = points else { return };
        self.line(points, ARROW, color);
        let (dx, dy) = (end.0 - before.0, end.1 - before.1);
        let length = dx.hypot(dy);
        if length == 0.0 {
            return;
        }
        // The head has a size in pixels.
        let size = 9.0 / self.scale;
        let (dx, dy) = (size * dx / length, size * dy / length);
        let side = |sign: f32| (end.0 - dx * 0.4 + sign * dy * 0.7, end.1 - dy * 0.4 - sign * dx * 0.7);
        self.polygon(&[(end.0 + dx * 0.9, end.1 + dy * 0.9), side(1.0), side(-1.0)], color);
    }

    fn fill(&mut self, path: &Path, color: Rgb) {
        self.pixmap.fill_path(path, &paint(color), FillRule::Winding, Transform::identity(), None);
    }

    fn pixel(&self, (x, y): Point) -> Point {
        (self.origin.0 + x * self.scale, self.origin.1 - y * self.scale)
    }

    /// `None` where nothing can be drawn, such as through points that are not finite.
    fn path(&self, points: &[Point], closed: bool) -> Option<Path> {
        let (first, others) = points.split_first()?;
        let mut path = PathBuilder::new();
        let (x, y) = self.pixel(*first);
        path.move_to(x, y);
        for point in others {
            let (x, y) = self.pixel(*point);
            path.line_to(x, y);
        }
        if closed {
            path.close();
        }
        path.finish()
    }
}

fn paint(color: Rgb) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(color[0], color[1], color[2], 255);
    paint
}
