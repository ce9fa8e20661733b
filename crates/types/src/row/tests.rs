use super::*;
use crate::{CollationId, Value};

fn layout() -> RowLayout {
    let c = CollationId::UTF8MB4_0900_AI_CI;
    let col = |ty, nullable| RowColumn { ty, nullable };
    RowLayout::new(
        7,
        [
            col(ColumnType::new(TypeKind::Int), false),
            col(ColumnType::varchar(20, c), true),
        ],
    )
}

#[test]
fn bytes_are_as_drawn() {
    let mut row = Vec::new();
    layout()
        .encode([ValueRef::Int(-2), ValueRef::Bytes(b"ab")], &mut row)
        .expect("encodes");
    assert_eq!(row, [7, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF, 2, 0, b'a', b'b']);
    assert_eq!(layout().get(&row, 0), Ok(ValueRef::Int(-2)));
    assert_eq!(
        layout().get(&row, 1).map(|v| v.to_owned()),
        Ok(Value::from("ab"))
    );
    assert_eq!(layout().validate(&row), Ok(()));
}
