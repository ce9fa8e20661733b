//! A value replaced, added or removed gives the bytes that a document made anew has.

use super::{stored, work};
use crate::*;

/// Whether the outcome is that of the change of a tree; panics if it is another one.
fn is_edited(document: &Json, outcome: Spliced, edited: Json) -> bool {
    match outcome {
        Spliced::Changed(bytes) => assert_eq!(bytes, stored(&edited), "{document:?} {edited:?}"),
        Spliced::Unchanged => assert_eq!(*document, edited),
        Spliced::NeedsTree => return false,
    }
    true
}

fn check(document: &Json, path: &Path, value: &Json) -> bool {
    let bytes = stored(document);
    let mut spliced = true;
    for mode in [EditMode::Set, EditMode::Insert, EditMode::Replace] {
        let set_bytes = set_value(&bytes, &path.legs, &stored(value), mode, &work()).unwrap();
        let mut tree = document.clone();
        set(&mut tree, path, value.clone(), mode).unwrap();
        spliced &= is_edited(document, set_bytes, tree);
    }
    spliced
}

/// The same for JSON_REMOVE.
fn check_removal(document: &Json, path: &Path) -> bool {
    let outcome = remove_value(&stored(document), &path.legs, &work()).unwrap();
    let mut tree = document.clone();
    remove(&mut tree, path);
    is_edited(document, outcome, tree)
}

fn values() -> Vec<Json> {
    let text = |length: usize| Json::String("x".repeat(length));
    vec![
        Json::Null,
        Json::Bool(true),
        Json::Int(-1),
        Json::Int(70_000),
        Json::Int(-70_000),
        Json::Int(1 << 40),
        Json::UInt(u64::MAX),
        Json::Double(0.5),
        text(0),
        text(127),
        text(128),
        text(70_000),
        Json::Array(vec![Json::Int(1), text(3)]),
        Json::object(vec![("a".into(), Json::Array(Vec::new()))]),
    ]
}

#[test]
fn replaced_values_equal_recorded_documents() {
    let recorded = include_str!("recorded.tsv");
    let mut replaced = 0;
    for line in recorded.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let ["set" | "replace", document, path, _, _] = fields.as_slice() else {
            continue;
        };
        let tree = |text: &str| parse(super::unescaped(text).as_bytes(), &work());
        let (Ok(document), Ok(path)) = (tree(document), Path::parse(path)) else {
            continue;
        };
        for value in values() {
            replaced += usize::from(check(&document, &path, &value));
        }
    }
    assert!(replaced > 50, "{replaced}");
}

#[test]
fn replaced_values_keep_large_containers() {
    let members = (0..9000).map(|n| (format!("k{n}"), Json::Int(n * 100)));
    let inner = Json::object(members.collect());
    let names = ["a", "bb", "ccc"];
    let members = names.iter().map(|name| (name.to_string(), inner.clone()));
    let document = Json::object(members.collect());
    let mut replaced = 0;
    for path in ["$.a.k5", "$.bb.k8999", "$.ccc.k700", "$.bb"] {
        for value in values() {
            replaced += usize::from(check(&document, &Path::parse(path).unwrap(), &value));
        }
    }
    assert!(replaced > 0);
}

#[test]
fn replaced_values_keep_the_greatest_depth() {
    let mut document = Json::Int(1);
    for _ in 0..MAX_DEPTH {
        document = Json::Array(vec![document]);
    }
    let path = Path::parse(&format!("${}", "[0]".repeat(MAX_DEPTH))).unwrap();
    let bytes = stored(&document);
    let deeper = stored(&Json::Array(Vec::new()));
    let mode = EditMode::Replace;
    let replaced = set_value(&bytes, &path.legs, &deeper, mode, &work()).unwrap();
    assert_eq!(replaced, Spliced::NeedsTree);
}

/// An object that has every kind of value, some of them in containers.
fn mixed() -> Json {
    let named = |(n, value): (usize, Json)| {
        let letters = "abcdefgh".repeat(2);
        (letters[..1 + n * 5 % 7 + n / 3].to_string(), value)
    };
    let mut members: Vec<_> = values().into_iter().enumerate().map(named).collect();
    members.retain(|(_, value)| !matches!(value, Json::String(text) if text.len() > 1000));
    members.push((String::new(), Json::Int(5)));
    members.push(("array".into(), Json::Array(values()[..10].to_vec())));
    members.push(("none".into(), Json::object(Vec::new())));
    Json::object(members)
}

#[test]
fn added_and_removed_members_equal_documents_made_anew() {
    let inner = mixed();
    let Json::Object(members) = &inner else {
        panic!("an object");
    };
    let mut names: Vec<String> = members.iter().map(|m| m.0.clone()).collect();
    names.extend(["b", "zz", "array1", "new name"].map(String::from));
    let outer = Json::object(vec![
        ("first".into(), inner.clone()),
        ("x".into(), inner.clone()),
    ]);
    let in_array = Json::Array(vec![Json::Int(1), inner.clone(), inner.clone()]);
    let quoted = |name: &String| format!(".\"{name}\"");
    let (mut paths, mut spliced) = (Vec::new(), 0);
    paths.extend(names.iter().map(quoted));
    let cells = [
        "[0]",
        "[3]",
        "[9]",
        "[10]",
        "[99]",
        "[last]",
        "[last-3]",
        "[last-50]",
    ];
    paths.extend(cells.map(|cell| format!(".array{cell}")));
    for (document, prefix) in [
        (&inner, "$"),
        (&outer, "$.x"),
        (&outer, "$.first"),
        (&in_array, "$[1]"),
    ] {
        for path in &paths {
            let path = Path::parse(&format!("{prefix}{path}")).unwrap();
            spliced += usize::from(check_removal(document, &path));
            for value in values() {
                spliced += usize::from(check(document, &path, &value));
            }
        }
    }
    assert!(spliced > 1000, "{spliced}");
}

#[test]
fn added_and_removed_members_of_large_objects() {
    let members = (0..20_000).map(|n| (format!("k{n}"), Json::Int(n * 100)));
    let large = Json::object(members.collect());
    let document = Json::object(vec![("a".into(), large.clone()), ("b".into(), large)]);
    for path in ["$.a.k5", "$.a.x", "$.b.k199999", "$.b.k8999", "$.c"] {
        let path = Path::parse(path).unwrap();
        check_removal(&document, &path);
        for value in values() {
            assert!(check(&document, &path, &value), "{path:?} {value:?}");
        }
    }
}

#[test]
fn containers_that_become_large_or_empty() {
    let text = |length: usize| Json::String("x".repeat(length));
    let document = Json::object(vec![("a".into(), text(65_000))]);
    let added = Path::parse("$.b").unwrap();
    for length in 480..540 {
        check(&document, &added, &text(length));
    }
    assert!(check_removal(&document, &Path::parse("$.a").unwrap()));
    let last = Json::Array(vec![Json::Int(1)]);
    assert!(check_removal(&last, &Path::parse("$[0]").unwrap()));
    assert!(check(
        &Json::Array(Vec::new()),
        &Path::parse("$[7]").unwrap(),
        &text(3)
    ));
}
