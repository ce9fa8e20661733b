//! Multi-valued indexes: a random mix of changes against a map, with older snapshots, rollbacks,
//! crashes and purge.

use nfold_catalog::{GeneratedColumn, StoredExpr};
use nfold_types::key::{Elements, element_layout, pack_elements};

use super::*;

/// `m (id BIGINT PRIMARY KEY, KEY tags (<array>), UNIQUE KEY codes (<array>))`
fn array_table() -> TableSpec {
    let array = |name: &str| ColumnDef {
        generated: Some(Box::new(GeneratedColumn {
            expr: StoredExpr {
                text: "cast(`j` as signed array)".into(),
                columns: Vec::new(),
                mode: 0,
            },
            stored: false,
            array_of: Some(ColumnType::bigint()),
        })),
        ..column(name, ColumnType::new(TypeKind::Blob(TextSize::Long)), true)
    };
    let index = |name: &str, kind, column| IndexSpec {
        kind,
        ..secondary(name, column, None, false)
    };
    TableSpec {
        name: "m".into(),
        columns: vec![
            column("id", ColumnType::bigint(), false),
            array("tags"),
            array("codes"),
        ],
        indexes: vec![
            index("tags", IndexKind::Secondary, 1),
            index("codes", IndexKind::Unique, 2),
            index("PRIMARY", IndexKind::Primary, 0),
        ],
        ..spec("m", true)
    }
}

type Arrays = (Option<Vec<i64>>, Vec<i64>);

fn packed(elements: &[i64]) -> Value {
    let values: Vec<Value> = elements.iter().copied().map(Value::Int).collect();
    Value::Bytes(pack_elements(&ColumnType::bigint(), &values).unwrap())
}

fn encode_arrays(table: &Table, id: i64, (tags, codes): &Arrays, out: &mut Vec<u8>) {
    let tags = tags.as_deref().map_or(Value::Null, packed);
    let values = [Value::Int(id), tags, packed(codes)];
    let values = values.iter().map(Value::as_ref);
    table.layout().encode(values, out).unwrap();
}

fn decode_arrays(table: &Table, image: &[u8]) -> (i64, Arrays) {
    let layout = element_layout(&ColumnType::bigint());
    let elements = |v: ValueRef<'_>| {
        let packed = v.as_bytes()?.to_vec();
        let value = |mut key: &[u8]| match layout.decode_part(0, &mut key) {
            Ok(Value::Int(v)) => v,
            other => panic!("{other:?}"),
        };
        Some(Elements(&packed).map(value).collect::<Vec<i64>>())
    };
    let get = |c| table.layout().get(image, c).unwrap();
    let ValueRef::Int(id) = get(0) else {
        panic!("id")
    };
    (id, (elements(get(1)), elements(get(2)).unwrap()))
}

/// The ids that `index` finds for an element (NULL: none), as `lock` reads.
fn find(
    s: &mut EngineSession,
    table: &Arc<Table>,
    index: usize,
    element: Option<i64>,
    lock: RowLock,
) -> Vec<(i64, Arrays)> {
    let keys = [Value::from(element)];
    let mut rows = decoded_by_key(s, (table, index), &keys, (lock, 3), decode_arrays);
    rows.sort();
    rows
}

type Model = BTreeMap<i64, Arrays>;

const TAGS: u64 = 12;
const CODES: u64 = 40;

fn assert_finds(s: &mut EngineSession, table: &Arc<Table>, model: &Model, why: &str) {
    let rows = |fits: &dyn Fn(&Arrays) -> bool| {
        let found = model.iter().filter(|(_, arrays)| fits(arrays));
        found
            .map(|(id, arrays)| (*id, arrays.clone()))
            .collect::<Vec<_>>()
    };
    let (tags, codes) = (index_of(table, "tags"), index_of(table, "codes"));
    for e in 0..TAGS as i64 {
        let expected = rows(&|(tags, _)| tags.as_ref().is_some_and(|tags| tags.contains(&e)));
        assert_eq!(
            find(s, table, tags, Some(e), RowLock::None),
            expected,
            "{why}: tag {e}"
        );
    }
    let expected = rows(&|(tags, _)| tags.is_none());
    assert_eq!(
        find(s, table, tags, None, RowLock::None),
        expected,
        "{why}: NULL"
    );
    for e in 0..CODES as i64 {
        let expected = rows(&|(_, codes)| codes.contains(&e));
        assert_eq!(
            find(s, table, codes, Some(e), RowLock::None),
            expected,
            "{why}: code {e}"
        );
    }
}

fn index_of(table: &Table, name: &str) -> usize {
    table.def().index(name).unwrap()
}

fn random_arrays(random: &mut Random) -> Arrays {
    let mut some = |of: u64, most: u64| {
        let count = random.below(most + 1);
        let mut elements: Vec<i64> = (0..count).map(|_| random.below(of) as i64).collect();
        elements.sort_unstable();
        elements.dedup();
        elements
    };
    let (tags, codes) = (some(TAGS, 5), some(CODES, 3));
    ((random.below(6) > 0).then_some(tags), codes)
}

/// Whether another row has one of the codes.
fn conflicts(model: &Model, id: i64, codes: &[i64]) -> bool {
    let mut others = model.iter().filter(|(other, _)| **other != id);
    others.any(|(_, (_, theirs))| theirs.iter().any(|code| codes.contains(code)))
}

/// One random change of the table and of the model.
fn change(s: &mut EngineSession, table: &Arc<Table>, model: &mut Model, random: &mut Random) {
    let id = random.below(20) as i64;
    let arrays = random_arrays(random);
    let Some(old) = model.get(&id).cloned() else {
        s.statement_begin(Isolation::RepeatableRead, false);
        let mut op = InsertOp::new(table.clone());
        encode_arrays(table, id, &arrays, op.row());
        let outcome = block(|| s.insert(&mut op)).unwrap();
        block(|| s.statement_end(true)).unwrap();
        assert_eq!(
            outcome != WriteOutcome::Done,
            conflicts(model, id, &arrays.1)
        );
        if outcome == WriteOutcome::Done {
            model.insert(id, arrays);
        }
        return;
    };
    let locked = by_id(s, table, id);
    s.statement_begin(Isolation::RepeatableRead, false);
    let (mut image, mut new_id) = (Vec::new(), id);
    encode_arrays(table, id, &locked, &mut image);
    assert_eq!(locked, old);
    if random.below(4) == 0 {
        let mut op = DeleteOp::new(table.clone());
        op.row(&image, None);
        block(|| s.delete(&mut op)).unwrap();
        model.remove(&id);
    } else {
        if random.below(4) == 0 {
            new_id = random.below(20) as i64;
        }
        let mut op = UpdateOp::new(table.clone());
        encode_arrays(table, new_id, &arrays, op.row(&image, None));
        let outcome = block(|| s.update(&mut op)).unwrap();
        let taken = new_id != id && model.contains_key(&new_id);
        assert_eq!(
            outcome != WriteOutcome::Done,
            taken || conflicts(model, id, &arrays.1)
        );
        if outcome == WriteOutcome::Done {
            model.remove(&id);
            model.insert(new_id, arrays);
        }
    }
    block(|| s.statement_end(true)).unwrap();
}

/// Locks and reads a row.
fn by_id(s: &mut EngineSession, table: &Arc<Table>, id: i64) -> Arrays {
    let lock = (RowLock::Exclusive, 3);
    let rows = decoded_by_key(s, (table, 0), &[Value::Int(id)], lock, decode_arrays);
    rows[0].1.clone()
}

#[test]
fn entries_follow_arrays_through_changes_and_crashes() {
    let mut db = Db::new();
    db.engine.create_table(array_table()).unwrap();
    let mut model = Model::new();
    let mut random = Random(0x5eed);
    for round in 0..25 {
        let table = db.find("m");
        let mut s = db.session();
        for _ in 0..12 {
            let mut reader = db.session();
            reader.begin(TrxOptions {
                isolation: Isolation::RepeatableRead,
                read_only: true,
                consistent_snapshot: true,
            });
            let before = model.clone();
            for _ in 0..random.below(6) {
                change(&mut s, &table, &mut model, &mut random);
            }
            assert_finds(&mut s, &table, &model, "own changes");
            assert_finds(&mut reader, &table, &before, "an older snapshot");
            match random.below(3) {
                0 => {
                    block(|| s.rollback()).unwrap();
                    model = before.clone();
                }
                _ => commit(&mut s),
            }
            assert_finds(&mut reader, &table, &before, "an older snapshot, later");
            commit(&mut reader);
        }
        assert_sound(&db.engine, &table);
        if round % 3 == 0 {
            while db.engine.step_background().unwrap() {}
            assert_purged(&db.engine, &table);
        }
        let mut lost = model.clone();
        for _ in 0..4 {
            change(&mut s, &table, &mut lost, &mut random);
        }
        std::mem::forget(s);
        drop(table);
        db = db.crash();
        let table = db.find("m");
        while db.engine.step_background().unwrap() {}
        let mut s = db.session();
        assert_finds(&mut s, &table, &model, "after a crash");
        commit(&mut s);
        assert_sound(&db.engine, &table);
    }
}

#[test]
fn index_made_later_has_an_entry_for_each_element() {
    let db = Db::new();
    let mut without = array_table();
    let tags = without.indexes.remove(0);
    let table = db.engine.create_table(without).unwrap();
    let table = db.engine.table(table.id).unwrap();
    let (mut s, mut model, mut random) = (db.session(), Model::new(), Random(77));
    for _ in 0..60 {
        change(&mut s, &table, &mut model, &mut random);
    }
    commit(&mut s);
    let def = table.def().clone();
    db.engine.change_indexes(&def, &[tags], &[]).unwrap();
    let table = db.find("m");
    assert_finds(&mut s, &table, &model, "a new index");
    commit(&mut s);
    assert_sound(&db.engine, &table);
    for _ in 0..60 {
        change(&mut s, &table, &mut model, &mut random);
    }
    commit(&mut s);
    assert_finds(&mut s, &table, &model, "later changes");
    commit(&mut s);
    assert_sound(&db.engine, &table);
}

#[test]
fn check_finds_an_entry_of_another_element() {
    let db = Db::new();
    let mut s = db.session();
    let def = db.engine.create_table(array_table()).unwrap();
    let table = db.engine.table(def.id).unwrap();
    s.statement_begin(Isolation::RepeatableRead, false);
    for id in 0..3 {
        let mut op = InsertOp::new(table.clone());
        encode_arrays(&table, id, &(Some(vec![id, id + 5]), vec![]), op.row());
        assert_eq!(block(|| s.insert(&mut op)).unwrap(), WriteOutcome::Done);
    }
    block(|| s.statement_end(true)).unwrap();
    commit(&mut s);
    assert_sound(&db.engine, &table);
    // The entry of element 6 of row 1 becomes one of element 9: as many entries as before.
    let tags = index_of(&table, "tags");
    let key = |element: i64| {
        let mut key = Vec::new();
        let (own, primary) = (table.key_layout(tags), table.key_layout(0));
        own.encode_values([ValueRef::Int(element)], &mut key)
            .unwrap();
        primary.encode_values([ValueRef::Int(1)], &mut key).unwrap();
        key
    };
    let (store, tree) = (table.store(), &table.index(tags).tree);
    let mut value = Vec::new();
    assert!(tree.get(store, &key(6), &mut value).unwrap());
    let mut mtr = store.mtr();
    let mut pos = tree
        .leaf_for_write(store, &mut mtr, &key(6), nfold_btree::Room::Unchanged)
        .unwrap();
    assert!(pos.found);
    mtr.reserve(1000, table.def().space, 0).unwrap();
    tree.remove_at(&mut mtr, &mut pos);
    mtr.commit();
    let mut mtr = store.mtr();
    let room = nfold_btree::Room::Value(value.len());
    let mut pos = tree.leaf_for_write(store, &mut mtr, &key(9), room).unwrap();
    mtr.reserve(1000, table.def().space, 0).unwrap();
    tree.insert_at(&mut mtr, &mut pos, &key(9), &value);
    mtr.commit();
    let problems = db.engine.check_table(&table).unwrap().problems;
    assert_eq!(problems, ["index 'tags' lacks 1 elements of the rows"]);
}
