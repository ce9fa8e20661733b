//! What MySQL answered (`tests/json/record`), and properties of the layout.

use nfold_types::{Decimal, NoCheckpoint, SqlError};

use crate::*;

mod excerpt;
mod layout;
mod splice;

fn work() -> Work<'static> {
    Work::new(&NoCheckpoint)
}

fn unescaped(field: &str) -> String {
    let mut out = String::new();
    let mut chars = field.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                _ => '\\',
            },
            c => c,
        });
    }
    out
}

fn tree(text: &str, argument: usize, function: &str) -> Result<Json, String> {
    parse(text.as_bytes(), &work()).map_err(|e| match e {
        ParseError::Syntax(message, position) => format!(
            "error 3141 Invalid JSON text in argument {argument} to function {function}: \
             \"{message}\" at position {position}."
        ),
        ParseError::Other(e) => format!("error {} {}", e.errno(), e.message),
    })
}

fn stored(value: &Json) -> Vec<u8> {
    binary::encode(value, &work()).unwrap()
}

fn shown(value: &Json) -> String {
    let mut out = Vec::new();
    print(Doc::new(&stored(value)).unwrap(), &work(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn failed(e: SqlError) -> String {
    format!("error {} {}", e.errno(), e.message)
}

fn path_of(text: &str) -> Result<Path, String> {
    Path::parse(text).map_err(|e| {
        format!(
            "error 3143 Invalid JSON path expression. The error is around character position {}.",
            e.position
        )
    })
}

fn extract(doc: Doc<'_>, path: &Path) -> String {
    let mut found = Vec::new();
    seek(doc, path, &work(), &mut found).unwrap();
    let values = found.iter().map(|v| v.to_json(&work()).unwrap());
    let mut values: Vec<Json> = values.collect();
    if values.is_empty() {
        return "NULL".to_string();
    }
    if path.has_wildcard() {
        return shown(&Json::Array(values));
    }
    shown(&values.remove(0))
}

/// A pattern of `%` and `_` alone.
fn like(text: &[char], pattern: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('%', rest)) => (0..=text.len()).any(|at| like(&text[at..], rest)),
        Some((c, rest)) => {
            text.first().is_some_and(|t| *c == '_' || t == c) && like(&text[1..], rest)
        }
    }
}

fn found(doc: Doc<'_>, pattern: &str, paths: &[Path], one: bool) -> String {
    let pattern: Vec<char> = pattern.chars().collect();
    let mut matches = |text: &str| {
        let text: Vec<char> = text.chars().collect();
        Ok(like(&text, &pattern))
    };
    let found = search(doc, paths, one, &mut matches, &work()).unwrap();
    let mut paths: Vec<Json> = found.into_iter().map(Json::String).collect();
    match paths.len() {
        0 => "NULL".to_string(),
        1 => shown(&paths.remove(0)),
        _ => shown(&Json::Array(paths)),
    }
}

fn edited(op: &str, mut doc: Json, args: &[String]) -> Result<String, String> {
    let path = path_of(&args[1])?;
    if op == "remove" {
        if path.legs.is_empty() {
            return Err(
                "error 3153 The path expression '$' is not allowed in this context.".into(),
            );
        }
        let spliced = remove_value(&stored(&doc), &path.legs, &work()).unwrap();
        remove(&mut doc, &path);
        return Ok(same(spliced, &doc));
    }
    if op == "array_insert" && !matches!(path.legs.last(), Some(Leg::Cell(_))) {
        let message = "A path expression is not a path to a cell in an array.";
        return Err(format!("error 3165 {message}"));
    }
    let value = tree(&args[2], 1, "cast_as_json")?;
    match op {
        "append" => array_append(&mut doc, &path, value),
        "array_insert" => array_insert(&mut doc, &path, value),
        _ => {
            let mode = match op {
                "set" => EditMode::Set,
                "insert" => EditMode::Insert,
                _ => EditMode::Replace,
            };
            let (bytes, new) = (stored(&doc), stored(&value));
            let spliced = set_value(&bytes, &path.legs, &new, mode, &work()).unwrap();
            set(&mut doc, &path, value, mode).map_err(failed)?;
            return Ok(same(spliced, &doc));
        }
    }
    Ok(shown(&doc))
}

/// The document that a change of a tree made, if the change of the bytes made the same one.
fn same(spliced: Spliced, edited: &Json) -> String {
    match spliced {
        Spliced::Changed(bytes) if bytes != stored(edited) => format!("bytes {bytes:02x?}"),
        _ => shown(edited),
    }
}

fn of_one(op: &str, doc: Doc<'_>) -> String {
    let mut out = Vec::new();
    match op {
        "keys" => {
            let Some(names) = keys(doc).unwrap() else {
                return "NULL".to_string();
            };
            print(Doc::new(&names).unwrap(), &work(), &mut out).unwrap();
        }
        "length" => return doc.length().unwrap().to_string(),
        "depth" => return depth(doc, &work()).unwrap().to_string(),
        "type" => return type_name(doc).unwrap().to_string(),
        "pretty" => print_pretty(doc, &work(), &mut out).unwrap(),
        "unquote" => print_unquoted(doc, &work(), &mut out).unwrap(),
        _ => print(doc, &work(), &mut out).unwrap(),
    }
    String::from_utf8(out).unwrap()
}

fn answer(op: &str, args: &[String]) -> Result<String, String> {
    let function = match op {
        "print" | "unquote" | "compare" => "cast_as_json".to_string(),
        op => format!("json_{op}"),
    };
    let doc = tree(&args[0], 1, &function)?;
    let bytes = stored(&doc);
    let read = Doc::new(&bytes).unwrap();
    match op {
        "set" | "insert" | "replace" | "append" | "array_insert" | "remove" => {
            return edited(op, doc, args);
        }
        "extract" => return Ok(extract(read, &path_of(&args[1])?)),
        "search" => return Ok(found(read, &args[1], &[], false)),
        "search_below" => {
            return Ok(found(read, &args[1], &[path_of(&args[2])?], true));
        }
        "size" => return Ok(bytes.len().to_string()),
        _ if args.len() == 1 => return Ok(of_one(op, read)),
        _ => {}
    }
    let other = tree(&args[1], 2, &function)?;
    let other_bytes = stored(&other);
    let other_read = Doc::new(&other_bytes).unwrap();
    Ok(match op {
        "merge_preserve" => shown(&merge_preserve(doc, other)),
        "merge_patch" => shown(&merge_patch(doc, other)),
        "contains" => u8::from(contains(read, other_read, &work()).unwrap()).to_string(),
        "overlaps" => u8::from(overlaps(read, other_read, &work()).unwrap()).to_string(),
        _ => (compare(read, other_read, &work()).unwrap() as i8).to_string(),
    })
}

/// The lines of a recording whose answers differ.
fn differences(recording: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for line in recording.lines() {
        let fields: Vec<String> = line.split('\t').map(unescaped).collect();
        let (expected, call) = fields.split_last().unwrap();
        let got = answer(&call[0], &call[1..]).unwrap_or_else(|e| e);
        if got != *expected {
            wrong.push(format!("{line}\n    got {got}"));
        }
    }
    wrong
}

#[test]
fn answers_equal_those_recorded_from_mysql() {
    let wrong = differences(include_str!("recorded.tsv"));
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

/// A longer recording, as `tests/json/record HOST:PORT 1000 FILE` makes it.
#[test]
#[ignore = "needs NFOLD_JSON_RECORDING"]
fn answers_equal_those_of_another_recording() {
    let file = std::env::var("NFOLD_JSON_RECORDING").expect("the name of a file");
    let wrong = differences(&std::fs::read_to_string(file).unwrap());
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn opaque_values_are_read_back() {
    for text in [
        "0",
        "0.5",
        "-1.50",
        "123456789.123456789",
        "-99999999999999999999.1",
        "12345678901",
    ] {
        let value = Decimal::parse(text).unwrap();
        let bytes = stored(&Json::Opaque(Opaque::decimal(&value)));
        match Doc::new(&bytes).unwrap().scalar().unwrap() {
            Some(Scalar::Decimal(read)) => {
                assert_eq!(read, value);
                assert_eq!(read.scale(), value.scale());
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    let size = |text| {
        stored(&Json::Opaque(Opaque::decimal(
            &Decimal::parse(text).unwrap(),
        )))
        .len()
    };
    // JSON_STORAGE_SIZE(JSON_ARRAY(x)) of MySQL, without the 8 bytes of the array and its entry.
    assert_eq!(size("0.5") - 1, 6);
    assert_eq!(size("12345678901.5") - 1, 10);
}
