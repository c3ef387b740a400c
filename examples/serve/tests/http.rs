//! A policy is trained, served and asked, by several clients at a time.
#![allow(clippy::expect_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use brasa::prelude::*;
use serde_json::Value;

/// The server, which ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The status and the body of an answer.
fn ask(address: &str, body: &str) -> (u32, String) {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    let head = format!("POST /act HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\nconnection: close");
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, answer.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned())
}

#[test]
fn a_policy_answers_several_clients() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, run) = (dir.path().join("experiment.toml"), dir.path().join("run"));
    std::fs::write(&config, "[scenario.cart-pole]\n[train]\ntotal_env_steps = 512\nn_envs = 4\n[ppo]\nn_steps = 64\n")
        .expect("it can be written");
    let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    App::new("test")
        .with(brasa::registry())
        .run_from(["test", "train", &path(&config), "--out", &path(&run), "--quiet"])
        .expect("it trains");
    let policy = brasa::load_policy(&run, &brasa::device::open_named("cpu").expect("the CPU")).expect("it is there");

    let mut server = Command::new(env!("CARGO_BIN_EXE_serve-policy"));
    let mut server = Server(server.arg(&run).arg("127.0.0.1:0").stdout(Stdio::piped()).spawn().expect("it starts"));
    let mut line = String::new();
    let stdout = server.0.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut line).expect("it says where it listens");
    let address = line.trim().strip_prefix("listening on ").expect("an address").to_owned();

    std::thread::scope(|scope| {
        for client in 0..8 {
            let (address, policy) = (&address, &policy);
            scope.spawn(move || {
                let obs = [0.1 * client as f32 - 0.4, 0.0, 0.05 * client as f32 - 0.2, 0.0];
                let (status, body) = ask(address, &format!("{{\"obs\": {obs:?}}}"));
                let answer: Value = serde_json::from_str(&body).expect("JSON");
                let expected = policy.act_one(&obs, None).expect("it fits");
                assert_eq!((status, answer["action"][0].as_f64()), (200, Some(f64::from(expected[0]))));
            });
        }
    });
    let (status, body) = ask(&address, "{\"obs\": [0, 0]}");
    assert!(status == 400 && body.contains("`obs`"), "{status} {body}");
}
