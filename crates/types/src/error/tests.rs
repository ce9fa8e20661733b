use super::*;

#[test]
fn the_table_is_sorted_and_found_by_errno() {
    for pair in ErrorCode::ALL.windows(2) {
        assert!(pair[0].errno() < pair[1].errno());
    }
    assert_eq!(ErrorCode::from_errno(1062), Some(ErrorCode::ER_DUP_ENTRY));
    assert_eq!(ErrorCode::from_errno(999), None);
    assert!(ErrorCode::ALL.iter().all(|c| c.sqlstate().len() == 5));
}

#[test]
fn messages_read_as_the_server_s() {
    let e = SqlError::new(ErrorCode::ER_DUP_ENTRY, &[&"1", &"t.PRIMARY"]);
    assert_eq!(
        e.to_string(),
        "ERROR 1062 (23000): Duplicate entry '1' for key 't.PRIMARY'"
    );
    let e = SqlError::new(ErrorCode::ER_WARN_DATA_OUT_OF_RANGE, &[&"a", &1]);
    assert_eq!(&*e.message, "Out of range value for column 'a' at row 1");
    let e = SqlError::new(ErrorCode::ER_TOO_BIG_ROWSIZE, &[&65535]);
    assert_eq!(
        &*e.message,
        "Row size too large. The maximum row size for the used table type, not counting BLOBs, is 65535. This includes \
         storage overhead, check the manual. You have to change some columns to TEXT or BLOBs"
    );
    assert_eq!(
        &*SqlError::not_supported("X").message,
        "This version of MySQL doesn't yet support 'X'"
    );
    let e = SqlError::new(ErrorCode::ER_NO_SUCH_TABLE, &[&"d", &"t"]);
    assert_eq!(
        (e.errno(), e.sqlstate(), &*e.message),
        (1146, "42S02", "Table 'd.t' doesn't exist")
    );
}

#[test]
fn precision_truncates_by_characters() {
    assert_eq!(format_template("<%.3s>", &[&"äöüß"]), "<äöü>");
    assert_eq!(format_template("100%% %lu %c", &[&7, &'x']), "100% 7 x");
    assert_eq!(format_template("%d and %s", &[&1]), "1 and ");
    assert_eq!(format_template("odd %", &[]), "odd ");
}

#[test]
fn warnings_are_bounded_and_counted() {
    let mut w = Warnings::with_limit(2);
    for i in 0..5 {
        w.warn(ErrorCode::WARN_DATA_TRUNCATED, &[&"c", &i]);
    }
    assert_eq!((w.list().len(), w.total()), (2, 5));
    assert_eq!(
        &*w.list()[1].message,
        "Data truncated for column 'c' at row 1"
    );
    w.clear();
    assert_eq!((w.list().len(), w.total()), (0, 0));
}

#[test]
fn warnings_at_a_mark_come_before_later_ones() {
    let error = SqlError::new(ErrorCode::ER_NO_SUCH_TABLE, &[&"d", &"t"]);
    for limit in [2, 3, 9] {
        let mut w = Warnings::with_limit(limit);
        let warn =
            |w: &mut Warnings, row: i32| w.warn(ErrorCode::WARN_DATA_TRUNCATED, &[&"c", &row]);
        warn(&mut w, 1);
        let first = w.mark();
        warn(&mut w, 2);
        let second = w.mark();
        warn(&mut w, 3);
        w.insert_error(first, Level::Warning, &error);
        w.insert_error(second.moved_by(1), Level::Warning, &error);
        let codes: Vec<u16> = w.list().iter().map(|w| w.errno()).collect();
        let expected = [1265, 1146, 1265, 1146, 1265];
        assert_eq!(codes, expected[..limit.min(5)]);
        assert_eq!(w.total(), 5);
        w.return_to(first);
        assert_eq!((w.list().len(), w.total()), (1, 1));
    }
}
