//! The binary layout: large containers, damaged bytes, keys for sorting and hashing.

use std::cmp::Ordering;

use super::*;

/// Documents of every size class.
fn documents() -> Vec<Json> {
    let lines = include_str!("recorded.tsv").lines();
    let texts = lines.filter_map(|line| line.strip_prefix("depth\t")?.split('\t').next());
    let mut documents: Vec<Json> = texts
        .map(|text| tree(&unescaped(text), 1, "").unwrap())
        .collect();
    let long = |n: usize| Json::String("x".repeat(n));
    let numbers = [-1, 40_000, 1 << 40].map(Json::Int);
    let mut large: Vec<Json> = numbers.to_vec();
    large.extend([long(127), long(128), long(70_000), Json::UInt(u64::MAX)]);
    documents.push(Json::Array(large.clone()));
    documents.push(Json::Array(vec![Json::Array(large.clone()), Json::Int(-5)]));
    documents.push(Json::object(
        large
            .into_iter()
            .enumerate()
            .map(|(i, v)| (format!("k{i}"), v))
            .collect(),
    ));
    documents.push(Json::Array(vec![Json::Null; 70_000]));
    documents
}

#[test]
fn what_is_encoded_is_read_back() {
    for value in documents() {
        let bytes = stored(&value);
        assert_eq!(Doc::new(&bytes).unwrap().to_json(&work()).unwrap(), value);
        let mut copy = Vec::new();
        Doc::new(&bytes).unwrap().write_to(&mut copy).unwrap();
        assert_eq!(copy, bytes);
    }
}

/// The frozen format of stored documents.
#[test]
fn small_containers_have_mysqls_bytes() {
    let value = tree(r#"{"a": 1, "bb": "x", "c": [true, -70000]}"#, 1, "").unwrap();
    let expected: [&[u8]; 7] = [
        // A small object of 3 members in 45 bytes.
        &[0, 3, 0, 45, 0],
        // Places and lengths of the names a, c and bb.
        &[25, 0, 1, 0, 26, 0, 1, 0, 27, 0, 2, 0],
        // 1 in its place, a small array at 29, a string at 43.
        &[5, 1, 0, 2, 29, 0, 12, 43, 0],
        b"acbb",
        // 2 elements in 14 bytes: true in its place, a 32-bit integer at 10.
        &[2, 0, 14, 0, 4, 1, 0, 7, 10, 0],
        &[0x90, 0xEE, 0xFE, 0xFF],
        &[1, b'x'],
    ];
    assert_eq!(stored(&value), expected.concat());
}

#[test]
fn damaged_bytes_are_errors_and_never_panics() {
    let mut random = 1u64;
    for value in documents().iter().filter(|v| stored(v).len() < 500) {
        let bytes = stored(value);
        for _ in 0..300 {
            let mut damaged = bytes.clone();
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let at = (random >> 33) as usize % damaged.len();
            damaged[at] ^= (random >> 20) as u8 | 1;
            damaged.truncate(damaged.len() - (random >> 60) as usize % damaged.len().min(3));
            let Ok(doc) = Doc::new(&damaged) else {
                continue;
            };
            let mut out = Vec::new();
            let _ = print(doc, &work(), &mut out);
            let _ = doc.to_json(&work());
            let _ = compare(doc, doc, &work());
            for path in ["$.a", "$.a.b", "$[0]", "$[1].a", "$.new"] {
                let legs = Path::parse(path).unwrap().legs;
                let _ = set_value(&damaged, &legs, &[4, 0], EditMode::Set, &work());
                let _ = remove_value(&damaged, &legs, &work());
            }
        }
    }
}

#[test]
fn keys_order_and_hash_as_comparisons_do() {
    let documents = documents();
    let stored: Vec<Vec<u8>> = documents.iter().map(stored).collect();
    for a in &stored {
        for b in stored.iter().filter(|b| b.len() < 2000 || a.len() < 2000) {
            let (left, right) = (Doc::new(a).unwrap(), Doc::new(b).unwrap());
            let order = compare(left, right, &work()).unwrap();
            let key = |doc| {
                let mut key = Vec::new();
                let scalar = append_sort_key(doc, &mut key).unwrap();
                (key, scalar)
            };
            let ((a, scalar), (b, other)) = (key(left), key(right));
            if scalar || other {
                assert_eq!(a.cmp(&b), order, "{left:?} {right:?}");
            }
            let hash = |doc| {
                let mut key = Vec::new();
                append_hash_key(doc, &work(), &mut key).unwrap();
                key
            };
            assert_eq!(hash(left) == hash(right), order == Ordering::Equal);
        }
    }
}

#[test]
fn arrays_of_strings_are_encoded_as_their_tree_is() {
    let long = "x".repeat(300);
    let long = long.as_str();
    let lists: [&[&str]; 4] = [&[], &["", "a", "é"], &["a", long], &[long; 400]];
    for strings in lists {
        let tree = strings.iter().map(|text| Json::String(text.to_string()));
        let tree = Json::Array(tree.collect());
        assert_eq!(crate::binary::encode_strings(strings), stored(&tree));
    }
}
