//! Indoor maps of OpenStreetMap, as GeoJSON: tags are properties, or stand in a property `tags`.
//!
//! - `indoor`: `room` is a room, `corridor` and `area` are halls; walls, columns and outlines of levels are ignored. `stairs`,
//!   `room=stairs`, `highway=steps` and elevators are stairs.
//! - A point or line with `door` or `entrance` is an opening, also `indoor=door`. `door=no` is one without a door. An `entrance`
//!   that is `exit` or `emergency` leads outside, and responders enter at `main`.
//! - `level` lists floors: `0`, `0;1`, `-1-2`. `width` of a point is in m; without it a door is 0.9 m wide.

use geojson::{Feature, JsonObject, JsonValue};

use super::element::{Element, Part, Role};
use super::imdf::has_door;
use crate::NodeKind;

/// Width of a door that is a point without one, in m.
pub(super) const DOOR_M: f64 = 0.9;
/// Most floors that a feature may be on.
const MOST_FLOORS: i32 = 200;

/// The tags of a feature.
pub(super) fn tags(feature: &Feature) -> Option<&JsonObject> {
    let properties = feature.properties.as_ref()?;
    match properties.get("tags") {
        Some(JsonValue::Object(tags)) => Some(tags),
        _ => Some(properties),
    }
}

/// Whether tags are those of an indoor map.
pub(super) fn is_indoor(tags: &JsonObject) -> bool {
    text(tags, "indoor").is_some()
}

/// Whether tags say what a feature is: a place by `indoor`, or an opening by words for `door` and `entrance`.
pub(super) fn is_told(tags: &JsonObject) -> bool {
    is_indoor(tags) || ["door", "entrance"].iter().any(|tag| text(tags, tag).is_some())
}

fn text<'a>(tags: &'a JsonObject, name: &str) -> Option<&'a str> {
    tags.get(name).and_then(JsonValue::as_str)
}

/// The element of a feature; `None` for walls and outlines of levels.
///
/// # Errors
/// The reason.
pub(super) fn element<'a>(
    origin: &'a str,
    id: Option<String>,
    feature: &Feature,
    parts: Vec<Part>,
) -> Result<Option<Element<'a>>, String> {
    let Some(tags) = tags(feature) else { return Ok(None) };
    let indoor = text(tags, "indoor").unwrap_or_default();
    let is_opening = !parts.iter().any(|part| matches!(part, Part::Polygon(_)))
        && (indoor == "door" || ["door", "entrance"].iter().any(|tag| tags.contains_key(*tag)));
    let role = match is_opening {
        true => opening(tags)?,
        false if matches!(indoor, "wall" | "column" | "level" | "pylon") => return Ok(None),
        false => Role::Area { kind: kind(tags, indoor), high_risk: false, people: [0; 3] },
    };
    let name = ["name", "ref"].into_iter().find_map(|tag| text(tags, tag)).map(String::from);
    let id = id.or_else(|| tags.get("id").and_then(JsonValue::as_str).map(String::from));
    let what = if is_opening { "opening" } else { "unit" };
    Ok(Some(Element { origin, what: what.into(), id, name, floors: levels(tags)?, role, parts }))
}

fn kind(tags: &JsonObject, indoor: &str) -> NodeKind {
    let room = text(tags, "room").unwrap_or_default();
    let is_stair = tags.get("stairs").is_some_and(|value| value != "no")
        || [room, indoor].iter().any(|word| matches!(*word, "stairs" | "elevator" | "escalator"))
        || matches!(text(tags, "highway"), Some("steps" | "elevator"));
    match room {
        _ if is_stair => NodeKind::Stair,
        "corridor" | "hall" | "hallway" | "lobby" | "entrance" | "foyer" => NodeKind::Hall,
        _ if matches!(indoor, "corridor" | "area" | "hall") => NodeKind::Hall,
        _ => NodeKind::Room,
    }
}

fn opening(tags: &JsonObject) -> Result<Role, String> {
    let entrance = text(tags, "entrance").unwrap_or_default();
    let point_width_m = match tags.get("width") {
        None => DOOR_M,
        Some(value) => {
            let number = value.as_f64().or_else(|| value.as_str()?.trim().trim_end_matches('m').trim().parse().ok());
            number.ok_or_else(|| format!("`width` must be a number in m, got {value}"))?
        }
    };
    Ok(Role::Opening {
        is_exit: matches!(entrance, "exit" | "emergency"),
        is_entry: entrance == "main",
        door: has_door(tags.get("door")),
        fire_door: false,
        point_width_m,
    })
}

/// The floors of a feature: `0`, `0;1`, `-1-2`.
fn levels(tags: &JsonObject) -> Result<Vec<i32>, String> {
    let stated = ["level", "ordinal", "floor"].into_iter().find_map(|tag| tags.get(tag));
    let text = match stated {
        None | Some(JsonValue::Null) => return Ok(vec![0]),
        Some(JsonValue::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let wrong = || format!("`level` must list whole numbers, as `0;1` or `0-2`, got `{text}`");
    let mut floors = Vec::new();
    for part in text.split(';').map(str::trim) {
        // A sign is no range.
        let dash = part.char_indices().skip(1).find(|(_, c)| *c == '-').map(|(at, _)| at);
        let (from, to) = match dash {
            Some(at) => (&part[..at], &part[at + 1..]),
            None => (part, part),
        };
        let number = |text: &str| text.trim().parse::<i32>().map_err(|_| wrong());
        let (from, to) = (number(from)?, number(to)?);
        if from.abs().max(to.abs()) > MOST_FLOORS || from > to {
            return Err(wrong());
        }
        floors.extend(from..=to);
    }
    floors.sort_unstable();
    floors.dedup();
    Ok(floors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn levels_are_lists_and_ranges() {
        let levels = |level: JsonValue| {
            let mut tags = JsonObject::new();
            tags.insert("level".into(), level);
            super::levels(&tags)
        };
        assert_eq!(super::levels(&JsonObject::new()).unwrap(), [0]);
        for (level, floors) in [
            (json!("1"), vec![1]),
            (json!(-1), vec![-1]),
            (json!("0;1"), vec![0, 1]),
            (json!("-1-2"), vec![-1, 0, 1, 2]),
            (json!("-3--2; 5;5"), vec![-3, -2, 5]),
        ] {
            assert_eq!(levels(level.clone()).unwrap(), floors, "{level}");
        }
        for level in [json!("0.5"), json!("ground"), json!(""), json!("2-0"), json!("0-100000"), json!([0])] {
            assert!(levels(level.clone()).unwrap_err().starts_with("`level` must list whole numbers"), "{level}");
        }
    }
}
