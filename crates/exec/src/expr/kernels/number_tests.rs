use nfold_types::row::{RowColumn, RowLayout};
use nfold_types::{ColumnType, Decimal, TypeKind, ValueRef};

use super::*;

/// Rows of a BIGINT and a DECIMAL(18,2), both of which may be NULL.
fn batch(rows: &[(Option<i64>, Option<&str>)]) -> (RowLayout, Batch) {
    let decimal = TypeKind::Decimal {
        precision: 18,
        scale: 2,
    };
    let column = |kind| RowColumn {
        ty: ColumnType::new(kind),
        nullable: true,
    };
    let layout = RowLayout::new(0, [TypeKind::BigInt, decimal].map(column));
    let mut batch = Batch::new(1);
    for (integer, text) in rows {
        let decimal = text.map(|text| Decimal::parse(text).unwrap());
        let values = [
            integer.map_or(ValueRef::Null, ValueRef::Int),
            decimal.map_or(ValueRef::Null, ValueRef::Decimal),
        ];
        let mut image = Vec::new();
        layout.encode(values, &mut image).unwrap();
        batch.push_image(Some(&image));
    }
    (layout, batch)
}

/// `integer op decimal` of each row, and the sum of all, unscaled.
fn computed(
    op: ArithOp,
    rows: &[(Option<i64>, Option<&str>)],
) -> (Vec<Option<i128>>, Vec<bool>, PartialSum) {
    let (layout, batch) = batch(rows);
    let column = |ordinal| Node::Column(NumberColumn::new(0, &layout, ordinal).unwrap());
    let program = NumberProgram {
        nodes: vec![column(0), column(1), Node::Arith(op, [0, 1])],
    };
    let mut vectors = Vectors::default();
    program.run(&batch, &mut vectors);
    let number = Number { node: 2, scale: 2 };
    let rows = 0..rows.len();
    let sum = vectors.sum(number, rows.clone());
    let vector = &vectors.0[2];
    let value = |row| (vector.state(row) == State::Number).then(|| vector.at(row));
    let missing = |row| vectors.is_missing(number, row);
    (
        rows.clone().map(value).collect(),
        rows.map(missing).collect(),
        sum,
    )
}

#[test]
fn null_operand_has_no_number() {
    let (values, missing, sum) = computed(
        ArithOp::Mul,
        &[
            (Some(3), Some("0.50")),
            (None, Some("1.00")),
            (Some(7), None),
        ],
    );
    assert_eq!(values, [Some(150), None, None]);
    assert_eq!(missing, [false; 3]);
    assert_eq!((sum.unscaled, sum.rows), (150, 1));
}

#[test]
fn products_beyond_64_bits_are_exact() {
    let (values, missing, sum) = computed(
        ArithOp::Mul,
        &[
            (Some(i64::MAX), Some("9999999999999999.99")),
            (Some(2), Some("-0.01")),
            (Some(i64::MIN), Some("-0.01")),
        ],
    );
    let large = i128::from(i64::MAX) * 999_999_999_999_999_999;
    let small = -i128::from(i64::MIN);
    assert_eq!(values, [Some(large), Some(-2), Some(small)]);
    assert_eq!(missing, [false; 3]);
    assert_eq!((sum.unscaled, sum.rows), (large - 2 + small, 3));
}

#[test]
fn products_beyond_127_bits_are_missing() {
    let (layout, batch) = batch(&[
        (Some(i64::MAX), Some("9999999999999999.99")),
        (Some(1), Some("1.00")),
        (None, Some("1.00")),
    ]);
    let column = |ordinal| Node::Column(NumberColumn::new(0, &layout, ordinal).unwrap());
    let times = |a, b| Node::Arith(ArithOp::Mul, [a, b]);
    let program = NumberProgram {
        nodes: vec![column(0), column(1), times(0, 1), times(2, 1), times(3, 0)],
    };
    let mut vectors = Vectors::default();
    program.run(&batch, &mut vectors);
    let number = Number { node: 4, scale: 0 };
    assert!(vectors.has_missing(number));
    let missing = [0, 1, 2].map(|row| vectors.is_missing(number, row));
    assert_eq!(missing, [true, false, false]);
    let sum = vectors.sum(number, 0..3);
    assert_eq!((sum.unscaled, sum.rows), (10_000, 1));
}

#[test]
fn sums_are_kept_by_group() {
    let (layout, batch) = batch(&[
        (Some(1), None),
        (Some(20), None),
        (Some(300), None),
        (Some(4000), None),
    ]);
    let column = NumberColumn::new(0, &layout, 0).unwrap();
    let program = NumberProgram {
        nodes: vec![Node::Column(column)],
    };
    let mut vectors = Vectors::default();
    program.run(&batch, &mut vectors);
    let mut sums = [PartialSum::default(); 4];
    let number = Number { node: 0, scale: 0 };
    let groups = [1, 0, NO_GROUP, 1];
    vectors.add_to(number, 0..4, &groups, (&mut sums, 1, 2));
    let sums = sums.map(|sum| (sum.unscaled, sum.rows));
    assert_eq!(sums, [(0, 0), (20, 1), (0, 0), (4001, 2)]);
}

#[test]
fn equal_nodes_are_computed_once() {
    let mut program = NumberProgram::default();
    let first = program.node(Node::Constant(5));
    let other = program.node(Node::Constant(6));
    assert_ne!(first, other);
    assert_eq!(program.node(Node::Constant(5)), first);
    assert_eq!(program.nodes.len(), 2);
}
