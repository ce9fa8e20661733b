//! Checks that every workload generates the expected statements.

use super::*;
use crate::client::Command;
use crate::client::drive::Next;

#[test]
fn names_groups_and_suffixes_parse() {
    assert_eq!(
        parse("in_list_200:prepared,oltp_insert")
            .expect("known")
            .len(),
        2
    );
    let names: Vec<String> = parse("2007:trx")
        .expect("known")
        .into_iter()
        .map(|w| w.name)
        .collect();
    assert_eq!(names.len(), 13);
    assert!(names.contains(&"read_pk_point:trx".to_owned()), "{names:?}");
    assert!(parse("all").expect("known").len() > 40);
    // 90,000 values cannot be prepared. As a single name that is an error; in a group, the workload
    // is skipped.
    assert!(parse("in_list_90000:prepared").is_err());
    assert_eq!(
        parse("in-list:prepared").expect("known").len(),
        parse("in-list").expect("known").len() - 1
    );
    for bad in ["", "nothing", "in_list_200:fast"] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn published_names_resolve_to_workloads() {
    let found = parse("published").expect("known");
    let names: Vec<&str> = found.iter().map(|w| w.name.as_str()).collect();
    assert_eq!(names.len(), 19);
    assert_eq!(
        names[..3],
        ["in_list_text", "in_list_ps", "oltp_point_select_ps"]
    );
    for workload in &found {
        assert_eq!(
            workload.prepared,
            workload.name.ends_with("_ps"),
            "{}",
            workload.name
        );
    }
    assert_eq!(
        found[0].example(),
        parse("in_list_200").expect("known")[0].example()
    );
    // The floor server answers with one row: suitable for plain reads, but not for lists,
    // transactions and writes.
    let floor: Vec<&str> = found
        .iter()
        .filter(|w| w.fits_the_floor())
        .map(|w| w.name.as_str())
        .collect();
    assert_eq!(floor, names[2..15]);
    assert_eq!(
        parse("key_point_ps:trx").expect("known")[0].name,
        "key_point_ps:trx"
    );
    for bad in [
        "published:trx",
        "key_point_ps:prepared",
        "nothing_ps",
        "_text",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

/// There are as many values as placeholders, in a text (without a remaining `?`) and in a prepared
/// execution. An event has as many statements as its plan.
#[test]
fn every_placeholder_is_filled() {
    let size = Size::of(10_000);
    for text in parse("all,2007:trx").expect("known") {
        let plan = text.plan.clone();
        let mut source = text.source(0, 1, size, 1);
        for (i, step) in plan.steps.iter().enumerate() {
            let mut command = Command::default();
            assert_eq!(source.next(&mut command), Next::Send);
            assert_eq!(command.template(), None);
            let sql = String::from_utf8(std::mem::take(command.text())).expect("ASCII");
            assert!(!sql.contains('?') || step.places() == 0, "{}", text.name);
            assert_eq!(command.more, i + 1 < plan.steps.len(), "{}", text.name);
        }
        if plan.places() > MOST_VALUES {
            continue;
        }
        let prepared = Workload {
            prepared: true,
            ..text.clone()
        };
        let mut source = prepared.source(0, 1, size, 1);
        for step in &plan.steps {
            let mut command = Command::default();
            source.next(&mut command);
            assert_eq!(
                command.template().is_some(),
                step.places() > 0,
                "{}",
                text.name
            );
            if command.template().is_some() {
                assert_eq!(command.value_count(), step.places(), "{}", text.name);
                assert_eq!(
                    source
                        .template(command.template().expect("checked"))
                        .matches('?')
                        .count(),
                    step.places()
                );
            }
        }
    }
}

#[test]
fn error_in_a_transaction_rolls_back_and_restarts() {
    let workload = &parse("oltp_write_only").expect("known")[0];
    let mut source = workload.source(0, 1, Size::of(100), 1);
    let mut command = Command::default();
    let mut next = |source: &mut Box<dyn Source>| {
        // As the driver does.
        command.more = false;
        source.next(&mut command);
        command.more
    };
    assert!(next(&mut source), "BEGIN");
    assert!(next(&mut source), "UPDATE");
    let error = crate::client::ServerError {
        code: 1213,
        message: String::new(),
    };
    source.answered(&crate::client::Answer {
        error: Some(error),
        ..Default::default()
    });
    assert!(!next(&mut source), "ROLLBACK is an event of its own");
    assert!(next(&mut source), "BEGIN again");
}

#[test]
fn every_eighth_client_writes() {
    let workload = &parse("in_list_writers").expect("known")[0];
    let writes = |number, of| {
        let mut command = Command::default();
        workload
            .source(number, of, Size::of(1000), 1)
            .next(&mut command);
        !command.more && {
            let mut out = Vec::new();
            command.encode_text(&mut out);
            out.windows(6).any(|w| w == b"UPDATE")
        }
    };
    assert!(!writes(0, 1), "a single client only reads");
    assert_eq!((0..64).filter(|n| writes(*n, 64)).count(), 8);
    assert_eq!((0..4).filter(|n| writes(*n, 4)).count(), 1);
}

#[test]
fn equal_seeds_generate_equal_statements() {
    let workload = &parse("in_list_near").expect("known")[0];
    let ask = |seed| {
        let mut command = Command::default();
        workload
            .source(3, 8, Size::of(10_000), seed)
            .next(&mut command);
        let mut out = Vec::new();
        command.encode_text(&mut out);
        out
    };
    assert_eq!(ask(1), ask(1));
    assert_ne!(ask(1), ask(2));
}
