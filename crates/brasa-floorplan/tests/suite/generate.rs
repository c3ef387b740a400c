//! Random buildings are valid, have the requested size, and are the same for the same seed.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use brasa_floorplan::{Family, GeneratorConfig, Layout, Node, NodeKind, Split, generate};
use geo::coordinate_position::CoordPos;
use geo::dimensions::Dimensions;
use geo::{Area, BooleanOps, BoundingRect, Intersects, Polygon, Relate};
use proptest::prelude::*;

fn polygon(node: &Node) -> Option<Polygon> {
    let corners = node.polygon.as_ref()?;
    Some(Polygon::new(corners.iter().copied().collect(), Vec::new()))
}

/// Two overlapping places of a floor, if any.
fn overlap(layout: &Layout, floor: i32) -> Option<(String, String)> {
    let places = layout.nodes.iter().filter(|node| node.floor == floor);
    let places: Vec<_> = places.filter_map(|node| Some((&node.name, polygon(node)?))).collect();
    let pairs = places.iter().enumerate().flat_map(|(n, a)| places[..n].iter().map(move |b| (a, b)));
    let mut near = pairs.filter(|((_, a), (_, b))| a.bounding_rect().unwrap().intersects(&b.bounding_rect().unwrap()));
    let found = near.find(|((_, a), (_, b))| a.intersection(b).unsigned_area() > 1e-6);
    found.map(|((a, _), (b, _))| ((*a).clone(), (*b).clone()))
}

/// Whether two outlines share a wall.
fn touch(a: &Polygon, b: &Polygon) -> bool {
    a.relate(b).get(CoordPos::OnBoundary, CoordPos::OnBoundary) == Dimensions::OneDimensional
}

fn check(layout: &Layout, config: &GeneratorConfig, family: Family, nodes: [usize; 2]) -> Result<(), TestCaseError> {
    prop_assert!(layout.validate().is_ok(), "{:?}", layout.validate());
    let n = layout.nodes.len();
    prop_assert!((nodes[0]..=nodes[1]).contains(&n), "{} has {n} nodes", layout.name);
    prop_assert!((config.exits[0]..=config.exits[1]).contains(&layout.exits().count()));
    prop_assert!(layout.entries.iter().all(|entry| layout.nodes[*entry].kind == NodeKind::Exit));
    let floors: HashSet<i32> = layout.nodes.iter().map(|node| node.floor).collect();
    prop_assert!((config.floors[0]..=config.floors[1]).contains(&floors.len()));
    prop_assert!(floors.iter().all(|floor| layout.rooms().any(|room| layout.nodes[room].floor == *floor)));
    for edge in &layout.edges {
        let (a, b) = (&layout.nodes[edge.a], &layout.nodes[edge.b]);
        prop_assert_eq!(edge.slope_deg > 0.0, a.floor != b.floor, "{}-{}", a.name, b.name);
        prop_assert!((a.floor - b.floor).abs() <= 1);
        if let (Some(p), Some(q), true) = (polygon(a), polygon(b), a.floor == b.floor) {
            prop_assert!(touch(&p, &q), "{}-{} are apart", a.name, b.name);
        }
    }
    let [least, most] = config.occupants_per_room;
    for room in layout.rooms() {
        let people = layout.occupants.iter().filter(|who| who.node == room).count();
        prop_assert!((least..=most).contains(&people));
    }
    if family != Family::Hub {
        for node in &layout.nodes {
            let area = polygon(node).unwrap().signed_area();
            prop_assert!((area - node.area_m2).abs() < 1e-6, "{} is {area} m2, not {}", node.name, node.area_m2);
        }
        for floor in floors {
            prop_assert_eq!(overlap(layout, floor), None);
        }
    }
    Ok(())
}

/// FNV-1a of the JSON of buildings.
fn hash(layouts: impl IntoIterator<Item = Layout>) -> u64 {
    layouts.into_iter().fold(0xcbf2_9ce4_8422_2325, |h, layout| {
        let text = serde_json::to_string(&layout).unwrap();
        text.bytes().fold(h, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
    })
}

/// A seed gives the same building permanently and on every machine.
#[test]
fn seeds_keep_their_meaning() {
    let config = GeneratorConfig::default();
    let hashes = Family::ALL.map(|family| hash([generate(family, &config, 1).unwrap()]));
    assert_eq!(hashes, [13757244878393807490, 14101231718036623183, 1896907836762644032, 7347096545347924906]);
}

/// The same for many buildings of every family and split, and for unusual settings.
#[test]
fn many_seeds_keep_their_meaning() {
    let usual = GeneratorConfig::default();
    let unusual = GeneratorConfig {
        nodes: [80, 250],
        floors: [1, 8],
        exits: [1, 6],
        occupants_per_room: [0, 3],
        mobility: [0.2, 0.5, 0.3],
        high_risk_share: 0.7,
        fire_door_share: 0.4,
        room_side_m: [2.0, 12.0],
        hall_width_m: [1.6, 4.0],
        ..GeneratorConfig::default()
    };
    let families = [&usual, &unusual]
        .map(|config| Family::ALL.map(|family| hash((0..100).map(|seed| generate(family, config, seed).unwrap()))));
    let expected = [
        [9997252020019265452, 1353457927924993004, 6707990237611668465, 6530960477961024406],
        [14197886836162036952, 8976640337539256086, 15845234854314762628, 16428746992333820705],
    ];
    assert_eq!(families, expected);
    let splits = Split::ALL.map(|split| hash((0..100).map(|index| usual.layout(split, index).unwrap())));
    assert_eq!(splits, [7983886070869976097, 10285551053238069003, 8808630208334930738, 11290165337311142651]);
}

#[test]
fn splits_share_no_seed_and_no_building() {
    let config = GeneratorConfig::default();
    let mut seeds = HashSet::new();
    let mut buildings = HashSet::new();
    for split in Split::ALL {
        for index in (0..20).chain([(1 << 56) - 1]) {
            assert!(seeds.insert(split.seed(index)));
            let mut layout = config.layout(split, index).unwrap();
            layout.name.clear();
            assert!(buildings.insert(serde_json::to_string(&layout).unwrap()), "{split:?} {index}");
        }
    }
}

/// The format of settings does not change.
#[test]
fn settings_in_files_keep_their_meaning() {
    let text = "families = [\"comb\", \"hub\", \"grid\"]\nheld_out_family = \"bsp\"\nnodes = [12, 60]\nfloors = [1, 3]\n\
                exits = [1, 4]\noccupants_per_room = [0, 2]\nmobility = [0.8, 0.1, 0.1]\nhigh_risk_share = 0.2\n\
                fire_door_share = 0.1\nroom_side_m = [3.0, 7.0]\nhall_width_m = [1.8, 3.0]\n";
    assert_eq!(toml::to_string(&GeneratorConfig::default()).unwrap(), text);
    assert_eq!(toml::from_str::<GeneratorConfig>(text).unwrap(), GeneratorConfig::default());
    assert_eq!(toml::from_str::<GeneratorConfig>("").unwrap(), GeneratorConfig::default());
    assert!(toml::from_str::<GeneratorConfig>("node = [12, 60]").is_err());
    for split in Split::ALL {
        assert_eq!(serde_json::to_value(split).unwrap(), split.name());
    }
    for family in Family::ALL {
        assert_eq!(serde_json::to_value(family).unwrap(), family.name());
    }
}

type Change<'a> = &'a dyn Fn(&mut GeneratorConfig);

#[test]
fn settings_that_cannot_be_met_are_refused() {
    let refused = |change: Change| {
        let mut config = GeneratorConfig::default();
        change(&mut config);
        let error = generate(Family::Comb, &config, 0).unwrap_err().to_string();
        assert_eq!(config.layout(Split::Train, 0).unwrap_err().to_string(), error);
        error
    };
    let cases: [(&str, Change); 11] = [
        ("`families` must name at least one, got none", &|config| config.families.clear()),
        ("`held_out_family` must not be one of `families`, got grid", &|config| config.held_out_family = Family::Grid),
        ("`nodes` must be an ascending pair from 10 to 250, got 9 and 60", &|config| config.nodes[0] = 9),
        ("`nodes` must be an ascending pair from 10 to 250, got 12 and 251", &|config| config.nodes[1] = 251),
        ("`nodes` must begin at 74 or more for 8 floors and 2 exits, got 12", &|config| {
            config.floors = [8, 8];
            config.exits = [2, 2];
        }),
        ("`floors` must be an ascending pair from 1 to 8, got 0 and 3", &|config| config.floors[0] = 0),
        ("`exits` must be an ascending pair from 1 to 6, got 4 and 3", &|config| config.exits = [4, 3]),
        ("`hall_width_m` must be an ascending pair from 1.6 to 10, got 1 and 3", &|config| {
            config.hall_width_m[0] = 1.0
        }),
        ("`room_side_m` must be an ascending pair from 2 to 30, got 3 and NaN", &|config| {
            config.room_side_m[1] = f64::NAN;
        }),
        ("`fire_door_share` must be in [0, 1], got 1.5", &|config| config.fire_door_share = 1.5),
        ("`mobility` must be shares, not all of them 0, got [0.0, 0.0, 0.0]", &|config| config.mobility = [0.0; 3]),
    ];
    for (message, change) in cases {
        assert_eq!(refused(change), message);
    }
}

fn range(low: usize, high: usize) -> impl Strategy<Value = [usize; 2]> {
    (low..=high, low..=high).prop_map(|(a, b)| [a.min(b), a.max(b)])
}

fn config() -> impl Strategy<Value = GeneratorConfig> {
    let sides = (20u32..=120, 0u32..60).prop_map(|(a, b)| [f64::from(a) / 10.0, f64::from(a + b) / 10.0]);
    let widths = (16u32..=40, 0u32..20).prop_map(|(a, b)| [f64::from(a) / 10.0, f64::from(a + b) / 10.0]);
    (range(10, 250), range(1, 8), range(1, 6), range(0, 3), sides, widths)
        .prop_map(|(nodes, floors, exits, occupants_per_room, room_side_m, hall_width_m)| GeneratorConfig {
            nodes,
            floors,
            exits,
            occupants_per_room,
            room_side_m,
            hall_width_m,
            ..GeneratorConfig::default()
        })
        .prop_filter("the least nodes must hold the least floors and exits", |config| config.validate().is_ok())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_building_is_sound(config in config(), seed: u64) {
        for family in Family::ALL {
            let layout = generate(family, &config, seed).unwrap();
            check(&layout, &config, family, config.nodes)?;
            prop_assert_eq!(&layout, &generate(family, &config, seed).unwrap());
        }
    }

    #[test]
    fn every_split_is_sound(index in 0u64..1 << 40) {
        let config = GeneratorConfig::default();
        for split in Split::ALL {
            let layout = config.layout(split, index).unwrap();
            let family = Family::ALL.into_iter().find(|family| layout.name.contains(&format!("-{}-", family.name()))).unwrap();
            prop_assert_eq!(split == Split::HeldOutFamily, family == config.held_out_family);
            let nodes = if split == Split::Larger { [120, 240] } else { config.nodes };
            check(&layout, &config, family, nodes)?;
        }
    }
}
