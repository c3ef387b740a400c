//! The player of an episode in a report, in a browser if there is one.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;
use std::io::Cursor;
use std::path::Path;

use common::page::{SMALL, assert_layout, browser, data, list, opened, text, train, train_rendered_gymnasium};
use common::{arg, run, succeed};
use serde_json::Value;

const HEADING: &str = "<h2>An episode of the policy</h2>";

fn page(run_dir: &Path) -> String {
    fs::read_to_string(run_dir.join("report.html")).expect("it was written")
}

/// The picture of the last state in the video of a run.
fn last_frame(dir: &Path, run_dir: &Path) -> (u64, Vec<u8>) {
    let path = dir.join("video.webp");
    let about: Value =
        serde_json::from_str(&succeed(&["eval", arg(run_dir), "--video", arg(&path), "--json"])).expect("it is JSON");
    let bytes = fs::read(path).expect("it was written");
    let mut decoder = image_webp::WebPDecoder::new(Cursor::new(bytes)).expect("it is a WebP");
    let (width, height) = decoder.dimensions();
    let mut canvas = vec![0; 3 * (width * height) as usize];
    for _ in 0..decoder.num_frames() {
        decoder.read_frame(&mut canvas).expect("its frames are valid");
    }
    (about["episodes"][0]["length"].as_u64().expect("a number"), canvas)
}

#[test]
fn the_player_shows_the_episode_of_the_video() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let run_dir = train(dir.path(), &format!("[scenario.pendulum]\n{SMALL}"));
    let of_training = page(&run_dir);
    succeed(&["report", arg(&run_dir)]);
    let written = page(&run_dir);
    assert!(written == of_training, "`train` writes the page of `report`");
    assert!(written.contains(HEADING) && !written.contains("{{"));
    for link in ["src=\"http", "href=\"http", "url(http", "import(", "fetch("] {
        assert!(!written.contains(link), "the page needs the network: {link}");
    }
    let (length, expected) = last_frame(dir.path(), &run_dir);
    let player = &data(&written)["episode_player"];
    let (steps, returns) = (list(&player["steps"]), list(&player["returns"]));
    assert_eq!(steps.iter().filter_map(Value::as_u64).collect::<Vec<_>>(), (0..=length).collect::<Vec<_>>());
    let table: Value =
        serde_json::from_str(&succeed(&["eval", arg(&run_dir), "--episodes", "1", "--json"])).expect("it is JSON");
    let episode_return = table["controllers"]["trained"]["return"].as_f64().expect("a number");
    assert!((returns[length as usize].as_f64().expect("a number") - episode_return).abs() < 1e-3);
    assert_eq!(returns[0].as_f64(), Some(0.0));
    assert!(written.contains("201 pictures show the start and every step"));
    let Some(browser) = browser() else { return };
    // Sums of the pixels on the canvas, weighted by their places.
    let sums = |rgb: &mut dyn Iterator<Item = u8>| {
        rgb.enumerate().fold(0u64, |sum, (i, byte)| (sum + u64::from(byte) * (i as u64 % 9973 + 1)) % 1_000_000_007)
    };
    let expected = sums(&mut expected.into_iter());
    let look = "<script>addEventListener('load', () => setTimeout(() => {
        const canvas = document.querySelector('#episode-player canvas'), { width, height } = canvas;
        const all = canvas.getContext('2d').getImageData(0, 0, width, height).data;
        let sum = 0, i = 0;
        all.forEach((byte, at) => { if (at % 4 < 3) sum = (sum + byte * (i++ % 9973 + 1)) % 1000000007; });
        const told = document.createElement('p');
        told.id = 'told';
        told.textContent = `${sum} ${document.querySelector('.where').textContent} ${document.querySelector('#episode-player input').value}`;
        document.body.append(told);
    }, 500));</script></body>";
    let looking = dir.path().join("look.html");
    fs::write(&looking, written.replace("</body>", look)).expect("there is room");
    let (document, console) = opened(&browser, dir.path(), &looking, &format!("#step={length}"));
    assert!(console.is_empty(), "{console:?}");
    let told = text(&document, "told");
    assert!(told.starts_with(&format!("{expected} step 200 of 200, return ")), "{told}, expected {expected}");
    assert!(told.ends_with(" 200") && document.contains("aria-valuetext=\"step 200 of 200, return "), "{told}");
    // Keys, and playing.
    let press = "<script>addEventListener('load', () => setTimeout(() => {
        const canvas = document.querySelector('#episode-player canvas'), where = document.querySelector('.where'), told = [];
        const press = key => { canvas.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true })); told.push(where.textContent.split(',')[0]); };
        ['End', 'ArrowLeft', 'Home', 'ArrowRight', 'PageUp', ' '].forEach(press);
        told.push(document.querySelector('#episode-player button').textContent);
        setTimeout(() => {
            told.push(where.textContent.startsWith('step 11 ') ? 'stands' : 'plays');
            const line = document.createElement('p');
            line.id = 'told';
            line.textContent = told.join('; ');
            document.body.append(line);
        }, 2000);
    }, 500));</script></body>";
    // The clock of these browsers is virtual and has no frames.
    let frames =
        "<script>requestAnimationFrame = each => setTimeout(() => each(performance.now()), 16);</script></head>";
    let page = written.replacen("</head>", frames, 1).replace("</body>", press);
    fs::write(&looking, page).expect("there is room");
    let (document, console) = opened(&browser, dir.path(), &looking, "");
    assert!(console.is_empty(), "{console:?}");
    let all = [200, 199, 0, 1, 11, 11].map(|step| format!("step {step} of 200")).join("; ");
    assert_eq!(text(&document, "told"), format!("{all}; Pause; plays"));
    assert_layout(&browser, dir.path(), &run_dir.join("report.html"));
}

#[test]
fn long_episodes_have_fewer_pictures_and_the_page_stays_small() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let run_dir = train(dir.path(), &format!("[scenario.mountain-car-continuous]\n{SMALL}"));
    let written = page(&run_dir);
    let player = &data(&written)["episode_player"];
    let steps = list(&player["steps"]);
    let length = steps.last().and_then(Value::as_u64).expect("a number");
    let stride = length.div_ceil(500);
    assert!(steps.len() <= 501 && steps[1] == stride, "{} pictures of {length} steps", steps.len());
    assert_eq!(written.contains("show every 2nd step and the end"), stride == 2, "{length}");
    assert!(player["pictures"].as_str().expect("base 64").len() <= 1 << 20);
}

#[test]
fn a_scenario_that_renders_nothing_has_no_player() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let run_dir = train(dir.path(), &format!("[scenario.uara]\nusers = 3\nchannels = 2\nepisode_steps = 5\n{SMALL}"));
    let written = page(&run_dir);
    assert!(!written.contains("episode-player\"") && !written.contains(HEADING));
    assert!(data(&written)["episode_player"].is_null());
}

#[test]
fn gymnasium_has_a_player_in_reports_or_a_reason() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let Some(run_dir) = train_rendered_gymnasium(dir.path()) else { return };
    // Training does not wait for another process.
    let line = format!("<code>brasa report {}</code> adds a player of an episode.", run_dir.display());
    assert!(page(&run_dir).contains(&line) && data(&page(&run_dir))["episode_player"].is_null());
    succeed(&["report", arg(&run_dir), "--trust"]);
    let player = data(&page(&run_dir))["episode_player"].take();
    assert_eq!(
        (player["width"].as_u64(), player["height"].as_u64(), list(&player["steps"]).len()),
        (Some(6), Some(5), 5)
    );
    let failed = run(&["report", arg(&run_dir), "--trust", "--set", "scenario.gymnasium.kwargs.fault=raise"]);
    assert!(failed.status.success(), "{}", String::from_utf8_lossy(&failed.stderr));
    let written = page(&run_dir);
    assert!(
        written.contains(&format!("{HEADING}\n<p>The states could not be rendered: "))
            && written.contains("no display")
    );
    assert!(data(&written)["episode_player"].is_null());
}
