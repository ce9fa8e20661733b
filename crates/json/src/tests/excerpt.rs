//! An excerpt finds by its paths what the document does.

use super::{stored, unescaped, work};
use crate::*;

/// A document in memory, with other bytes behind it.
struct InMemory<'d>(&'d [u8]);

impl DocumentBytes for InMemory<'_> {
    fn word(&mut self, at: usize) -> Option<u64> {
        let mut word = [0xAA; 8];
        let bytes = &self.0[at..self.0.len().min(at + 8)];
        word[..bytes.len()].copy_from_slice(bytes);
        Some(u64::from_le_bytes(word))
    }

    fn append(&mut self, at: usize, length: usize, out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(&self.0[at..at + length]);
        true
    }
}

fn excerpt(tree: &MemberTree, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = b"before".to_vec();
    tree.excerpt(bytes.len(), &mut InMemory(bytes), &mut out)?;
    Some(out.split_off(6))
}

/// What the paths find, each value as a document of its own.
fn found(bytes: &[u8], paths: &[Path]) -> Vec<Vec<Vec<u8>>> {
    let of_path = |path: &Path| {
        let mut found = Vec::new();
        seek(Doc::new(bytes).unwrap(), path, &work(), &mut found).unwrap();
        let values = found.iter().map(|value| {
            let mut out = Vec::new();
            value.write_to(&mut out).unwrap();
            out
        });
        values.collect()
    };
    paths.iter().map(of_path).collect()
}

/// Compares document and excerpt; returns the excerpt's length.
fn check(document: &[u8], paths: &[&str]) -> Option<usize> {
    let paths: Vec<Path> = paths.iter().map(|p| Path::parse(p).unwrap()).collect();
    let excerpt = excerpt(&MemberTree::of(&paths)?, document)?;
    assert_eq!(
        found(&excerpt, &paths),
        found(document, &paths),
        "{paths:?}"
    );
    Some(excerpt.len())
}

fn document(text: &str) -> Vec<u8> {
    stored(&parse(text.as_bytes(), &work()).unwrap())
}

#[test]
fn excerpts_have_the_members_of_their_paths() {
    let long = "x".repeat(70_000);
    for filler in ["", &long] {
        let text = format!(
            r#"{{"a": {{"b": 1, "c": [1, {{"d": 70000}}], "n": -70000}}, "bb": "text", "cc": null,
            "ccc": [1, 2], "dddd": 1e100, "eeeee": {{"a": {{"a": {{"a": true}}}}}}, "f": 5000000000,
            "filler": "{filler}", "g": {{}}}}"#
        );
        let document = document(&text);
        let paths = [
            "$.a",
            "$.a.b",
            "$.a.c",
            "$.a.c[1].d",
            "$.a.c[last]",
            "$.a.n",
            "$.a.*",
            "$.a**.d",
            "$.a.b[0]",
            "$.a.b.c",
            "$.bb",
            "$.bb.x",
            "$.cc",
            "$.ccc[1]",
            "$.ccc.a",
            "$.dddd",
            "$.eeeee.a.a.a",
            "$.eeeee.a",
            "$.f",
            "$.g",
            "$.g.h",
            "$.missing",
            "$.missing.a",
        ];
        for one in paths {
            let length = check(&document, &[one]).unwrap();
            assert!(length < 200, "{one} {length}");
            for other in paths {
                check(&document, &[one, other]).unwrap();
                check(&document, &[other, one, "$.filler"]).unwrap();
            }
        }
        for whole in ["$", "$[0].a", "$.*", "$**.a"] {
            assert_eq!(check(&document, &[whole]), None);
            assert_eq!(check(&document, &["$.a", whole]), None);
        }
    }
    for scalar in ["1", "null", "\"text\""] {
        assert_eq!(check(&document(scalar), &["$.a"]), None);
    }
}

#[test]
fn arrays_have_no_members() {
    let array = document("[1, {\"a\": 1}]");
    assert_eq!(check(&array, &["$.a", "$.b.c"]), Some(9));
    let inner = document("{\"a\": [{\"b\": 1}, 2]}");
    assert!(check(&inner, &["$.a.b"]).is_some());
    assert!(check(&inner, &["$.a.b", "$.a"]).is_some());
    assert!(check(&inner, &["$.a.b", "$.a[0].b"]).is_some());
}

#[test]
fn outlines_have_type_length_and_names() {
    let long = "x".repeat(70_000);
    for filler in ["", &long] {
        for text in [
            format!(
                r#"{{"a": [1, 2], "bb": {{"c": 1}}, "filler": "{filler}", "n": -7, "é": true}}"#
            ),
            format!(r#"[1, {{"a": 2}}, "{filler}", null, 1e9]"#),
            "{}".to_string(),
            "[]".to_string(),
        ] {
            let document = document(&text);
            let excerpt = excerpt(&MemberTree::outline(), &document).unwrap();
            let (outline, whole) = (Doc::new(&excerpt).unwrap(), Doc::new(&document).unwrap());
            assert_eq!(outline.length(), whole.length());
            assert_eq!(type_name(outline), type_name(whole));
            assert_eq!(keys(outline), keys(whole));
            assert!(outline.to_json(&work()).is_ok());
            assert!(excerpt.len() < 100, "{}", excerpt.len());
        }
    }
    assert_eq!(excerpt(&MemberTree::outline(), &document("\"text\"")), None);
}

#[test]
fn long_paths_and_long_names_are_followed() {
    let name = "n".repeat(100);
    let mut text = "7".to_string();
    for n in 0..60 {
        text = format!(
            r#"{{"{name}": {text}, "{name}{n}": 1, "{}m": 2}}"#,
            &name[1..]
        );
    }
    let path = format!("${}", format!(".{name}").repeat(60));
    assert!(check(&document(&text), &[&path]).is_some());
}

#[test]
fn excerpts_of_recorded_documents_find_the_same() {
    let recorded = include_str!("recorded.tsv");
    let mut compared = 0;
    for line in recorded.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [_, document, path, ..] = fields.as_slice() else {
            continue;
        };
        let tree = parse(unescaped(document).as_bytes(), &work());
        if let (Ok(tree), Ok(_)) = (tree, Path::parse(path)) {
            compared += usize::from(check(&stored(&tree), &[path]).is_some());
            check(&stored(&tree), &[path, "$.a.b", "$.b"]);
        }
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn members_are_found_from_any_last_place() {
    let object = |names: std::ops::Range<usize>| {
        let members = names.map(|n| (format!("k{n}"), Json::Int(n as i64)));
        stored(&Json::object(members.collect()))
    };
    let documents = [0..1, 0..3, 0..100, 40..60, 50..51, 57..300, 0..0].map(object);
    let path = [Path::parse("$.k57").unwrap()];
    let tree = MemberTree::of(&path).unwrap();
    for first in &documents {
        for second in &documents {
            for document in [first, second] {
                let excerpt = excerpt(&tree, document).unwrap();
                assert_eq!(found(&excerpt, &path), found(document, &path));
            }
        }
    }
}

/// The bytes of a page that changes while it is read may be any.
#[test]
fn damaged_documents_have_no_excerpt_or_any() {
    let text = r#"{"a": {"b": "text", "c": [1, 2]}, "bb": {"x": 1}}"#;
    let intact = document(text);
    let paths = ["$.a.b", "$.a.c", "$.bb.x"].map(|p| Path::parse(p).unwrap());
    for tree in [MemberTree::of(&paths).unwrap(), MemberTree::outline()] {
        for at in 0..intact.len() {
            for byte in 0..=255 {
                let mut bytes = intact.clone();
                bytes[at] = byte;
                excerpt(&tree, &bytes);
            }
        }
    }
    let tree = MemberTree::of(&paths).unwrap();
    for at in 0..intact.len() {
        assert_eq!(excerpt(&tree, &intact[..at]), None, "{at}");
    }
}
