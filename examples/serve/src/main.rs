//! A trained policy behind HTTP: `POST /act` with the numbers of an observation gives the action.
//!
//! ```text
//! cargo run --release -- train configs/cart-pole-ppo.toml --out runs/cart-pole
//! cargo run --release -p serve-policy -- runs/cart-pole 127.0.0.1:8080
//! curl -s 127.0.0.1:8080/act -H 'content-type: application/json' -d '{"obs": [0, 0, 0.1, 0]}'
//! ```

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use brasa::experiment::LoadedPolicy;
use serde::{Deserialize, Serialize};

/// One environment: the numbers of its observation, and flags of legal actions if it has them.
#[derive(Deserialize)]
struct ActRequest {
    obs: Vec<f32>,
    mask: Option<Vec<f32>>,
}

#[derive(Serialize)]
struct ActResponse {
    action: Vec<f32>,
}

/// A decision takes microseconds, so that it needs no thread of its own; several threads share the policy.
async fn act(
    State(policy): State<Arc<LoadedPolicy>>,
    Json(request): Json<ActRequest>,
) -> Result<Json<ActResponse>, (StatusCode, String)> {
    let action = policy.act_one(&request.obs, request.mask.as_deref());
    action.map(|action| Json(ActResponse { action })).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let run = args.next().ok_or("give the directory of a run, as the header of this file shows")?;
    let address = args.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let policy = Arc::new(brasa::load_policy(run, &brasa::device::open_named("cpu")?)?);
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    axum::serve(listener, Router::new().route("/act", post(act)).with_state(policy)).await?;
    Ok(())
}
