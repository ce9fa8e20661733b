//! Files of dropped tables are unlinked without holding up other definitions.

use std::io;
use std::path::Path;
use std::sync::{Condvar, Mutex};

use nfold_store::{Disk, DiskFile, OpenMode};

use super::*;

/// A directory from which no file is removed until the test says so.
struct HeldDirectory {
    inner: RealDisk,
    /// How many wait, and whether they may go on.
    gate: Mutex<(u32, bool)>,
    bell: Condvar,
}

impl HeldDirectory {
    fn new(dir: &Path) -> Arc<HeldDirectory> {
        Arc::new(HeldDirectory {
            inner: RealDisk::new(dir, false),
            gate: Mutex::new((0, true)),
            bell: Condvar::new(),
        })
    }

    fn hold(&self, open: bool) {
        self.gate.lock().unwrap().1 = open;
        self.bell.notify_all();
    }

    fn wait_for_one(&self) {
        let gate = self.gate.lock().unwrap();
        drop(self.bell.wait_while(gate, |(n, _)| *n == 0).unwrap());
    }
}

impl Disk for HeldDirectory {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        self.inner.open(name, mode)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut gate = self.gate.lock().unwrap();
        gate.0 += 1;
        self.bell.notify_all();
        let mut gate = self.bell.wait_while(gate, |(_, open)| !*open).unwrap();
        gate.0 -= 1;
        drop(gate);
        self.inner.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<String>> {
        self.inner.list(prefix)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.inner.sync_dir()
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        self.inner.exists(name)
    }
}

fn files(dir: &Path) -> usize {
    let names = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap());
    names
        .filter(|e| e.file_name().to_string_lossy().ends_with(".nfd"))
        .count()
}

/// DROP TABLE, TRUNCATE TABLE, DROP DATABASE and OPTIMIZE TABLE wait for the file system: other
/// tables are created, renamed and changed meanwhile. After a crash during the wait the change is
/// complete, and no file of the old table is left.
#[test]
fn definitions_go_on_while_a_file_is_unlinked() {
    let dir = tempfile::tempdir().unwrap();
    let disk = HeldDirectory::new(dir.path());
    let engine = Engine::open(options(), disk.clone(), &|_| {}).unwrap().0;
    for name in ["d", "gone"] {
        engine
            .put_database(DatabaseDef {
                name: name.into(),
                collation: CollationId(255),
            })
            .unwrap();
    }
    type Definition = fn(&Engine, &Arc<TableDef>);
    let definitions: [Definition; 4] = [
        |engine, table| engine.drop_tables(std::slice::from_ref(table)).unwrap(),
        |engine, table| engine.truncate_table(table).unwrap(),
        |engine, table| assert_eq!(engine.optimize_table(table).unwrap(), 0),
        |engine, _| engine.drop_database("gone").unwrap(),
    ];
    for (n, definition) in definitions.into_iter().enumerate() {
        let mut doomed = spec(&format!("doomed{n}"), false);
        if n == 3 {
            doomed.schema = "gone".into();
        }
        let doomed = engine.create_table(doomed).unwrap();
        disk.hold(false);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| definition(&engine, &doomed));
            disk.wait_for_one();
            let other = engine.create_table(spec(&format!("other{n}"), false));
            let renamed = (other.unwrap(), "d".into(), format!("renamed{n}").into());
            engine.rename_tables(&[renamed]).unwrap();
            assert!(!waits.is_finished(), "its file was to be there");
            assert!(engine.table(doomed.id).is_none(), "the table is gone");
            // The files as a crash would leave them now.
            let copy = tempfile::tempdir().unwrap();
            for file in std::fs::read_dir(dir.path()).unwrap() {
                let file = file.unwrap();
                std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
            }
            let before = files(copy.path());
            let recovered = open(copy.path());
            assert!(recovered.table(doomed.id).is_none());
            assert_eq!(files(copy.path()), before - 1, "the orphan is removed");
            let schema = recovered.catalog().snapshot();
            assert!(schema.table("d", &format!("renamed{n}")).is_some());
            disk.hold(true);
            waits.join().unwrap();
        });
    }
}
