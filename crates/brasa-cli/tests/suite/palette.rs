//! The colors of pages: told apart by everyone, and readable.
#![allow(clippy::expect_used)]

const STYLE: &str = include_str!("../../../brasa-experiment/assets/page.css");
/// Smallest distance in CIELAB of two series, of all who see them.
const LEAST_DISTANCE: f64 = 18.0;

type Rgb = [f64; 3];

/// Both colors of a variable: by day and by night, linear from 0 to 1.
fn variable(name: &str) -> [Rgb; 2] {
    let (_, rest) = STYLE.split_once(&format!("--{name}: light-dark(")).expect("the style has the variable");
    let (pair, _) = rest.split_once(')').expect("a pair");
    let color = |text: &str| {
        let digits = text.trim().trim_start_matches('#');
        [0, 2, 4].map(|i| {
            let value = f64::from(u8::from_str_radix(&digits[i..i + 2], 16).expect("hexadecimal")) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    };
    let (day, night) = pair.split_once(',').expect("two colors");
    [color(day), color(night)]
}

/// Machado, Oliveira and Fernandes 2009, severity 1: protanopia, deuteranopia, tritanopia.
const SEEN: [[[f64; 3]; 3]; 3] = [
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
];

fn seen(color: Rgb, by: &[[f64; 3]; 3]) -> Rgb {
    by.map(|row| row.iter().zip(color).map(|(a, b)| a * b).sum::<f64>().clamp(0.0, 1.0))
}

fn lab([r, g, b]: Rgb) -> Rgb {
    let x = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047;
    let y = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    let z = (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883;
    let [x, y, z] = [x, y, z].map(|t| if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 });
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

fn distance(a: Rgb, b: Rgb) -> f64 {
    let (a, b) = (lab(a), lab(b));
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// WCAG 2.
fn contrast(a: Rgb, b: Rgb) -> f64 {
    let luminance = |[r, g, b]: Rgb| 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    let (a, b) = (luminance(a), luminance(b));
    a.max(b) / a.min(b)
}

#[test]
fn series_differ_for_the_color_blind() {
    let all: Vec<[Rgb; 2]> = (0..8).map(|i| variable(&format!("c{i}"))).collect();
    for (mode, when) in ["day", "night"].into_iter().enumerate() {
        for (i, a) in all.iter().enumerate() {
            for (j, b) in all.iter().enumerate().skip(i + 1) {
                let plain = distance(a[mode], b[mode]);
                let blind = SEEN.iter().map(|by| distance(seen(a[mode], by), seen(b[mode], by)));
                let least = blind.fold(plain, f64::min);
                assert!(least >= LEAST_DISTANCE, "c{i} and c{j} by {when}: {least:.1}");
            }
        }
    }
    // The measure fails for red and green of the same lightness.
    let (red, green) = ([0.5, 0.02, 0.02], [0.02, 0.16, 0.02]);
    assert!(distance(seen(red, &SEEN[1]), seen(green, &SEEN[1])) < LEAST_DISTANCE && distance(red, green) > 60.0);
}

#[test]
fn text_and_lines_stand_out_from_the_paper() {
    let papers = [variable("paper"), variable("shade")];
    for (mode, when) in ["day", "night"].into_iter().enumerate() {
        for paper in papers {
            for name in ["ink", "soft", "ember", "bad"] {
                let found = contrast(variable(name)[mode], paper[mode]);
                assert!(found >= 4.5, "--{name} by {when}: {found:.2}");
            }
        }
        for i in 0..8 {
            let found = contrast(variable(&format!("c{i}"))[mode], papers[0][mode]);
            assert!(found >= 3.0, "--c{i} by {when}: {found:.2}");
        }
        assert!(contrast(variable("on-ember")[mode], variable("ember")[mode]) >= 4.5);
    }
}
