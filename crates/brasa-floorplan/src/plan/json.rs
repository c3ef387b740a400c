//! Brasa's own format: the graph, with nodes referred to by name.

use std::collections::HashMap;
use std::fmt::Write;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::plan_error;
use crate::{Edge, FloorPlanError, Layout, Mobility, Node, NodeKind, Occupant};

/// The written version, and the only supported one.
const VERSION: u64 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanRecord {
    #[serde(rename = "version")]
    _version: u64,
    name: String,
    nodes: Vec<Value>,
    edges: Vec<Value>,
    #[serde(default)]
    occupants: Vec<Value>,
    entries: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeRecord {
    name: String,
    kind: NodeKind,
    area_m2: f64,
    length_m: f64,
    #[serde(default, skip_serializing_if = "is_zero")]
    floor: i32,
    #[serde(default, skip_serializing_if = "is_false")]
    high_risk: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    polygon: Option<Vec<[f64; 2]>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EdgeRecord {
    a: String,
    b: String,
    length_m: f64,
    width_m: f64,
    #[serde(default, skip_serializing_if = "is_level")]
    slope_deg: f64,
    #[serde(default, skip_serializing_if = "is_false")]
    door: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    fire_door: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    opening: Option<[[f64; 2]; 2]>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OccupantRecord {
    node: String,
    mobility: Mobility,
    #[serde(default = "full_health")]
    health: f64,
}

fn full_health() -> f64 {
    100.0
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &i32) -> bool {
    *value == 0
}

fn is_level(value: &f64) -> bool {
    *value == 0.0
}

/// Whether a text is JSON of another format: it has a `type`, as GeoJSON, and no `version`.
pub(super) fn is_foreign(text: &str) -> bool {
    matches!(serde_json::from_str::<Value>(text), Ok(Value::Object(fields))
        if fields.contains_key("type") && !fields.contains_key("version"))
}

pub(super) fn read(text: &str, origin: &str) -> Result<Layout, FloorPlanError> {
    let fail = |reason: String| plan_error(origin, reason);
    let value: Value = serde_json::from_str(text).map_err(|error| fail(format!("it is no JSON: {error}")))?;
    match value.get("version") {
        Some(version) if version.as_u64() == Some(VERSION) => {}
        Some(other) => return Err(fail(format!("`version` must be {VERSION}, got {other}"))),
        None => return Err(fail(format!("`version` must be {VERSION}, and it is missing"))),
    }
    let plan: PlanRecord = parse(value).map_err(fail)?;
    let nodes: Vec<NodeRecord> = records("node", "name", plan.nodes, origin)?;
    let edges: Vec<EdgeRecord> = records("edge", "a", plan.edges, origin)?;
    let occupants: Vec<OccupantRecord> = records("occupant", "node", plan.occupants, origin)?;
    let places: HashMap<&str, usize> = nodes.iter().enumerate().map(|(n, node)| (node.name.as_str(), n)).collect();
    let place = |what: String, name: &str| {
        places.get(name).copied().ok_or_else(|| fail(format!("{what} must be a node, got `{name}`")))
    };
    let mut layout_edges = Vec::with_capacity(edges.len());
    for (n, edge) in edges.iter().enumerate() {
        let end = |field: &str, name: &str| place(format!("`{field}` of edge {n} (`{}`-`{}`)", edge.a, edge.b), name);
        layout_edges.push(Edge {
            a: end("a", &edge.a)?,
            b: end("b", &edge.b)?,
            length_m: edge.length_m,
            width_m: edge.width_m,
            slope_deg: edge.slope_deg,
            door: edge.door,
            fire_door: edge.fire_door,
            opening: edge.opening,
        });
    }
    let mut people = Vec::with_capacity(occupants.len());
    for (n, occupant) in occupants.iter().enumerate() {
        let node = place(format!("`node` of occupant {n}"), &occupant.node)?;
        people.push(Occupant { node, mobility: occupant.mobility, health: occupant.health });
    }
    let entry = |(n, name): (usize, &String)| place(format!("`entries` {n}"), name);
    let entries = plan.entries.iter().enumerate().map(entry).collect::<Result<_, _>>()?;
    let node = |record: NodeRecord| Node {
        name: record.name,
        kind: record.kind,
        area_m2: record.area_m2,
        length_m: record.length_m,
        floor: record.floor,
        high_risk: record.high_risk,
        polygon: record.polygon,
    };
    let layout = Layout {
        name: plan.name,
        nodes: nodes.into_iter().map(node).collect(),
        edges: layout_edges,
        occupants: people,
        entries,
    };
    super::assemble::check(origin, layout)
}

/// Reads records one by one, so that an error names the record.
fn records<T: DeserializeOwned>(
    what: &str,
    name_field: &str,
    values: Vec<Value>,
    origin: &str,
) -> Result<Vec<T>, FloorPlanError> {
    let read = |(n, value): (usize, Value)| {
        let name = value.get(name_field).and_then(Value::as_str).map(|name| format!(" (`{name}`)")).unwrap_or_default();
        parse(value).map_err(|reason| plan_error(origin, format!("{what} {n}{name}: {reason}")))
    };
    values.into_iter().enumerate().map(read).collect()
}

/// A record, or the invalid field and the reason.
fn parse<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| match error.path().to_string().as_str() {
        // The message names the missing or unknown field.
        "." => error.inner().to_string(),
        path => format!("`{path}`: {}", error.inner()),
    })
}

pub(super) fn write(layout: &Layout) -> String {
    let name = |node: usize| layout.nodes[node].name.clone();
    let nodes = layout.nodes.iter().map(|node| NodeRecord {
        name: node.name.clone(),
        kind: node.kind,
        area_m2: node.area_m2,
        length_m: node.length_m,
        floor: node.floor,
        high_risk: node.high_risk,
        polygon: node.polygon.clone(),
    });
    let edges = layout.edges.iter().map(|edge| EdgeRecord {
        a: name(edge.a),
        b: name(edge.b),
        length_m: edge.length_m,
        width_m: edge.width_m,
        slope_deg: edge.slope_deg,
        door: edge.door,
        fire_door: edge.fire_door,
        opening: edge.opening,
    });
    let occupants = layout.occupants.iter().map(|occupant| OccupantRecord {
        node: name(occupant.node),
        mobility: occupant.mobility,
        health: occupant.health,
    });
    let mut text = format!("{{\n  \"version\": {VERSION},\n  \"name\": {},\n", Value::from(layout.name.as_str()));
    write_list(&mut text, "nodes", nodes);
    write_list(&mut text, "edges", edges);
    write_list(&mut text, "occupants", occupants);
    let entries: Vec<Value> = layout.entries.iter().map(|entry| Value::from(name(*entry))).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  \"entries\": {}\n}}", Value::from(entries));
    text
}

/// Writes one record per line.
fn write_list<T: Serialize>(text: &mut String, field: &str, records: impl Iterator<Item = T>) {
    let lines: Vec<String> =
        records.filter_map(|record| serde_json::to_string(&record).ok()).map(|line| format!("    {line}")).collect();
    let _ = match lines.is_empty() {
        true => writeln!(text, "  \"{field}\": [],"),
        false => writeln!(text, "  \"{field}\": [\n{}\n  ],", lines.join(",\n")),
    };
}
