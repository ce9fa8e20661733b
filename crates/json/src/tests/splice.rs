//! A value replaced in place gives the bytes that a document made anew has.

use super::{stored, work};
use crate::*;

/// The document with the value, by way of a tree.
fn edited(document: &Json, path: &Path, value: &Json) -> Vec<u8> {
    let mut tree = document.clone();
    set(&mut tree, path, value.clone(), EditMode::Replace).unwrap();
    stored(&tree)
}

fn check(document: &Json, path: &Path, value: &Json) -> bool {
    let bytes = stored(document);
    let Some(replaced) = replace_value(&bytes, &path.legs, &stored(value), &work()).unwrap() else {
        return false;
    };
    assert_eq!(
        replaced,
        edited(document, path, value),
        "{document:?} {path:?} {value:?}"
    );
    true
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
    let replaced = replace_value(&bytes, &path.legs, &deeper, &work()).unwrap();
    assert_eq!(replaced, None);
}
