//! Videos of a policy.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;
use std::io::Cursor;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use common::page::{SMALL, train, train_rendered_gymnasium};
use common::{arg, run, succeed};
use serde_json::Value;

/// The size, the whole pictures as RGB and the delays in ms of a GIF.
fn gif(bytes: &[u8]) -> ((usize, usize), Vec<Vec<u8>>, Vec<u64>) {
    let mut options = gif::DecodeOptions::new();
    options.set_color_output(gif::ColorOutput::RGBA);
    let mut decoder = options.read_info(bytes).expect("it is a GIF");
    let (width, height) = (usize::from(decoder.width()), usize::from(decoder.height()));
    let (mut canvas, mut pictures, mut delays) = (vec![0; 3 * width * height], Vec::new(), Vec::new());
    while let Some(part) = decoder.read_next_frame().expect("its frames are valid") {
        for (row, pixels) in part.buffer.chunks_exact(4 * usize::from(part.width)).enumerate() {
            for (column, pixel) in pixels.chunks_exact(4).enumerate() {
                let at = 3 * ((usize::from(part.top) + row) * width + usize::from(part.left) + column);
                canvas[at..at + 3].copy_from_slice(&pixel[..3]);
            }
        }
        pictures.push(canvas.clone());
        delays.push(10 * u64::from(part.delay));
    }
    ((width, height), pictures, delays)
}

/// The same of a WebP.
fn webp(bytes: &[u8]) -> ((usize, usize), Vec<Vec<u8>>, Vec<u64>) {
    let mut decoder = image_webp::WebPDecoder::new(Cursor::new(bytes)).expect("it is a WebP");
    let (width, height) = decoder.dimensions();
    let (width, height) = (width as usize, height as usize);
    let (mut canvas, mut pictures, mut delays) = (vec![0; 3 * width * height], Vec::new(), Vec::new());
    for _ in 0..decoder.num_frames() {
        delays.push(u64::from(decoder.read_frame(&mut canvas).expect("its frames are valid")));
        pictures.push(canvas.clone());
    }
    ((width, height), pictures, delays)
}

fn names(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).expect("it is there").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn both_formats_have_every_state_of_an_episode() {
    for (name, size, delay) in [
        ("cart-pole", (600, 260), 20),
        ("pendulum", (400, 400), 50),
        ("acrobot", (400, 400), 200),
        ("mountain-car", (600, 400), 33),
        ("mountain-car-continuous", (600, 400), 33),
    ] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let run_dir = train(dir.path(), &format!("[scenario.{name}]\n{SMALL}"));
        let record = |file: &str| {
            let path = dir.path().join(file);
            let about = succeed(&["eval", arg(&run_dir), "--video", arg(&path), "--json"]);
            let about: Value = serde_json::from_str(&about).expect("it is JSON");
            assert_eq!(about["video"], arg(&path), "{name}");
            (fs::read(path).expect("it was written"), about)
        };
        let ((first, about), (second, _)) = (record("a.gif"), record("b.webp"));
        let ((gif_size, gifs, gif_delays), (webp_size, webps, webp_delays)) = (gif(&first), webp(&second));
        assert_eq!((gif_size, webp_size), (size, size), "{name}");
        let length = about["episodes"][0]["length"].as_u64().expect("a number") as usize;
        assert_eq!(about["frames"].as_u64(), Some(length as u64 + 1), "{name}");
        assert_eq!((gifs.len(), webps.len()), (length + 1, length + 1), "{name}");
        assert!(gifs == webps, "{name}: both have the pixels of the drawing");
        assert!(gifs.windows(2).any(|pair| pair[0] != pair[1]), "{name}: nothing moves");
        // Rounded to hundredths, though not their sum.
        assert!(gif_delays[..length].iter().all(|shown| shown.abs_diff(delay) < 10), "{name}: {gif_delays:?}");
        assert!(webp_delays[..length].iter().all(|shown| shown.abs_diff(delay) <= 1), "{name}: {webp_delays:?}");
        assert!(gif_delays[length].abs_diff(1000) <= 10 && webp_delays[length].abs_diff(1000) <= 1, "{name}");
    }
}

#[test]
fn a_video_is_that_of_its_seed_and_episodes() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let run_dir = train(dir.path(), &format!("[scenario.cart-pole]\n{SMALL}"));
    let record = |file: &str, options: &[&str]| {
        let path = dir.path().join(file);
        let said = succeed(&[&["eval", arg(&run_dir), "--video", arg(&path)], options].concat());
        (fs::read(path).expect("it was written"), said)
    };
    for end in ["gif", "webp"] {
        let (first, said) = record(&format!("a.{end}"), &[]);
        assert!(said.contains("1 episode, return ") && said.contains(" frames of 600x260 pixels"), "{said}");
        assert!(record(&format!("b.{end}"), &[]).0 == first, "{end}");
        assert!(record(&format!("c.{end}"), &["--set", "train.eval_seed=5"]).0 != first, "{end}");
    }
    let (all, said) = record("all.gif", &["--episodes", "3"]);
    assert!(said.contains("3 episodes, mean return "), "{said}");
    let single = gif(&record("a.gif", &[]).0).1;
    let all = gif(&all).1;
    assert!(all.len() > single.len() && all[..single.len()] == single);
    // The episodes of the table.
    let table: Value =
        serde_json::from_str(&succeed(&["eval", arg(&run_dir), "--episodes", "3", "--json"])).expect("it is JSON");
    let mean = table["controllers"]["trained"]["return"].as_f64().expect("a number");
    assert_eq!(all.len() as f64, 3.0 * (mean + 1.0), "every step has reward 1");
}

#[test]
fn a_video_goes_where_its_path_leads() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let run_dir = train(dir.path(), &format!("[scenario.pendulum]\n{SMALL}"));
    let at = |name: &str| dir.path().join(name);
    let record = |out: &str| run(&["eval", arg(&run_dir), "--video", out]);
    assert!(record(arg(&at("real.gif"))).status.success());
    let expected = fs::read(at("real.gif")).expect("it was written");
    fs::write(at("real.gif"), "old").expect("there is room");
    symlink("real.gif", at("link.gif")).expect("links are supported");
    assert!(record(arg(&at("link.gif"))).status.success());
    assert!(at("link.gif").is_symlink() && fs::read(at("real.gif")).expect("it is there") == expected);
    let output = record("-");
    assert!(output.status.success() && output.stdout == expected);
    assert!(String::from_utf8_lossy(&output.stderr).contains("Video: -"), "the summary goes to standard error");
    let pipe = at("pipe.webp");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("there is `mkfifo`").success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).expect("it is a pipe")
    });
    assert!(record(arg(&pipe)).status.success());
    assert_eq!(webp(&reader.join().expect("it reads")).1.len(), 201);
    for out in ["/proc/x.gif".to_owned(), arg(&at("nowhere/file.webp")).to_owned()] {
        let output = record(&out);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{out}: {error}");
        assert!(error.contains(&format!("cannot write {out}: No such file or directory")), "{error}");
    }
}

#[test]
fn what_cannot_be_recorded_writes_nothing() {
    for (name, scenario) in [
        ("uara", "[scenario.uara]\nusers = 3\nchannels = 2\nepisode_steps = 5\n"),
        ("evacuation", "[scenario.evacuation]\nbuildings = { reference = \"office\" }\n"),
    ] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let run_dir = train(dir.path(), &format!("{scenario}{SMALL}"));
        let before = names(dir.path());
        let refused = |file: &str| {
            let output = run(&["eval", arg(&run_dir), "--video", arg(&dir.path().join(file))]);
            assert_eq!(output.status.code(), Some(2));
            assert!(output.stdout.is_empty());
            String::from_utf8_lossy(&output.stderr).into_owned()
        };
        let error = refused("video.gif");
        let rule = format!("--video: the scenario must render its states, and `{name}` does not");
        let instead = format!("write a page with its episodes by `brasa report {}`", run_dir.display());
        assert!(error.contains(&rule) && error.contains(&instead), "{error}");
        for file in ["video.mp4", "video", "gif"] {
            let error = refused(file);
            let rule = format!("--video: the file must end in .gif or .webp, got {}", dir.path().join(file).display());
            assert!(error.contains(&rule), "{error}");
        }
        assert_eq!(names(dir.path()), before);
    }
}

#[test]
fn frames_of_gymnasium_are_recorded() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let Some(run_dir) = train_rendered_gymnasium(dir.path()) else { return };
    let path = dir.path().join("video.gif");
    let record = |set: &str| {
        let set = format!("scenario.gymnasium.{set}");
        run(&["eval", arg(&run_dir), "--trust", "--episodes", "2", "--video", arg(&path), "--set", &set])
    };
    for (fault, message) in [
        ("nothing", "which this environment does not support: `render()` returned nothing"),
        ("sides", "`frame width` must be in [1, 4096] pixels, got 2147483648"),
        ("grows", "all frames of a video must have the size of the first one, 6x5 pixels, got 6x6 at frame 1"),
    ] {
        let output = record(&format!("kwargs.fault={fault}"));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(message), "{error}");
        assert!(!path.exists(), "{fault}");
    }
    let output = record("timeout_secs=60");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (size, pictures, delays) = gif(&fs::read(&path).expect("it was written"));
    assert_eq!((size, pictures.len()), ((6, 5), 10));
    assert_eq!(delays, [[100, 100, 100, 100, 1000]; 2].concat());
    for (i, picture) in pictures.iter().enumerate() {
        let lit = picture.chunks_exact(3).position(|pixel| pixel == [255, 128, 0]);
        assert_eq!(lit, Some(2 * 6 + i % 5), "frame {i}");
    }
}
