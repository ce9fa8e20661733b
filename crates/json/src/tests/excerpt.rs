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

/// A tree of the values of the paths.
fn tree_of(paths: &[Path]) -> Option<MemberTree> {
    MemberTree::of(paths.iter().map(|path| (path, ValueNeed::Whole)))
}

/// Compares document and excerpt; returns the excerpt's length.
fn check(document: &[u8], paths: &[&str]) -> Option<usize> {
    let paths: Vec<Path> = paths.iter().map(|p| Path::parse(p).unwrap()).collect();
    let excerpt = excerpt(&tree_of(&paths)?, document)?;
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
            let excerpt = excerpt(&MemberTree::of_document(ValueNeed::Names), &document).unwrap();
            let (outline, whole) = (Doc::new(&excerpt).unwrap(), Doc::new(&document).unwrap());
            assert_eq!(outline.length(), whole.length());
            assert_eq!(type_name(outline), type_name(whole));
            assert_eq!(keys(outline), keys(whole));
            assert!(outline.to_json(&work()).is_ok());
            assert!(excerpt.len() < 100, "{}", excerpt.len());
        }
    }
    assert_eq!(
        excerpt(
            &MemberTree::of_document(ValueNeed::Names),
            &document("\"text\"")
        ),
        None
    );
}

#[test]
fn type_and_length_need_no_more_bytes() {
    let long = "x".repeat(70_000);
    for filler in ["", &long] {
        for text in [
            format!(r#"{{"a": [1, 2], "bb": {{"c": "{filler}"}}, "c": []}}"#),
            format!(r#"[1, {{"a": 2}}, "{filler}", null]"#),
            "{}".to_string(),
        ] {
            let document = document(&text);
            let tree = MemberTree::of_document(ValueNeed::Head);
            let excerpt = excerpt(&tree, &document).unwrap();
            let (head, whole) = (Doc::new(&excerpt).unwrap(), Doc::new(&document).unwrap());
            assert_eq!(head.length(), whole.length());
            assert_eq!(type_name(head), type_name(whole));
            assert!(excerpt.len() < 10);
        }
    }
}

#[test]
fn paths_may_need_parts_of_their_values() {
    use ValueNeed::{Head, Names, Whole};
    let long = "x".repeat(300);
    let document = document(&format!(
        r#"{{"a": {{"b": "{long}", "c": [1, {{"d": "{long}"}}]}}, "s": "{long}", "n": 7}}"#
    ));
    let inner = Path::parse("$.a").unwrap();
    let array = Path::parse("$.a.c").unwrap();
    let absent = Path::parse("$.a.c.x").unwrap();
    let scalar = Path::parse("$.s").unwrap();
    let of = |paths: &[(&Path, ValueNeed)]| {
        let tree = MemberTree::of(paths.iter().copied()).unwrap();
        excerpt(&tree, &document).unwrap()
    };
    let whole = Doc::new(&document).unwrap();
    let names = |bytes: &[u8], path: &Path| {
        let found = seek_one(Doc::new(bytes).unwrap(), &path.legs).unwrap();
        keys(found.unwrap()).unwrap()
    };
    let length = |bytes: &[u8], path: &Path| {
        let found = seek_one(Doc::new(bytes).unwrap(), &path.legs).unwrap();
        found.map(|found| found.length().unwrap())
    };
    for needs in [[Names, Names], [Head, Names], [Names, Head]] {
        let bytes = of(&[(&inner, needs[0]), (&inner, needs[1])]);
        assert_eq!(names(&bytes, &inner), names(&document, &inner));
        assert!(bytes.len() < 80, "{}", bytes.len());
    }
    let bytes = of(&[(&array, Head), (&absent, Head), (&scalar, Head)]);
    assert_eq!(length(&bytes, &absent), None);
    assert_eq!(length(&bytes, &scalar), Some(1));
    let bytes = of(&[(&array, Head)]);
    assert_eq!(length(&bytes, &array), Some(2));
    assert!(bytes.len() < 60, "{}", bytes.len());
    for needs in [[Head, Whole], [Whole, Names]] {
        let bytes = of(&[(&inner, needs[0]), (&inner, needs[1]), (&array, Head)]);
        let found = seek_bytes(&bytes, &inner.legs).unwrap().unwrap();
        let expected = seek_one(whole, &inner.legs).unwrap().unwrap();
        assert_eq!(found, expected.to_bytes().unwrap());
    }
}

#[test]
fn values_of_excerpts_are_not_copied() {
    let text = r#"{"a": {"b": "text", "c": [1, 2], "d": 1e9, "e": 7}, "f": 70000}"#;
    let document = document(text);
    for path in ["$.a.b", "$.a.c", "$.a.d", "$.a.e", "$.f"] {
        let paths = [Path::parse(path).unwrap()];
        let bytes = excerpt(&tree_of(&paths).unwrap(), &document).unwrap();
        let found = seek_bytes(&bytes, &paths[0].legs).unwrap().unwrap();
        let whole = seek_bytes(&document, &paths[0].legs).unwrap();
        assert_eq!(Some(&found), whole.as_ref());
        assert!(matches!(found, std::borrow::Cow::Borrowed(_)), "{path}");
    }
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
    let tree = tree_of(&path).unwrap();
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
    for tree in [
        tree_of(&paths).unwrap(),
        MemberTree::of_document(ValueNeed::Names),
    ] {
        for at in 0..intact.len() {
            for byte in 0..=255 {
                let mut bytes = intact.clone();
                bytes[at] = byte;
                excerpt(&tree, &bytes);
            }
        }
    }
    let tree = tree_of(&paths).unwrap();
    for at in 0..intact.len() {
        assert_eq!(excerpt(&tree, &intact[..at]), None, "{at}");
    }
}
